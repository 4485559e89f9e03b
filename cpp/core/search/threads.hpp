// Runs independent tasks on a number of threads; the caller's thread is one of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "float_environment.hpp"

namespace hiernorm {

// Calls task(0) .. task(count - 1), each once, in any order. The first exception is rethrown.
template <class Task>
void run_tasks(std::size_t count, std::size_t threads, Task task) {
    if (threads <= 1 || count <= 1) {
        for (std::size_t i = 0; i < count; ++i) task(i);
        return;
    }
    std::atomic<std::size_t> next{0};
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
        }
    };
    std::vector<std::thread> helpers;
    for (std::size_t t = 1; t < threads && t < count; ++t) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace hiernorm
