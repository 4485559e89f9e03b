// AVX2: maddubs forms pairs of products in int16, two halves per entry; their sums wrap modulo 2^16
// on the way but end inside int16 (see kPartialLimit), then madd joins the halves in int32.
#include <immintrin.h>

#include "kernels/avx2_stages.hpp"
#include "kernels/generic.hpp"

namespace hiernorm {
namespace {

struct Avx2Isa {
    struct Scores {
        __m256i low_i32x8, high_i32x8;
    };

    static Scores splat(std::int32_t value) {
        return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
    }
    static Scores load(const std::int32_t* scores) {
        const auto* from = reinterpret_cast<const __m256i*>(scores);
        return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
    }
    static void store(std::int32_t* out, const Scores& block) {
        auto* to = reinterpret_cast<__m256i*>(out);
        _mm256_storeu_si256(to, block.low_i32x8);
        _mm256_storeu_si256(to + 1, block.high_i32x8);
    }
    static std::uint32_t mask_of(__m256i lanes_i32x8) {
        return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes_i32x8)));
    }
    static std::uint32_t above(const Scores& block, std::int32_t cut) {
        const __m256i cut_i32x8 = _mm256_set1_epi32(cut);
        return mask_of(_mm256_cmpgt_epi32(block.low_i32x8, cut_i32x8)) |
               mask_of(_mm256_cmpgt_epi32(block.high_i32x8, cut_i32x8)) << 8;
    }
    static bool any_above(const Scores& block, std::int32_t cut) {
        const __m256i larger_i32x8 = _mm256_max_epi32(block.low_i32x8, block.high_i32x8);
        return mask_of(_mm256_cmpgt_epi32(larger_i32x8, _mm256_set1_epi32(cut))) != 0;
    }
    // Moves the lanes above the cut to the front and stores them as candidates; no branch.
    static std::size_t append_eight(__m256i scores_i32x8, __m256i cut_i32x8, std::uint32_t position,
                                    Candidate* out) {
        const std::uint32_t mask = mask_of(_mm256_cmpgt_epi32(scores_i32x8, cut_i32x8));
        const __m256i lanes_i32x8 = _mm256_cvtepu8_epi32(
            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLaneTable.lanes[mask])));
        const __m256i positions_u32x8 =
            _mm256_add_epi32(lanes_i32x8, _mm256_set1_epi32(static_cast<std::int32_t>(position)));
        const __m256i found_i32x8 = _mm256_permutevar8x32_epi32(scores_i32x8, lanes_i32x8);
        const __m256i even_i32x8 = _mm256_unpacklo_epi32(positions_u32x8, found_i32x8);
        const __m256i odd_i32x8 = _mm256_unpackhi_epi32(positions_u32x8, found_i32x8);
        auto* to = reinterpret_cast<__m256i*>(out);
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(even_i32x8, odd_i32x8, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even_i32x8, odd_i32x8, 0x31));
        return static_cast<std::size_t>(_mm_popcnt_u32(mask));
    }
    static std::size_t append(const Scores& block, std::int32_t cut, std::uint32_t position,
                              Candidate* out, bool /*few*/) {
        const __m256i cut_i32x8 = _mm256_set1_epi32(cut);
        const std::size_t low = append_eight(block.low_i32x8, cut_i32x8, position, out);
        return low + append_eight(block.high_i32x8, cut_i32x8, position + 8, out + low);
    }
    static std::size_t append_numbers(const Scores& block, std::int32_t cut, std::uint16_t first,
                                      std::uint16_t* out) {
        return append_bits(above(block, cut), first, out);
    }
    static Scores maximum(const Scores& a, const Scores& b) {
        return {_mm256_max_epi32(a.low_i32x8, b.low_i32x8),
                _mm256_max_epi32(a.high_i32x8, b.high_i32x8)};
    }
    static __m256i unless_above(__m256i block_i32x8, __m256i cut_i32x8) {
        return _mm256_blendv_epi8(block_i32x8, _mm256_set1_epi32(kLowest),
                                  _mm256_cmpgt_epi32(block_i32x8, cut_i32x8));
    }
    static Scores maximum_below(const Scores& a, const Scores& b, std::int32_t cut) {
        const __m256i cut_i32x8 = _mm256_set1_epi32(cut);
        return maximum(
            a, {unless_above(b.low_i32x8, cut_i32x8), unless_above(b.high_i32x8, cut_i32x8)});
    }
    static std::int32_t horizontal_maximum(const Scores& block) {
        const __m256i larger_i32x8 = _mm256_max_epi32(block.low_i32x8, block.high_i32x8);
        __m128i top_i32x4 = _mm_max_epi32(_mm256_castsi256_si128(larger_i32x8),
                                          _mm256_extracti128_si256(larger_i32x8, 1));
        top_i32x4 = _mm_max_epi32(top_i32x4, _mm_shuffle_epi32(top_i32x4, 0x4e));
        top_i32x4 = _mm_max_epi32(top_i32x4, _mm_shuffle_epi32(top_i32x4, 0xb1));
        return _mm_cvtsi128_si32(top_i32x4);
    }
    static Scores insert(const Scores& best, std::int32_t score) {
        return insert_one_by_one<Avx2Isa>(best, score);
    }

    // Adds one group of a block to the int16 halves of its 16 entries.
    static void add_group(const std::uint8_t* line, __m256i query_i8x32, __m256i& low_i16x16,
                          __m256i& high_i16x16) {
        const auto* from = reinterpret_cast<const __m256i*>(line);
        low_i16x16 = _mm256_add_epi16(low_i16x16,
                                      _mm256_maddubs_epi16(_mm256_load_si256(from), query_i8x32));
        high_i16x16 = _mm256_add_epi16(
            high_i16x16, _mm256_maddubs_epi16(_mm256_load_si256(from + 1), query_i8x32));
    }
    static __m256i query_group(const ScanQuery& query, std::size_t group) {
        std::int32_t four;
        std::memcpy(&four, query.codes + group * kGroupSlots, sizeof four);
        return _mm256_set1_epi32(four);
    }
    // Minus the correction, per half; adding it first keeps the wrapped sums right.
    static __m256i start_of_burst(const ScanQuery& query, std::size_t burst) {
        std::uint16_t halves[2];
        std::memcpy(halves, query.half_corrections + 2 * burst, sizeof halves);
        const auto minus = [](std::uint16_t half) { return static_cast<std::uint16_t>(-half); };
        return _mm256_set1_epi32(static_cast<std::int32_t>(std::uint32_t{minus(halves[0])} |
                                                           std::uint32_t{minus(halves[1])} << 16));
    }

    template <std::size_t Groups>
    struct FixedQuery {
        explicit FixedQuery(const ScanQuery& query) : start_i16x16(start_of_burst(query, 0)) {
            for (std::size_t group = 0; group < Groups; ++group) {
                groups_i8x32[group] = query_group(query, group);
            }
        }
        Scores score(const std::uint8_t* block) const {
            __m256i low_i16x16 = start_i16x16;
            __m256i high_i16x16 = start_i16x16;
            for (std::size_t group = 0; group < Groups; ++group) {
                add_group(block + group * kLineBytes, groups_i8x32[group], low_i16x16, high_i16x16);
            }
            const __m256i ones_i16x16 = _mm256_set1_epi16(1);
            return {_mm256_madd_epi16(low_i16x16, ones_i16x16),
                    _mm256_madd_epi16(high_i16x16, ones_i16x16)};
        }
        __m256i start_i16x16;
        __m256i groups_i8x32[Groups];
    };

    static constexpr std::size_t kLongBlocks = 2;
    static constexpr std::size_t kSharedQueries = 2;
    static constexpr std::size_t kSharedBlocks = 2;
    template <std::size_t Queries, std::size_t Blocks>
    static void score_shared(const ScanQuery* queries, const std::uint8_t* blocks, Scores* scores) {
        const __m256i ones_i16x16 = _mm256_set1_epi16(1);
        const std::size_t groups = queries[0].groups;
        repeat<Queries * Blocks>([&](auto i) { scores[i] = splat(0); });
        for (std::size_t first = 0; first < groups; first += kBurstGroups) {
            const std::size_t rest = groups - first;
            const std::size_t last = first + (rest < kBurstGroups ? rest : kBurstGroups);
            __m256i low_i16x16[Queries * Blocks], high_i16x16[Queries * Blocks];
            repeat<Queries * Blocks>([&](auto i) {
                low_i16x16[i] = start_of_burst(queries[i / Blocks], first / kBurstGroups);
                high_i16x16[i] = low_i16x16[i];
            });
            for (std::size_t group = first; group < last; ++group) {
                repeat<Queries>([&](auto q) {
                    const __m256i query_i8x32 = query_group(queries[q], group);
                    repeat<Blocks>([&](auto b) {
                        add_group(blocks + (b * groups + group) * kLineBytes, query_i8x32,
                                  low_i16x16[q * Blocks + b], high_i16x16[q * Blocks + b]);
                    });
                });
            }
            repeat<Queries * Blocks>([&](auto i) {
                scores[i].low_i32x8 = _mm256_add_epi32(
                    scores[i].low_i32x8, _mm256_madd_epi16(low_i16x16[i], ones_i16x16));
                scores[i].high_i32x8 = _mm256_add_epi32(
                    scores[i].high_i32x8, _mm256_madd_epi16(high_i16x16[i], ones_i16x16));
            });
        }
    }

    using StageQuery = Avx2StageQuery;

    struct Lanes {
        __m256d f64x4[4];
    };
    static constexpr std::size_t kLaneSums = 2;
    static Lanes zero_lanes() {
        const __m256d zero = _mm256_setzero_pd();
        return {{zero, zero, zero, zero}};
    }
    static Lanes add_lanes(Lanes lanes, const double* query, const float* row) {
        for (int part = 0; part < 4; ++part) {
            const __m256d product_f64x4 = _mm256_mul_pd(
                _mm256_loadu_pd(query + 4 * part), _mm256_cvtps_pd(_mm_loadu_ps(row + 4 * part)));
            lanes.f64x4[part] = _mm256_add_pd(lanes.f64x4[part], product_f64x4);
        }
        return lanes;
    }
    static double fold(const Lanes& lanes) {
        return fold_four(_mm256_add_pd(_mm256_add_pd(lanes.f64x4[0], lanes.f64x4[2]),
                                       _mm256_add_pd(lanes.f64x4[1], lanes.f64x4[3])));
    }
    static double fold_four(__m256d four_f64x4) {
        const __m128d two_f64x2 =
            _mm_add_pd(_mm256_castpd256_pd128(four_f64x4), _mm256_extractf128_pd(four_f64x4, 1));
        return _mm_cvtsd_f64(_mm_add_sd(two_f64x2, _mm_unpackhi_pd(two_f64x2, two_f64x2)));
    }

    struct CodingLanes {
        __m256d low_f64x4, high_f64x4;
    };
    static CodingLanes zero_coding_lanes() { return {_mm256_setzero_pd(), _mm256_setzero_pd()}; }
    // Codes four values; rounding to the nearest integer is the conversion's own.
    static __m128i code_four(const double* values, double inverse, double step,
                             __m256d& squares_f64x4) {
        const __m256d values_f64x4 = _mm256_loadu_pd(values);
        const __m128i codes_i32x4 =
            _mm256_cvtpd_epi32(_mm256_mul_pd(values_f64x4, _mm256_set1_pd(inverse)));
        const __m256d error_f64x4 = _mm256_sub_pd(
            values_f64x4, _mm256_mul_pd(_mm256_cvtepi32_pd(codes_i32x4), _mm256_set1_pd(step)));
        squares_f64x4 = _mm256_add_pd(squares_f64x4, _mm256_mul_pd(error_f64x4, error_f64x4));
        return codes_i32x4;
    }
    static CodingLanes code_lanes(CodingLanes squares, const double* values, double inverse,
                                  double step, std::int8_t* codes) {
        const __m128i low_i32x4 = code_four(values, inverse, step, squares.low_f64x4);
        const __m128i high_i32x4 = code_four(values + 4, inverse, step, squares.high_f64x4);
        const __m128i codes_i16x8 = _mm_packs_epi32(low_i32x4, high_i32x4);
        _mm_storel_epi64(reinterpret_cast<__m128i*>(codes),
                         _mm_packs_epi16(codes_i16x8, codes_i16x8));
        return squares;
    }
    static CodingLanes square_lanes(CodingLanes squares, const double* values) {
        const __m256d low_f64x4 = _mm256_loadu_pd(values);
        const __m256d high_f64x4 = _mm256_loadu_pd(values + 4);
        return {_mm256_add_pd(squares.low_f64x4, _mm256_mul_pd(low_f64x4, low_f64x4)),
                _mm256_add_pd(squares.high_f64x4, _mm256_mul_pd(high_f64x4, high_f64x4))};
    }
    static double fold_coding_lanes(const CodingLanes& squares) {
        return fold_four(_mm256_add_pd(squares.low_f64x4, squares.high_f64x4));
    }

    static void score_block_f32(const float* block, const float* query, std::size_t dims,
                                float* scores) {
        __m256 low_f32x8 = _mm256_setzero_ps();
        __m256 high_f32x8 = _mm256_setzero_ps();
        for (std::size_t j = 0; j < dims; ++j) {
            const __m256 query_f32x8 = _mm256_set1_ps(query[j]);
            low_f32x8 = _mm256_add_ps(
                low_f32x8, _mm256_mul_ps(query_f32x8, _mm256_loadu_ps(block + j * kBlockEntries)));
            high_f32x8 = _mm256_add_ps(
                high_f32x8,
                _mm256_mul_ps(query_f32x8, _mm256_loadu_ps(block + j * kBlockEntries + 8)));
        }
        _mm256_storeu_ps(scores, low_f32x8);
        _mm256_storeu_ps(scores + 8, high_f32x8);
    }

    struct FloatLanes {
        __m256 low_f32x8, high_f32x8;
    };
    static constexpr std::size_t kFloatSums = 4;
    static FloatLanes zero_floats() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
    static FloatLanes load_floats(const float* values) {
        return {_mm256_loadu_ps(values), _mm256_loadu_ps(values + 8)};
    }
    static FloatLanes load_first_floats(const float* values, std::size_t count) {
        const __m256i wanted_i32x8 = _mm256_set1_epi32(static_cast<int>(count));
        const __m256i low_i32x8 = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i high_i32x8 = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
        return {_mm256_maskload_ps(values, _mm256_cmpgt_epi32(wanted_i32x8, low_i32x8)),
                _mm256_maskload_ps(values + 8, _mm256_cmpgt_epi32(wanted_i32x8, high_i32x8))};
    }
    static FloatLanes multiply_add_floats(FloatLanes sums, FloatLanes a, FloatLanes b) {
        return add_floats(sums, multiply_floats(a, b));
    }
    static FloatLanes maximum_floats(FloatLanes a, FloatLanes b) {
        return {_mm256_max_ps(a.low_f32x8, b.low_f32x8), _mm256_max_ps(a.high_f32x8, b.high_f32x8)};
    }
    static std::uint32_t floats_below(const FloatLanes& lanes, float cut) {
        const __m256 cut_f32x8 = _mm256_set1_ps(cut);
        const int low = _mm256_movemask_ps(_mm256_cmp_ps(lanes.low_f32x8, cut_f32x8, _CMP_LT_OQ));
        const int high = _mm256_movemask_ps(_mm256_cmp_ps(lanes.high_f32x8, cut_f32x8, _CMP_LT_OQ));
        return static_cast<std::uint32_t>(low | high << 8);
    }
    static __m256 maximum_below_cut(__m256 a_f32x8, __m256 b_f32x8, __m256 cut_f32x8) {
        const __m256 below_f32x8 = _mm256_cmp_ps(b_f32x8, cut_f32x8, _CMP_LT_OQ);
        return _mm256_max_ps(a_f32x8, _mm256_blendv_ps(a_f32x8, b_f32x8, below_f32x8));
    }
    static FloatLanes maximum_floats_below(const FloatLanes& a, const FloatLanes& b, float cut) {
        const __m256 cut_f32x8 = _mm256_set1_ps(cut);
        return {maximum_below_cut(a.low_f32x8, b.low_f32x8, cut_f32x8),
                maximum_below_cut(a.high_f32x8, b.high_f32x8, cut_f32x8)};
    }
    static FloatLanes add_floats(FloatLanes a, FloatLanes b) {
        return {_mm256_add_ps(a.low_f32x8, b.low_f32x8), _mm256_add_ps(a.high_f32x8, b.high_f32x8)};
    }
    static FloatLanes subtract_floats(FloatLanes a, FloatLanes b) {
        return {_mm256_sub_ps(a.low_f32x8, b.low_f32x8), _mm256_sub_ps(a.high_f32x8, b.high_f32x8)};
    }
    static FloatLanes multiply_floats(FloatLanes a, FloatLanes b) {
        return {_mm256_mul_ps(a.low_f32x8, b.low_f32x8), _mm256_mul_ps(a.high_f32x8, b.high_f32x8)};
    }
    static constexpr std::size_t kPanelLanes = 1;
    static constexpr std::size_t kPanelSums = 6;
    static FloatLanes splat_floats(float value) {
        return {_mm256_set1_ps(value), _mm256_set1_ps(value)};
    }
    static void store_floats(float* out, FloatLanes lanes) {
        _mm256_storeu_ps(out, lanes.low_f32x8);
        _mm256_storeu_ps(out + 8, lanes.high_f32x8);
    }
    static std::uint32_t not_below(FloatLanes a, FloatLanes b) {
        const auto mask = [](__m256 x_f32x8, __m256 y_f32x8) {
            return static_cast<std::uint32_t>(
                _mm256_movemask_ps(_mm256_cmp_ps(x_f32x8, y_f32x8, _CMP_GE_OQ)));
        };
        return mask(a.low_f32x8, b.low_f32x8) | mask(a.high_f32x8, b.high_f32x8) << 8;
    }
    // Four blocks of 8 x 8.
    static void transpose_floats(const float* from, std::size_t from_stride, float* to,
                                 std::size_t to_stride) {
        for (std::size_t r = 0; r < kLanes; r += 8) {
            for (std::size_t j = 0; j < kLanes; j += 8) {
                const float* block = from + r * from_stride + j;
                __m256 pairs[8], fours[8];
                repeat<4>([&](auto i) {
                    const __m256 a_f32x8 = _mm256_loadu_ps(block + 2 * i * from_stride);
                    const __m256 b_f32x8 = _mm256_loadu_ps(block + (2 * i + 1) * from_stride);
                    pairs[2 * i] = _mm256_unpacklo_ps(a_f32x8, b_f32x8);
                    pairs[2 * i + 1] = _mm256_unpackhi_ps(a_f32x8, b_f32x8);
                });
                repeat<4>([&](auto i) {
                    const __m256 a_f32x8 = pairs[4 * (i / 2) + i % 2];
                    const __m256 b_f32x8 = pairs[4 * (i / 2) + i % 2 + 2];
                    fours[4 * (i / 2) + 2 * (i % 2)] = _mm256_shuffle_ps(a_f32x8, b_f32x8, 0x44);
                    fours[4 * (i / 2) + 2 * (i % 2) + 1] =
                        _mm256_shuffle_ps(a_f32x8, b_f32x8, 0xee);
                });
                repeat<4>([&](auto i) {
                    _mm256_storeu_ps(to + (j + i) * to_stride + r,
                                     _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20));
                    _mm256_storeu_ps(to + (j + i + 4) * to_stride + r,
                                     _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31));
                });
            }
        }
    }
    // Every step halves the lanes of two registers into one.
    static void fold_floats(const FloatLanes* sums, float* folded) {
        __m256 eights[4], fours[2];
        repeat<4>(
            [&](auto i) { eights[i] = _mm256_add_ps(sums[i].low_f32x8, sums[i].high_f32x8); });
        repeat<2>([&](auto i) {
            fours[i] =
                _mm256_add_ps(_mm256_permute2f128_ps(eights[2 * i], eights[2 * i + 1], 0x20),
                              _mm256_permute2f128_ps(eights[2 * i], eights[2 * i + 1], 0x31));
        });
        const __m256 twos_f32x8 = _mm256_add_ps(_mm256_shuffle_ps(fours[0], fours[1], 0x44),
                                                _mm256_shuffle_ps(fours[0], fours[1], 0xee));
        const __m256 ones_f32x8 = _mm256_add_ps(_mm256_shuffle_ps(twos_f32x8, twos_f32x8, 0x88),
                                                _mm256_shuffle_ps(twos_f32x8, twos_f32x8, 0xdd));
        // Sums 0 and 2 are in the lower half, 1 and 3 in the upper one.
        _mm_storeu_ps(folded, _mm_unpacklo_ps(_mm256_castps256_ps128(ones_f32x8),
                                              _mm256_extractf128_ps(ones_f32x8, 1)));
    }
};

}  // namespace

extern const Kernels kAvx2Kernels;
const Kernels kAvx2Kernels = make_kernels<Avx2Isa>("avx2");

}  // namespace hiernorm
