// Ends long work early: when the user presses Ctrl-C, or when the thread that it helps has failed.
//
// Long loops call poll_interrupt() every few milliseconds of work, or more often. It costs as much
// as reading the clock.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>

namespace hiernorm {

// A check throws if the work of the calling thread is to end. Whoever embeds the core sets one for
// the process; without it nothing ends early.
using InterruptCheck = void (*)();
void set_interrupt_check(InterruptCheck check);

// The calling thread begins its work: it asks the check for the first time some 20 ms later.
void begin_work();

// Throws what the check throws, at most every 20 ms; in a helper, Stopped.
void poll_interrupt();

// Entries between two polls of a loop that takes about a microsecond for each.
inline constexpr std::size_t kPolledEvery = 4096;

// Thrown in a helper thread whose work is no longer wanted.
struct Stopped : std::exception {
    const char* what() const noexcept override { return "the work was stopped"; }
};

// This thread helps another one until the end of the scope, or until `stop` is set.
class HelperScope {
   public:
    explicit HelperScope(const std::atomic<bool>& stop);
    ~HelperScope();
    HelperScope(const HelperScope&) = delete;
    HelperScope& operator=(const HelperScope&) = delete;
};

}  // namespace hiernorm
