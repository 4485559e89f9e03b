// Holds the floating-point environment at its IEEE default while the core computes: round to
// nearest, no flushing of denormals. Other libraries change it (fast-math start-up code, torch's
// set_flush_denormal), and the promise of equal bits must not depend on them.
#pragma once

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace hiernorm {

class DefaultFloatEnvironment {
   public:
#if defined(__SSE2__) || defined(_M_X64)
    DefaultFloatEnvironment() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
    ~DefaultFloatEnvironment() { _mm_setcsr(saved_); }
#else
    DefaultFloatEnvironment() {
        std::fegetenv(&saved_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
#endif
    DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
    DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

   private:
#if defined(__SSE2__) || defined(_M_X64)
    unsigned saved_;
#else
    std::fenv_t saved_;
#endif
};

}  // namespace hiernorm
