// What the two AVX-512 families share: one register holds the 16 scores of a block.
#pragma once

#include <immintrin.h>

#include "kernels/generic.hpp"

namespace hiernorm {
namespace {

// The sums over the lanes of 16 registers, one in each lane. Every step halves the lanes of two
// registers into one. It ends with sum 4m + l of the first step's input in lane 4l + m, so that
// input is taken in transposed order.
template <class Add>
__m512 fold_sixteen(const __m512* sums, Add add) {
    __m512 eights[8], fours[4], twos[2];
    repeat<8>([&](auto i) {
        const __m512 a_x16 = sums[4 * (2 * i % 4) + 2 * i / 4];
        const __m512 b_x16 = sums[4 * ((2 * i + 1) % 4) + 2 * i / 4];
        eights[i] =
            add(_mm512_shuffle_f32x4(a_x16, b_x16, 0x44), _mm512_shuffle_f32x4(a_x16, b_x16, 0xee));
    });
    repeat<4>([&](auto i) {
        fours[i] = add(_mm512_shuffle_f32x4(eights[2 * i], eights[2 * i + 1], 0x88),
                       _mm512_shuffle_f32x4(eights[2 * i], eights[2 * i + 1], 0xdd));
    });
    repeat<2>([&](auto i) {
        twos[i] = add(_mm512_shuffle_ps(fours[2 * i], fours[2 * i + 1], 0x44),
                      _mm512_shuffle_ps(fours[2 * i], fours[2 * i + 1], 0xee));
    });
    return add(_mm512_shuffle_ps(twos[0], twos[1], 0x88),
               _mm512_shuffle_ps(twos[0], twos[1], 0xdd));
}

struct Avx512Common {
    using Scores = __m512i;

    static Scores splat(std::int32_t value) { return _mm512_set1_epi32(value); }
    static Scores load(const std::int32_t* scores) { return _mm512_loadu_si512(scores); }
    static void store(std::int32_t* out, Scores block_i32x16) {
        _mm512_storeu_si512(out, block_i32x16);
    }
    static std::uint32_t above(Scores block_i32x16, std::int32_t cut) {
        return _mm512_cmpgt_epi32_mask(block_i32x16, _mm512_set1_epi32(cut));
    }
    static bool any_above(Scores block_i32x16, std::int32_t cut) {
        return above(block_i32x16, cut) != 0;
    }
    // Moves the lanes above the cut to the front and stores them as candidates.
    static std::size_t append(Scores block_i32x16, std::int32_t cut, std::uint32_t position,
                              Candidate* out, bool few) {
        const __mmask16 mask = _mm512_cmpgt_epi32_mask(block_i32x16, _mm512_set1_epi32(cut));
        const __m512i lanes_i32x16 =
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i positions_u32x16 = _mm512_maskz_compress_epi32(
            mask,
            _mm512_add_epi32(lanes_i32x16, _mm512_set1_epi32(static_cast<std::int32_t>(position))));
        const __m512i found_i32x16 = _mm512_maskz_compress_epi32(mask, block_i32x16);
        const __m512i first_i32x16 =
            _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        const auto count = static_cast<std::size_t>(_mm_popcnt_u32(mask));
        _mm512_storeu_si512(
            out, _mm512_permutex2var_epi32(positions_u32x16, first_i32x16, found_i32x16));
        if (!few || count > 8) {
            const __m512i second_i32x16 = _mm512_add_epi32(first_i32x16, _mm512_set1_epi32(8));
            _mm512_storeu_si512(
                out + 8, _mm512_permutex2var_epi32(positions_u32x16, second_i32x16, found_i32x16));
        }
        return count;
    }
    static std::size_t append_numbers(Scores block_i32x16, std::int32_t cut, std::uint16_t first,
                                      std::uint16_t* out) {
        const __mmask16 mask = _mm512_cmpgt_epi32_mask(block_i32x16, _mm512_set1_epi32(cut));
        const __m512i numbers_i32x16 = _mm512_add_epi32(
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
            _mm512_set1_epi32(first));
        _mm256_storeu_si256(
            reinterpret_cast<__m256i*>(out),
            _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(mask, numbers_i32x16)));
        return static_cast<std::size_t>(_mm_popcnt_u32(mask));
    }
    static Scores maximum(Scores a_i32x16, Scores b_i32x16) {
        return _mm512_max_epi32(a_i32x16, b_i32x16);
    }
    static Scores maximum_below(Scores a_i32x16, Scores b_i32x16, std::int32_t cut) {
        const __mmask16 kept = _mm512_cmple_epi32_mask(b_i32x16, _mm512_set1_epi32(cut));
        return _mm512_mask_max_epi32(a_i32x16, kept, a_i32x16, b_i32x16);
    }
    static std::int32_t horizontal_maximum(Scores block_i32x16) {
        return _mm512_reduce_max_epi32(block_i32x16);
    }
    // A lane keeps its score, or takes the new one or that of the lane before it, in this order.
    static Scores insert(Scores best_i32x16, std::int32_t score) {
        const __m512i score_i32x16 = _mm512_set1_epi32(score);
        const __m512i before_i32x16 = _mm512_alignr_epi32(best_i32x16, score_i32x16, 15);
        return _mm512_max_epi32(best_i32x16, _mm512_min_epi32(before_i32x16, score_i32x16));
    }
    static __m512i query_group(const ScanQuery& query, std::size_t group) {
        std::int32_t four;
        std::memcpy(&four, query.codes + group * kGroupSlots, sizeof four);
        return _mm512_set1_epi32(four);
    }

