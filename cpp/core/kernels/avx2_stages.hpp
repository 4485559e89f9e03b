// The step tighten with AVX2: the bounds of four candidates at a time.
#pragma once

#include <immintrin.h>

#include "kernels/stages.hpp"

namespace hiernorm {
namespace {

struct Avx2StageQuery {
    explicit Avx2StageQuery(const std::int8_t* query)
        : first_i8x32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(query))),
          second_i8x32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + 32))) {}

    __m128i quarters(const std::uint8_t* row) const {
        const __m256i sum_i32x8 =
            _mm256_add_epi32(products(row, first_i8x32), products(row + 32, second_i8x32));
        return _mm_add_epi32(_mm256_castsi256_si128(sum_i32x8),
                             _mm256_extracti128_si256(sum_i32x8, 1));
    }
    std::int32_t dot(const std::uint8_t* row) const {
        __m128i sum_i32x4 = quarters(row);
        sum_i32x4 = _mm_add_epi32(sum_i32x4, _mm_shuffle_epi32(sum_i32x4, 0x4e));
        sum_i32x4 = _mm_add_epi32(sum_i32x4, _mm_shuffle_epi32(sum_i32x4, 0xb1));
        return _mm_cvtsi128_si32(sum_i32x4);
    }
    // Same operations in the same order as stage_bound(), four at a time.
    static constexpr std::size_t kAtOnce = 4;
    std::uint32_t bound(const StageArguments& stage, const Candidate* candidates, double threshold,
                        Bounds<kAtOnce>& found, double* largest) const {
        const std::uint8_t* row[kAtOnce];
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            row[i] = stage_row(stage, candidates[i].position);
        }
        const __m128i minors_i32x4 =
            _mm_hadd_epi32(_mm_hadd_epi32(quarters(row[0]), quarters(row[1])),
                           _mm_hadd_epi32(quarters(row[2]), quarters(row[3])));
        const auto* from = reinterpret_cast<const __m128*>(candidates);
        const __m128i majors_i32x4 = _mm_castps_si128(
            _mm_shuffle_ps(_mm_loadu_ps(reinterpret_cast<const float*>(from)),
                           _mm_loadu_ps(reinterpret_cast<const float*>(from + 1)), 0xdd));
        const __m128i tails_i32x4 =
            _mm_setr_epi32(row[0][kStageBytes - 1], row[1][kStageBytes - 1],
                           row[2][kStageBytes - 1], row[3][kStageBytes - 1]);
        const __m256d majors_f64x4 =
            _mm256_mul_pd(_mm256_set1_pd(stage.major_scale), _mm256_cvtepi32_pd(majors_i32x4));
        const __m256d minors_f64x4 = _mm256_mul_pd(
            _mm256_set1_pd(stage.minor_scale),
            _mm256_cvtepi32_pd(_mm_sub_epi32(minors_i32x4, _mm_set1_epi32(stage.correction))));
        const __m256d tails_f64x4 =
            _mm256_mul_pd(_mm256_set1_pd(stage.tail_scale), _mm256_cvtepi32_pd(tails_i32x4));
        const __m256d bounds_f64x4 = _mm256_add_pd(
            _mm256_add_pd(_mm256_add_pd(_mm256_set1_pd(stage.base), majors_f64x4), minors_f64x4),
            tails_f64x4);
        const __m256d below_f64x4 =
            _mm256_cmp_pd(bounds_f64x4, _mm256_set1_pd(threshold), _CMP_LT_OQ);
        const __m256d largest_f64x4 = _mm256_loadu_pd(largest);
        _mm256_storeu_pd(largest,
                         _mm256_max_pd(largest_f64x4,
                                       _mm256_blendv_pd(largest_f64x4, bounds_f64x4, below_f64x4)));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(found.minors), minors_i32x4);
        _mm256_storeu_pd(found.bounds, bounds_f64x4);
        return static_cast<std::uint32_t>(_mm256_movemask_pd(below_f64x4)) ^ 0xfu;
    }

    // The products of 32 codes, four to a lane: maddubs forms pairs in int16, madd joins two.
    static __m256i products(const std::uint8_t* row, __m256i query_i8x32) {
        const __m256i row_u8x32 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
        return _mm256_madd_epi16(_mm256_maddubs_epi16(row_u8x32, query_i8x32),
                                 _mm256_set1_epi16(1));
    }

    __m256i first_i8x32, second_i8x32;
};

}  // namespace
}  // namespace hiernorm
