// AVX-512 VNNI: dpbusd multiplies four slots and adds them in int32 in one instruction.
#include "kernels/avx512.hpp"
#include "kernels/avx512_stages.hpp"

namespace hiernorm {
namespace {

struct MultiplyFours {
    static __m512i products(__m512i row_u8x64, __m512i query_i8x64) {
        return _mm512_dpbusd_epi32(_mm512_setzero_si512(), row_u8x64, query_i8x64);
    }
};

// GCC 12 copies an operand of dpbusd in every step if its type is not that of the instruction.
#if defined(__GNUC__) && !defined(SIMDE_NO_NATIVE)
using Fours = __v16si;
#else
using Fours = __m512i;
#endif

struct Avx512VnniIsa : Avx512Common {
    using ProductSums = Fours;
    template <std::size_t Groups>
    struct FixedQuery {
        explicit FixedQuery(const ScanQuery& query) : start_i32x16(splat(-query.correction)) {
            for (std::size_t group = 0; group < Groups; ++group) {
                groups_i8x64[group] = query_group(query, group);
            }
        }
        Scores score(const std::uint8_t* block) const {
            __m512i sums_i32x16 = start_i32x16;
            for (std::size_t group = 0; group < Groups; ++group) {
                sums_i32x16 =
                    _mm512_dpbusd_epi32(sums_i32x16, _mm512_loadu_si512(block + group * kLineBytes),
                                        groups_i8x64[group]);
            }
            return sums_i32x16;
        }
        __m512i start_i32x16;
        __m512i groups_i8x64[Groups];
    };

    static constexpr std::size_t kLongBlocks = 4;
    static constexpr std::size_t kSharedQueries = 4;
    static constexpr std::size_t kSharedBlocks = 4;
    template <std::size_t Queries, std::size_t Blocks>
    static void score_shared(const ScanQuery* queries, const std::uint8_t* blocks, Scores* scores) {
        Fours sums_i32x16[Queries * Blocks];
        repeat<Queries * Blocks>(
            [&](auto i) { sums_i32x16[i] = (Fours)splat(-queries[i / Blocks].correction); });
        const std::size_t groups = queries[0].groups;
        for (std::size_t group = 0; group < groups; ++group) {
            Fours lines_u8x64[Blocks];
            repeat<Blocks>([&](auto b) {
                lines_u8x64[b] = load_fours(blocks + (b * groups + group) * kLineBytes);
            });
            repeat<Queries>([&](auto q) {
                const Fours query_i8x64 = splat_four(queries[q].codes + group * kGroupSlots);
                repeat<Blocks>([&](auto b) {
                    Fours& sum_i32x16 = sums_i32x16[q * Blocks + b];
                    sum_i32x16 = add_products(sum_i32x16, lines_u8x64[b], query_i8x64);
                });
            });
        }
        repeat<Queries * Blocks>([&](auto i) { scores[i] = scores_of(sums_i32x16[i]); });
    }

    static Fours start_products(const std::int32_t* offsets, std::int32_t cut) {
        return (Fours)_mm512_sub_epi32(_mm512_loadu_si512(offsets), _mm512_set1_epi32(cut));
    }
    static Fours load_fours(const std::uint8_t* line) { return (Fours)_mm512_loadu_si512(line); }
    static Fours splat_four(const std::int8_t* query) {
        std::int32_t four;
        std::memcpy(&four, query, sizeof four);
        return (Fours)_mm512_set1_epi32(four);
    }
    static Fours add_products(Fours sums_i32x16, Fours row_u8x64, Fours query_i8x64) {
        return (Fours)_mm512_dpbusd_epi32((__m512i)sums_i32x16, (__m512i)row_u8x64,
                                          (__m512i)query_i8x64);
    }
    static Scores scores_of(Fours sums_i32x16) { return (__m512i)sums_i32x16; }
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the lowest bits.
    static FloatLanes code_four(const float* const* four, float inverse, float step,
                                std::uint8_t* codes, FloatLanes squares_f32x16) {
        const __m512 magic_f32x16 = _mm512_set1_ps(0x1.8p23f);
        __m512i codes_u8x64 = _mm512_set1_epi32(static_cast<int>(0x80808080u));
        repeat<4>([&](auto i) {
            const __m512 values_f32x16 = _mm512_loadu_ps(four[i]);
            const __m512 coded_f32x16 =
                _mm512_add_ps(_mm512_mul_ps(values_f32x16, _mm512_set1_ps(inverse)), magic_f32x16);
            const __m512 rest_f32x16 = _mm512_sub_ps(
                values_f32x16,
                _mm512_mul_ps(_mm512_sub_ps(coded_f32x16, magic_f32x16), _mm512_set1_ps(step)));
            squares_f32x16 = _mm512_add_ps(squares_f32x16, _mm512_mul_ps(rest_f32x16, rest_f32x16));
            const __m512i byte_i32x16 =
                _mm512_and_si512(_mm512_castps_si512(coded_f32x16), _mm512_set1_epi32(0xff));
            // Bit 7 is turned over: plus 128.
            codes_u8x64 = _mm512_xor_si512(codes_u8x64, _mm512_slli_epi32(byte_i32x16, 8 * i));
        });
        _mm512_storeu_si512(codes, codes_u8x64);
        return squares_f32x16;
    }

    using StageQuery = Avx512StageQuery<MultiplyFours>;
};

}  // namespace

extern const Kernels kAvx512VnniKernels;
const Kernels kAvx512VnniKernels = make_kernels<Avx512VnniIsa>("avx512vnni");

}  // namespace hiernorm