    struct Lanes {
        __m512d low_f64x8, high_f64x8;
    };
    static constexpr std::size_t kLaneSums = 8;
    static Lanes zero_lanes() { return {_mm512_setzero_pd(), _mm512_setzero_pd()}; }
    static Lanes add_lanes(Lanes lanes, const double* query, const float* row) {
        const __m512d low_f64x8 =
            _mm512_mul_pd(_mm512_loadu_pd(query), _mm512_cvtps_pd(_mm256_loadu_ps(row)));
        const __m512d high_f64x8 =
            _mm512_mul_pd(_mm512_loadu_pd(query + 8), _mm512_cvtps_pd(_mm256_loadu_ps(row + 8)));
        return {_mm512_add_pd(lanes.low_f64x8, low_f64x8),
                _mm512_add_pd(lanes.high_f64x8, high_f64x8)};
    }
    static double fold(const Lanes& lanes) {
        return fold_coding_lanes(_mm512_add_pd(lanes.low_f64x8, lanes.high_f64x8));
    }

    using CodingLanes = __m512d;
    static CodingLanes zero_coding_lanes() { return _mm512_setzero_pd(); }
    // Rounding to the nearest integer is the conversion's own.
    static CodingLanes code_lanes(CodingLanes squares_f64x8, const double* values, double inverse,
                                  double step, std::int8_t* codes) {
        const __m512d values_f64x8 = _mm512_loadu_pd(values);
        const __m256i codes_i32x8 =
            _mm512_cvtpd_epi32(_mm512_mul_pd(values_f64x8, _mm512_set1_pd(inverse)));
        const __m512d error_f64x8 = _mm512_sub_pd(
            values_f64x8, _mm512_mul_pd(_mm512_cvtepi32_pd(codes_i32x8), _mm512_set1_pd(step)));
        const __m128i codes_i16x8 = _mm_packs_epi32(_mm256_castsi256_si128(codes_i32x8),
                                                    _mm256_extracti128_si256(codes_i32x8, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(codes),
                         _mm_packs_epi16(codes_i16x8, codes_i16x8));
        return _mm512_add_pd(squares_f64x8, _mm512_mul_pd(error_f64x8, error_f64x8));
    }
    static CodingLanes square_lanes(CodingLanes squares_f64x8, const double* values) {
        const __m512d values_f64x8 = _mm512_loadu_pd(values);
        return _mm512_add_pd(squares_f64x8, _mm512_mul_pd(values_f64x8, values_f64x8));
    }
    static double fold_coding_lanes(CodingLanes lanes_f64x8) {
        const __m256d four_f64x4 = _mm256_add_pd(_mm512_castpd512_pd256(lanes_f64x8),
                                                 _mm512_extractf64x4_pd(lanes_f64x8, 1));
        const __m128d two_f64x2 =
            _mm_add_pd(_mm256_castpd256_pd128(four_f64x4), _mm256_extractf128_pd(four_f64x4, 1));
        return _mm_cvtsd_f64(_mm_add_sd(two_f64x2, _mm_unpackhi_pd(two_f64x2, two_f64x2)));
    }

    static void score_block_f32(const float* block, const float* query, std::size_t dims,
                                float* scores) {
        __m512 sum_f32x16 = _mm512_setzero_ps();
        for (std::size_t j = 0; j < dims; ++j) {
            sum_f32x16 = _mm512_add_ps(sum_f32x16,
                                       _mm512_mul_ps(_mm512_set1_ps(query[j]),
                                                     _mm512_loadu_ps(block + j * kBlockEntries)));
        }
        _mm512_storeu_ps(scores, sum_f32x16);
    }

    using FloatLanes = __m512;
    static constexpr std::size_t kFloatSums = 16;
    static FloatLanes zero_floats() { return _mm512_setzero_ps(); }
    static FloatLanes load_floats(const float* values) { return _mm512_loadu_ps(values); }
    static FloatLanes load_first_floats(const float* values, std::size_t count) {
        return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1u), values);
    }
    static FloatLanes multiply_add_floats(FloatLanes sums_f32x16, FloatLanes a_f32x16,
                                          FloatLanes b_f32x16) {
        return _mm512_fmadd_ps(a_f32x16, b_f32x16, sums_f32x16);
    }
    static FloatLanes maximum_floats(FloatLanes a_f32x16, FloatLanes b_f32x16) {
        return _mm512_max_ps(a_f32x16, b_f32x16);
    }
    static std::uint32_t floats_below(FloatLanes lanes_f32x16, float cut) {
        return _mm512_cmp_ps_mask(lanes_f32x16, _mm512_set1_ps(cut), _CMP_LT_OQ);
    }
    static FloatLanes maximum_floats_below(FloatLanes a_f32x16, FloatLanes b_f32x16, float cut) {
        const __mmask16 below = _mm512_cmp_ps_mask(b_f32x16, _mm512_set1_ps(cut), _CMP_LT_OQ);
        return _mm512_mask_max_ps(a_f32x16, below, a_f32x16, b_f32x16);
    }
    static FloatLanes add_floats(FloatLanes a_f32x16, FloatLanes b_f32x16) {
        return _mm512_add_ps(a_f32x16, b_f32x16);
    }
    static FloatLanes subtract_floats(FloatLanes a_f32x16, FloatLanes b_f32x16) {
        return _mm512_sub_ps(a_f32x16, b_f32x16);
    }
    static FloatLanes multiply_floats(FloatLanes a_f32x16, FloatLanes b_f32x16) {
        return _mm512_mul_ps(a_f32x16, b_f32x16);
    }
    static constexpr std::size_t kPanelLanes = 2;
    static constexpr std::size_t kPanelSums = 24;
    static FloatLanes splat_floats(float value) { return _mm512_set1_ps(value); }
    static void store_floats(float* out, FloatLanes lanes_f32x16) {
        _mm512_storeu_ps(out, lanes_f32x16);
    }
    static std::uint32_t not_below(FloatLanes a_f32x16, FloatLanes b_f32x16) {
        return _mm512_cmp_ps_mask(a_f32x16, b_f32x16, _CMP_GE_OQ);
    }
    // Rows r, r + 4, r + 8, r + 12 share a register of quarters; then 4 x 4 within quarters.
    static void transpose_floats(const float* from, std::size_t from_stride, float* to,
                                 std::size_t to_stride) {
        repeat<4>([&](auto quarter) {
            __m512 rows[4];
            repeat<4>([&](auto r) {
                const float* at = from + r * from_stride + 4 * quarter;
                const auto load = [&](std::size_t row) {
                    return _mm_loadu_ps(at + row * from_stride);
                };
                rows[r] = _mm512_insertf32x4(
                    _mm512_insertf32x4(
                        _mm512_insertf32x4(_mm512_castps128_ps512(load(0)), load(4), 1), load(8),
                        2),
                    load(12), 3);
            });
            const __m512 a_f32x16 = _mm512_unpacklo_ps(rows[0], rows[1]);
            const __m512 b_f32x16 = _mm512_unpackhi_ps(rows[0], rows[1]);
            const __m512 c_f32x16 = _mm512_unpacklo_ps(rows[2], rows[3]);
            const __m512 d_f32x16 = _mm512_unpackhi_ps(rows[2], rows[3]);
            float* out = to + 4 * quarter * to_stride;
            _mm512_storeu_ps(out, _mm512_shuffle_ps(a_f32x16, c_f32x16, 0x44));
            _mm512_storeu_ps(out + to_stride, _mm512_shuffle_ps(a_f32x16, c_f32x16, 0xee));
            _mm512_storeu_ps(out + 2 * to_stride, _mm512_shuffle_ps(b_f32x16, d_f32x16, 0x44));
            _mm512_storeu_ps(out + 3 * to_stride, _mm512_shuffle_ps(b_f32x16, d_f32x16, 0xee));
        });
    }
    static void fold_floats(const FloatLanes* sums, float* folded) {
        const auto add = [](FloatLanes a_f32x16, FloatLanes b_f32x16) {
            return _mm512_add_ps(a_f32x16, b_f32x16);
        };
        _mm512_storeu_ps(folded, fold_sixteen(sums, add));
    }
};

}  // namespace
}  // namespace hiernorm
