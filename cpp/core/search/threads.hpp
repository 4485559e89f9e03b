// Runs independent tasks on a number of threads; the caller's thread is one of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "float_environment.hpp"
#include "helper_threads.hpp"
#include "interrupt.hpp"
#include "spin.hpp"

namespace hiernorm {

inline constexpr std::chrono::milliseconds kPollPause{20};

// Calls task(0) .. task(count - 1), each once, in any order, after this thread has called first().
// The other threads are woken before that. The first exception is rethrown. Threads that the system
// refuses to start are done without.
template <class First, class Task>
void run_tasks_after(First first, std::size_t count, std::size_t threads, Task task) {
    if (threads <= 1 || count <= 1) {
        first();
        for (std::size_t i = 0; i < count; ++i) task(i);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false}, ready{false};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto attempt = [&](auto act) {
        try {
            act();
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
            next = count;
            stop = true;
        }
    };
    const auto work = [&] {
        const DefaultFloatEnvironment environment;
        attempt([&] {
            for (std::size_t i = next++; i < count; i = next++) task(i);
        });
    };
    auto help = [&] {
        const HelperScope scope(stop);
        yield_until([&] { return ready.load(std::memory_order_acquire); });
        work();
    };
    using Help = decltype(help);
    {
        std::vector<BorrowedHelper> helpers;  // none works before all have what they need
        helpers.reserve(std::min(threads, count) - 1);
        while (helpers.size() + 1 < std::min(threads, count)) {
            BorrowedHelper helper;
            if (!helper) break;
            helpers.push_back(std::move(helper));
        }
        for (BorrowedHelper& helper : helpers) {
            helper.run({[](void* with) { (*static_cast<Help*>(with))(); }, &help});
        }
        attempt(first);
        ready.store(true, std::memory_order_release);
        work();
        // Helpers may have long tasks left: this thread hears of Ctrl-C for them.
        attempt([&] {
            for (BorrowedHelper& helper : helpers) {
                while (!helper.finish(kPollPause)) poll_interrupt();
            }
        });
    }
    if (failure) std::rethrow_exception(failure);
}

template <class Task>
void run_tasks(std::size_t count, std::size_t threads, Task task) {
    run_tasks_after([] {}, count, threads, task);
}

}  // namespace hiernorm
