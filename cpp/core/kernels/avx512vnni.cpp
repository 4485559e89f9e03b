// AVX-512 VNNI: dpbusd multiplies four slots and adds them in int32 in one instruction.
#include "kernels/avx512.hpp"
#include "kernels/x86_stages.hpp"

namespace hiernorm {
namespace {

struct MultiplyFours {
    static __m256i add(__m256i sums_i32x8, const std::uint8_t* row, __m256i query_i8x32) {
        const __m256i row_u8x32 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
        return _mm256_dpbusd_epi32(sums_i32x8, row_u8x32, query_i8x32);
    }
};

struct Avx512VnniIsa : Avx512Common {
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
        __m512i sums_i32x16[Queries * Blocks];
        repeat<Queries * Blocks>(
            [&](auto i) { sums_i32x16[i] = splat(-queries[i / Blocks].correction); });
        const std::size_t groups = queries[0].groups;
        for (std::size_t group = 0; group < groups; ++group) {
            __m512i lines_u8x64[Blocks];
            repeat<Blocks>([&](auto b) {
                lines_u8x64[b] = _mm512_loadu_si512(blocks + (b * groups + group) * kLineBytes);
            });
            repeat<Queries>([&](auto q) {
                const __m512i query_i8x64 = query_group(queries[q], group);
                repeat<Blocks>([&](auto b) {
                    __m512i& sum_i32x16 = sums_i32x16[q * Blocks + b];
                    sum_i32x16 = _mm512_dpbusd_epi32(sum_i32x16, lines_u8x64[b], query_i8x64);
                });
            });
        }
        repeat<Queries * Blocks>([&](auto i) { scores[i] = sums_i32x16[i]; });
    }

    using StageQuery = X86StageQuery<MultiplyFours>;
};

}  // namespace

extern const Kernels kAvx512VnniKernels;
const Kernels kAvx512VnniKernels = make_kernels<Avx512VnniIsa>("avx512vnni");

}  // namespace hiernorm
