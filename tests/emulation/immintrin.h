// Stands in for the compiler's <immintrin.h>: SIMDe's AVX-512 in portable C++, for any processor.
//
// This folder comes first in the include path of the emulated kernels (scripts/emulate.sh), so that
// cpp/core is compiled as it is. SIMDE_NO_NATIVE keeps SIMDe from including the real header.
#pragma once

#include <cmath>

#define SIMDE_NO_NATIVE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

// What SIMDe 0.7.4 lacks or declares wrongly.
typedef simde__mmask16 hiernorm_mmask16;
#undef __mmask16
#define __mmask16 hiernorm_mmask16
typedef simde__mmask8 hiernorm_mmask8;
#undef __mmask8
#define __mmask8 hiernorm_mmask8

#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)

#undef _mm_popcnt_u32
#define _mm_popcnt_u32(a) __builtin_popcount(a)

#if !defined(_mm512_reduce_max_epi32)
static inline int hiernorm_reduce_max_epi32(__m512i a_i32x16) {
    int values[16];
    _mm512_storeu_si512(values, a_i32x16);
    int largest = values[0];
    for (const int value : values) largest = value > largest ? value : largest;
    return largest;
}
#define _mm512_reduce_max_epi32(a) hiernorm_reduce_max_epi32(a)
#endif

#if !defined(_mm512_reduce_add_epi32)
static inline int hiernorm_reduce_add_epi32(__m512i a_i32x16) {
    unsigned values[16];  // the instruction wraps around
    _mm512_storeu_si512(values, a_i32x16);
    unsigned sum = 0;
    for (const unsigned value : values) sum += value;
    return static_cast<int>(sum);
}
#define _mm512_reduce_add_epi32(a) hiernorm_reduce_add_epi32(a)
#endif

#if !defined(_mm512_shuffle_f32x4)
#define _mm512_shuffle_f32x4(a, b, imm8)           \
    simde_mm512_castsi512_ps(simde_mm512_shuffle_i32x4( \
        simde_mm512_castps_si512(a), simde_mm512_castps_si512(b), imm8))
#endif

#if !defined(_mm512_cvtps_pd)
static inline __m512d hiernorm_cvtps_pd(__m256 a_f32x8) {
    float narrow[8];
    double wide[8];
    _mm256_storeu_ps(narrow, a_f32x8);
    for (int lane = 0; lane < 8; ++lane) wide[lane] = narrow[lane];
    return _mm512_loadu_pd(wide);
}
#define _mm512_cvtps_pd(a) hiernorm_cvtps_pd(a)
#endif

#if !defined(_mm512_cvtepi32_pd)
static inline __m512d hiernorm_cvtepi32_pd(__m256i a_i32x8) {
    int narrow[8];
    double wide[8];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(narrow), a_i32x8);
    for (int lane = 0; lane < 8; ++lane) wide[lane] = narrow[lane];
    return _mm512_loadu_pd(wide);
}
#define _mm512_cvtepi32_pd(a) hiernorm_cvtepi32_pd(a)
#endif

#if !defined(_mm512_cvtpd_epi32)
static inline __m256i hiernorm_cvtpd_epi32(__m512d a_f64x8) {
    double wide[8];
    int narrow[8];
    _mm512_storeu_pd(wide, a_f64x8);
    for (int lane = 0; lane < 8; ++lane)
        narrow[lane] = static_cast<int>(std::nearbyint(wide[lane]));
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(narrow));
}
#define _mm512_cvtpd_epi32(a) hiernorm_cvtpd_epi32(a)
#endif

#if !defined(_mm512_maskz_loadu_ps)
static inline __m512 hiernorm_maskz_loadu_ps(__mmask16 mask, const float* values) {
    float lanes[16];
    for (int lane = 0; lane < 16; ++lane) lanes[lane] = (mask >> lane & 1) != 0 ? values[lane] : 0;
    return _mm512_loadu_ps(lanes);
}
#define _mm512_maskz_loadu_ps(mask, values) hiernorm_maskz_loadu_ps(mask, values)
#endif

#if !defined(_mm512_cvtepi32_epi16)
static inline __m256i hiernorm_cvtepi32_epi16(__m512i a_i32x16) {
    int wide[16];
    short narrow[16];  // the instruction drops the upper half
    _mm512_storeu_si512(wide, a_i32x16);
    for (int lane = 0; lane < 16; ++lane) narrow[lane] = static_cast<short>(wide[lane]);
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(narrow));
}
#define _mm512_cvtepi32_epi16(a) hiernorm_cvtepi32_epi16(a)
#endif

#if !defined(_mm512_cvtepu8_epi32)
static inline __m512i hiernorm_cvtepu8_epi32(__m128i a_u8x16) {
    unsigned char narrow[16];
    int wide[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(narrow), a_u8x16);
    for (int lane = 0; lane < 16; ++lane) wide[lane] = narrow[lane];
    return _mm512_loadu_si512(wide);
}
#define _mm512_cvtepu8_epi32(a) hiernorm_cvtepu8_epi32(a)
#endif

#if !defined(_mm512_alignr_epi32)
static inline __m512i hiernorm_alignr_epi32(__m512i high_i32x16, __m512i low_i32x16, int by) {
    int both[32];
    _mm512_storeu_si512(both, low_i32x16);
    _mm512_storeu_si512(both + 16, high_i32x16);
    return _mm512_loadu_si512(both + by);
}
#define _mm512_alignr_epi32(high, low, by) hiernorm_alignr_epi32(high, low, by)
#endif
