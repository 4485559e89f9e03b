// Runs independent tasks on a number of threads; the caller's thread is one of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "float_environment.hpp"
#include "interrupt.hpp"

namespace hiernorm {

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
    const auto help = [&] {
        const HelperScope scope(stop);
        work();
    };
    std::vector<std::thread> helpers;
    helpers.reserve(std::min(threads, count) - 1);
    try {
        for (std::size_t t = 1; t < std::min(threads, count); ++t) helpers.emplace_back(help);
    } catch (const std::system_error&) {
    }
    work();
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hiernorm
