// Asks for a cache line ahead of its use.
#pragma once

#if defined(_MSC_VER) && !defined(__clang__) && defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace hiernorm {

inline void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address, 0, 2);
#elif defined(_M_X64)
    _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T1);
#else
    (void)address;
#endif
}

}  // namespace hiernorm
