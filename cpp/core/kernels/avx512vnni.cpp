// AVX-512 VNNI: dpbusd multiplies four slots and adds them in int32 in one instruction.
#include "kernels/avx512.hpp"

namespace hiernorm {
namespace {

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

    struct LongQuery {
        explicit LongQuery(const ScanQuery& q) : query(q) {}
        Scores score(const std::uint8_t* block) const {
            __m512i sums_i32x16 = splat(-query.correction);
            for (std::size_t group = 0; group < query.groups; ++group) {
                sums_i32x16 =
                    _mm512_dpbusd_epi32(sums_i32x16, _mm512_loadu_si512(block + group * kLineBytes),
                                        query_group(query, group));
            }
            return sums_i32x16;
        }
        const ScanQuery& query;
    };

    struct StageQuery {
        explicit StageQuery(const std::int8_t* query) : query_i8x64(_mm512_loadu_si512(query)) {}
        std::int32_t dot(const std::uint8_t* row) const {
            return _mm512_reduce_add_epi32(
                _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(row), query_i8x64));
        }
        Four bound(const StageArguments& stage, const Candidate* candidates) const {
            return bound_one_by_one(*this, stage, candidates);
        }
        __m512i query_i8x64;
    };
};

}  // namespace

extern const Kernels kAvx512VnniKernels;
const Kernels kAvx512VnniKernels = make_kernels<Avx512VnniIsa>("avx512vnni");

}  // namespace hiernorm
