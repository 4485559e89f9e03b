// The step tighten with AVX-512: the bounds of sixteen candidates at a time.
#pragma once

#include "kernels/avx512.hpp"
#include "kernels/stages.hpp"

namespace hiernorm {
namespace {

// `Multiply::products(row_u8x64, query_i8x64)` sums the products of 64 codes, four to a lane.
template <class Multiply>
struct Avx512StageQuery {
    static constexpr std::size_t kAtOnce = 16;

    explicit Avx512StageQuery(const std::int8_t* query) : query_i8x64(_mm512_loadu_si512(query)) {}

    std::int32_t dot(const std::uint8_t* row) const {
        return _mm512_reduce_add_epi32(Multiply::products(_mm512_loadu_si512(row), query_i8x64));
    }

    // Same operations in the same order as stage_bound(), sixteen at a time.
    std::uint32_t bound(const StageArguments& stage, const Candidate* candidates, double threshold,
                        Bounds<kAtOnce>& found, double* largest) const {
        __m512 sums_i32x16[kAtOnce];
        __m128i tails_u8x16 = _mm_setzero_si128();
        repeat<kAtOnce>([&](auto l) {
            const std::uint8_t* const row = stage_row(stage, candidates[l].position);
            sums_i32x16[l] =
                _mm512_castsi512_ps(Multiply::products(_mm512_loadu_si512(row), query_i8x64));
            tails_u8x16 = _mm_insert_epi8(tails_u8x16, row[kStageBytes - 1], l);
        });
        const __m512i minors_i32x16 =
            _mm512_castps_si512(fold_sixteen(sums_i32x16, [](__m512 a_i32x16, __m512 b_i32x16) {
                return _mm512_castsi512_ps(
                    _mm512_add_epi32(_mm512_castps_si512(a_i32x16), _mm512_castps_si512(b_i32x16)));
            }));
        const __m512i scores_i32x16 =
            _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i majors_i32x16 =
            _mm512_permutex2var_epi32(_mm512_loadu_si512(candidates), scores_i32x16,
                                      _mm512_loadu_si512(candidates + kAtOnce / 2));
        const __m512i corrected_i32x16 =
            _mm512_sub_epi32(minors_i32x16, _mm512_set1_epi32(stage.correction));
        const __m512i tails_i32x16 = _mm512_cvtepu8_epi32(tails_u8x16);
        _mm512_storeu_si512(found.minors, minors_i32x16);
        std::uint32_t below = 0;
        repeat<2>([&](auto half) {
            const auto doubles = [&](__m512i values_i32x16) {
                return _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(values_i32x16, half));
            };
            const __m512d majors_f64x8 =
                _mm512_mul_pd(_mm512_set1_pd(stage.major_scale), doubles(majors_i32x16));
            const __m512d minors_f64x8 =
                _mm512_mul_pd(_mm512_set1_pd(stage.minor_scale), doubles(corrected_i32x16));
            const __m512d tails_f64x8 =
                _mm512_mul_pd(_mm512_set1_pd(stage.tail_scale), doubles(tails_i32x16));
            const __m512d bounds_f64x8 =
                _mm512_add_pd(_mm512_add_pd(_mm512_add_pd(_mm512_set1_pd(stage.base), majors_f64x8),
                                            minors_f64x8),
                              tails_f64x8);
            const __mmask8 ruled_out =
                _mm512_cmp_pd_mask(bounds_f64x8, _mm512_set1_pd(threshold), _CMP_LT_OQ);
            const __m512d largest_f64x8 = _mm512_loadu_pd(largest + 8 * half);
            _mm512_storeu_pd(largest + 8 * half, _mm512_mask_max_pd(largest_f64x8, ruled_out,
                                                                    largest_f64x8, bounds_f64x8));
            _mm512_storeu_pd(found.bounds + 8 * half, bounds_f64x8);
            below |= std::uint32_t{ruled_out} << (8 * half);
        });
        return below ^ 0xffffu;
    }

    __m512i query_i8x64;
};

}  // namespace
}  // namespace hiernorm
