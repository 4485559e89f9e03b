// What a thread knows of the end of its work.
#include "interrupt.hpp"

#include <chrono>

#include "per_thread.hpp"

namespace hiernorm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};

std::atomic<InterruptCheck> interrupt_check{nullptr};
thread_local Clock::time_point asked{};
thread_local const std::atomic<bool>* stop_of_helper = nullptr;

}  // namespace

void set_interrupt_check(InterruptCheck check) { interrupt_check = check; }

void begin_work() {
    asked = Clock::now();
    prepare_thread();
}

void poll_interrupt() {
    if (stop_of_helper != nullptr) {
        if (stop_of_helper->load(std::memory_order_relaxed)) throw Stopped();
        return;
    }
    const InterruptCheck check = interrupt_check.load(std::memory_order_relaxed);
    if (check == nullptr) return;
    const Clock::time_point now = Clock::now();
    if (now - asked < kPause) return;
    asked = now;
    check();
}

HelperScope::HelperScope(const std::atomic<bool>& stop) {
    stop_of_helper = &stop;
    prepare_thread();
}
HelperScope::~HelperScope() { stop_of_helper = nullptr; }

}  // namespace hiernorm
