// Threads that help the calling thread, and wait a moment for the next call.
//
// To start a thread and to end it costs as much as a search of a small index, and a new thread has
// no buffers yet. A helper that has waited in vain for kHelperPause ends: a program that no longer
// searches has no threads of ours.
#pragma once

#include <chrono>
#include <cstddef>

namespace hiernorm {

inline constexpr std::chrono::milliseconds kHelperPause{100};

// What a helper runs; it throws nothing.
struct HelperJob {
    void (*run)(void* with) = nullptr;
    void* with = nullptr;
};

class HelperThread;

// A helper of the calling thread from here to the end of the scope; without one if the system
// refuses to start a thread, or has too little memory left for it.
class BorrowedHelper {
   public:
    BorrowedHelper();
    ~BorrowedHelper();
    BorrowedHelper(BorrowedHelper&& other) noexcept : helper_(other.helper_) {
        other.helper_ = nullptr;
    }
    BorrowedHelper& operator=(BorrowedHelper&&) = delete;

    explicit operator bool() const { return helper_ != nullptr; }

    void run(HelperJob job);

    // Takes back a job that is not begun; else waits until it is done, at most so long. Whether the
    // helper has finished.
    bool finish(std::chrono::milliseconds pause);

   private:
    HelperThread* helper_;
};

// Helpers that wait for a job.
std::size_t idle_helpers();

}  // namespace hiernorm
