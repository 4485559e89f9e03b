// Tasks on several threads, and the threads that wait for the next ones.
#include "search/threads.hpp"

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include "check.hpp"

namespace hiernorm::testing {
namespace {

// The threads that run four tasks, none of which ends before all have begun.
std::set<std::thread::id> threads_of_four_tasks() {
    std::atomic<int> begun{0};
    std::mutex mutex;
    std::set<std::thread::id> threads;
    run_tasks(4, 4, [&](std::size_t) {
        {
            const std::lock_guard lock(mutex);
            threads.insert(std::this_thread::get_id());
        }
        for (++begun; begun < 4;) std::this_thread::yield();
    });
    return threads;
}

void wait_until_helpers_end() {
    while (idle_helpers() != 0) std::this_thread::sleep_for(kHelperPause / 10);
}

}  // namespace

TEST(each_task_runs_once) {
    for (const std::size_t threads : {1, 2, 5}) {
        std::vector<std::atomic<int>> runs(300);
        run_tasks(runs.size(), threads, [&](std::size_t task) { ++runs[task]; });
        for (const std::atomic<int>& times : runs) CHECK_EQUAL(times.load(), 1);
    }
}

TEST(the_next_call_is_helped_by_the_same_threads) {
    wait_until_helpers_end();
    const std::set<std::thread::id> first = threads_of_four_tasks();
    CHECK_EQUAL(first.size(), 4u);
    CHECK_EQUAL(idle_helpers(), 3u);
    CHECK(threads_of_four_tasks() == first);
}

TEST(helpers_end_when_nothing_is_left_to_do) {
    CHECK_EQUAL(threads_of_four_tasks().size(), 4u);
    wait_until_helpers_end();
    CHECK_EQUAL(threads_of_four_tasks().size(), 4u);
}

TEST(a_task_may_have_tasks) {
    std::atomic<int> runs{0};
    run_tasks(4, 4, [&](std::size_t) { run_tasks(8, 2, [&](std::size_t) { ++runs; }); });
    CHECK_EQUAL(runs.load(), 32);
}

TEST(calls_of_many_threads_do_not_mix) {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
        callers.emplace_back([] {
            for (int round = 0; round < 200; ++round) {
                std::atomic<int> sum{0};
                run_tasks(6, 3, [&](std::size_t task) { sum += static_cast<int>(task); });
                CHECK_EQUAL(sum.load(), 15);
            }
        });
    }
    for (std::thread& caller : callers) caller.join();
}

TEST(a_failing_task_stops_the_threads_that_help) {
    std::atomic<int> polled{0};
    const auto work = [&] {
        run_tasks(4, 4, [&](std::size_t task) {
            if (task == 0) throw std::runtime_error("task 0 fails");
            for (;;) {  // ends when task 0 has failed; on few processors it may end before it began
                ++polled;
                poll_interrupt();
                if (polled > 1'000'000'000) return;
            }
        });
    };
    set_interrupt_check([] { throw std::runtime_error("the caller is interrupted"); });
    try {
        work();
        CHECK(false);
    } catch (const std::runtime_error&) {
    } catch (const Stopped&) {
    }
    set_interrupt_check(nullptr);
}

}  // namespace hiernorm::testing
