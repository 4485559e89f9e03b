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

TEST(no_task_begins_before_the_first_step_has_ended) {
    for (int round = 0; round < 50; ++round) {
        int prepared = 0;  // not atomic: the tasks come after it
        std::atomic<int> sum{0};
        const auto prepare = [&] {
            if (round % 10 == 0) std::this_thread::sleep_for(3 * kSpinTime);
            prepared = 7;
        };
        run_tasks_after(prepare, 4, 4, [&](std::size_t) { sum += prepared; });
        CHECK_EQUAL(sum.load(), 28);
    }
}

TEST(no_task_runs_if_the_first_step_fails) {
    for (const std::size_t threads : {1, 4}) {
        std::atomic<int> runs{0};
        const auto fail = [] { throw std::runtime_error("the first step fails"); };
        bool failed = false;
        try {
            run_tasks_after(fail, 4, threads, [&](std::size_t) { ++runs; });
        } catch (const std::runtime_error&) {
            failed = true;
        }
        CHECK(failed);
        CHECK_EQUAL(runs.load(), 0);
    }
}

TEST(a_job_that_is_taken_back_does_not_run_later) {
    std::vector<std::atomic<int>> runs(2'000);
    std::vector<int> when_finished;
    for (std::atomic<int>& times : runs) {
        BorrowedHelper helper;
        helper.run({[](void* with) { ++*static_cast<std::atomic<int>*>(with); }, &times});
        if (when_finished.size() % 2 == 0) std::this_thread::sleep_for(kSpinTime / 10);
        while (!helper.finish(kPollPause)) continue;
        when_finished.push_back(times);
    }
    CHECK_EQUAL(threads_of_four_tasks().size(), 4u);  // the helper takes other jobs
    for (std::size_t i = 0; i < runs.size(); ++i) CHECK_EQUAL(runs[i].load(), when_finished[i]);
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
