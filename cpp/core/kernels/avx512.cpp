// AVX-512 without VNNI (F, BW, DQ, VL): the AVX2 scheme on registers twice as wide.
#include "kernels/avx512.hpp"
#include "kernels/avx512_stages.hpp"

namespace hiernorm {
namespace {

// maddubs forms pairs of products in int16, madd joins two pairs.
struct MultiplyPairs {
    static __m512i products(__m512i row_u8x64, __m512i query_i8x64) {
        return _mm512_madd_epi16(_mm512_maddubs_epi16(row_u8x64, query_i8x64),
                                 _mm512_set1_epi16(1));
    }
};

struct Avx512Isa : Avx512Common {
    static __m512i start_of_burst(const ScanQuery& query, std::size_t burst) {
        std::uint16_t halves[2];
        std::memcpy(halves, query.half_corrections + 2 * burst, sizeof halves);
        const auto minus = [](std::uint16_t half) { return static_cast<std::uint16_t>(-half); };
        return _mm512_set1_epi32(static_cast<std::int32_t>(std::uint32_t{minus(halves[0])} |
                                                           std::uint32_t{minus(halves[1])} << 16));
    }
    static __m512i add_group(__m512i halves_i16x32, const std::uint8_t* line, __m512i query_i8x64) {
        return _mm512_add_epi16(halves_i16x32,
                                _mm512_maddubs_epi16(_mm512_loadu_si512(line), query_i8x64));
    }
    static __m512i join_halves(__m512i halves_i16x32) {
        return _mm512_madd_epi16(halves_i16x32, _mm512_set1_epi16(1));
    }

    template <std::size_t Groups>
    struct FixedQuery {
        explicit FixedQuery(const ScanQuery& query) : start_i16x32(start_of_burst(query, 0)) {
            for (std::size_t group = 0; group < Groups; ++group) {
                groups_i8x64[group] = query_group(query, group);
            }
        }
        Scores score(const std::uint8_t* block) const {
            __m512i halves_i16x32 = start_i16x32;
            for (std::size_t group = 0; group < Groups; ++group) {
                halves_i16x32 =
                    add_group(halves_i16x32, block + group * kLineBytes, groups_i8x64[group]);
            }
            return join_halves(halves_i16x32);
        }
        __m512i start_i16x32;
        __m512i groups_i8x64[Groups];
    };

    static constexpr std::size_t kLongBlocks = 4;
    static constexpr std::size_t kSharedQueries = 4;
    static constexpr std::size_t kSharedBlocks = 2;
    template <std::size_t Queries, std::size_t Blocks>
    static void score_shared(const ScanQuery* queries, const std::uint8_t* blocks, Scores* scores) {
        const std::size_t groups = queries[0].groups;
        repeat<Queries * Blocks>([&](auto i) { scores[i] = _mm512_setzero_si512(); });
        for (std::size_t first = 0; first < groups; first += kBurstGroups) {
            const std::size_t rest = groups - first;
            const std::size_t last = first + (rest < kBurstGroups ? rest : kBurstGroups);
            __m512i halves_i16x32[Queries * Blocks];
            repeat<Queries * Blocks>([&](auto i) {
                halves_i16x32[i] = start_of_burst(queries[i / Blocks], first / kBurstGroups);
            });
            for (std::size_t group = first; group < last; ++group) {
                repeat<Queries>([&](auto q) {
                    const __m512i query_i8x64 = query_group(queries[q], group);
                    repeat<Blocks>([&](auto b) {
                        __m512i& halves = halves_i16x32[q * Blocks + b];
                        halves = add_group(halves, blocks + (b * groups + group) * kLineBytes,
                                           query_i8x64);
                    });
                });
            }
            repeat<Queries * Blocks>([&](auto i) {
                scores[i] = _mm512_add_epi32(scores[i], join_halves(halves_i16x32[i]));
            });
        }
    }

    using StageQuery = Avx512StageQuery<MultiplyPairs>;
};

}  // namespace

extern const Kernels kAvx512Kernels;
const Kernels kAvx512Kernels = make_kernels<Avx512Isa>("avx512");

}  // namespace hiernorm
