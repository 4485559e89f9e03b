// Waits without sleeping, for what another thread is about to do: to wake a sleeping thread takes
// 10 to 40 us, which is much of a search.
#pragma once

#include <chrono>
#include <cstddef>
#include <thread>

#if defined(_MSC_VER) && !defined(__clang__) && defined(_M_X64)
#include <immintrin.h>
#endif

namespace hiernorm {

// Longer than the parts of a query differ; short beside the time slice of another process.
inline constexpr std::chrono::microseconds kSpinTime{100};

inline void pause_processor() {
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
    __builtin_ia32_pause();
#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
    __asm__ volatile("yield");
#elif defined(_MSC_VER) && defined(_M_X64)
    _mm_pause();
#endif
}

// Until `done`, at most for kSpinTime; whether it is done.
template <class Done>
bool spin_until(Done done) {
    constexpr std::size_t kPauses = 16;  // between two looks at the clock
    const auto end = std::chrono::steady_clock::now() + kSpinTime;
    do {
        for (std::size_t i = 0; i < kPauses; ++i) {
            if (done()) return true;
            pause_processor();
        }
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

// Until `done`, however long it takes; other threads may run meanwhile.
template <class Done>
void yield_until(Done done) {
    if (spin_until(done)) return;
    while (!done()) std::this_thread::yield();
}

}  // namespace hiernorm
