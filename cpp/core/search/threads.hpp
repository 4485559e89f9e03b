// Runs independent tasks on a number of threads; the caller's thread is one of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "float_environment.hpp"
#include "interrupt.hpp"
#include "spare_memory.hpp"

namespace hiernorm {

inline constexpr std::chrono::milliseconds kPollPause{20};

// Memory that must be left for a thread to be started.
inline constexpr std::size_t kSpareBytes = std::size_t{1} << 22;

// Calls task(0) .. task(count - 1), each once, in any order. The first exception is rethrown.
// Threads that the system refuses to start are done without.
template <class Task>
void run_tasks(std::size_t count, std::size_t threads, Task task) {
    if (threads <= 1 || count <= 1) {
        for (std::size_t i = 0; i < count; ++i) task(i);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto work = [&] {
        const DefaultFloatEnvironment environment;
        try {
            for (std::size_t i = next++; i < count; i = next++) task(i);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
            next = count;
            stop = true;
        }
    };
    std::mutex running_mutex;
    std::condition_variable one_less;
    std::size_t running = 0;
    // A thread is prepared when all are started, and works when all are prepared: stacks and work
    // may take the memory that is left, which it needs for its variables.
    std::atomic<bool> started{false};
    std::atomic<std::size_t> unprepared{1};  // this thread counts until it has started the others
    const auto wait_for_all = [&] {
        if (--unprepared == 0) {
            unprepared.notify_all();
            return;
        }
        for (std::size_t left = unprepared; left != 0; left = unprepared) unprepared.wait(left);
    };
    const auto help = [&] {
        started.wait(false);
        {
            const HelperScope scope(stop);
            wait_for_all();
            work();
        }
        const std::lock_guard lock(running_mutex);
        --running;
        one_less.notify_one();
    };
    std::vector<std::thread> helpers;
    helpers.reserve(std::min(threads, count) - 1);
    try {
        for (std::size_t t = 1; t < std::min(threads, count); ++t) {
            // The C library ends the process if it finds no memory for the variables of a thread.
            const SpareMemory spare(kSpareBytes);
            if (!spare) break;
            ++unprepared;
            {
                const std::lock_guard lock(running_mutex);
                ++running;
            }
            helpers.emplace_back(help);
        }
    } catch (const std::exception&) {  // system_error of the thread, or bad_alloc
        --unprepared;
        const std::lock_guard lock(running_mutex);
        --running;
    }
    started = true;
    started.notify_all();
    wait_for_all();
    work();
    // Helpers may have long tasks left: this thread hears of Ctrl-C for them.
    try {
        std::unique_lock lock(running_mutex);
        while (!one_less.wait_for(lock, kPollPause, [&] { return running == 0; })) {
            lock.unlock();
            poll_interrupt();
            lock.lock();
        }
    } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
        stop = true;
        next = count;
    }
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hiernorm
