// NEON with SDOT (ARMv8.2 dotprod). SDOT is signed by signed, so codes are shifted by 128 on the
// fly and the shift is repaid once: sum (u - 128) q = sum u q - 128 sum q.
#include <arm_neon.h>

#include "kernels/generic.hpp"

namespace hiernorm {
namespace {

struct NeonIsa : PortableCoding, PortableFloats {
    struct Scores {
        int32x4_t i32x4[4];
    };

    static Scores splat(std::int32_t value) {
        const int32x4_t all = vdupq_n_s32(value);
        return {{all, all, all, all}};
    }
    static Scores load(const std::int32_t* scores) {
        return {{vld1q_s32(scores), vld1q_s32(scores + 4), vld1q_s32(scores + 8),
                 vld1q_s32(scores + 12)}};
    }
    static void store(std::int32_t* out, const Scores& block) {
        for (int part = 0; part < 4; ++part) vst1q_s32(out + 4 * part, block.i32x4[part]);
    }
    static std::uint32_t above(const Scores& block, std::int32_t cut) {
        const uint32x4_t bits_u32x4 = {1, 2, 4, 8};
        std::uint32_t mask = 0;
        for (int part = 0; part < 4; ++part) {
            const uint32x4_t hits_u32x4 = vcgtq_s32(block.i32x4[part], vdupq_n_s32(cut));
            mask |= vaddvq_u32(vandq_u32(hits_u32x4, bits_u32x4)) << (4 * part);
        }
        return mask;
    }
    static bool any_above(const Scores& block, std::int32_t cut) {
        return horizontal_maximum(block) > cut;
    }
    static std::size_t append(const Scores& block, std::int32_t cut, std::uint32_t position,
                              Candidate* out, bool /*few*/) {
        std::int32_t scores[kBlockEntries];
        store(scores, block);
        return append_candidates(scores, above(block, cut), position, out);
    }
    static std::size_t append_numbers(const Scores& block, std::int32_t cut, std::uint16_t first,
                                      std::uint16_t* out) {
        return append_bits(above(block, cut), first, out);
    }
    static Scores maximum(const Scores& a, const Scores& b) {
        Scores best;
        for (int part = 0; part < 4; ++part)
            best.i32x4[part] = vmaxq_s32(a.i32x4[part], b.i32x4[part]);
        return best;
    }
    static Scores maximum_below(const Scores& a, const Scores& b, std::int32_t cut) {
        Scores kept;
        for (int part = 0; part < 4; ++part) {
            const uint32x4_t hits_u32x4 = vcgtq_s32(b.i32x4[part], vdupq_n_s32(cut));
            kept.i32x4[part] = vbslq_s32(hits_u32x4, vdupq_n_s32(kLowest), b.i32x4[part]);
        }
        return maximum(a, kept);
    }
    static std::int32_t horizontal_maximum(const Scores& block) {
        return vmaxvq_s32(vmaxq_s32(vmaxq_s32(block.i32x4[0], block.i32x4[1]),
                                    vmaxq_s32(block.i32x4[2], block.i32x4[3])));
    }
    static Scores insert(const Scores& best, std::int32_t score) {
        return insert_one_by_one<NeonIsa>(best, score);
    }

    static int8x16_t signed_codes(const std::uint8_t* codes) {
        return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(codes), vdupq_n_u8(0x80)));
    }
    static int8x16_t query_group(const ScanQuery& query, std::size_t group) {
        std::int32_t four;
        std::memcpy(&four, query.codes + group * kGroupSlots, sizeof four);
        return vreinterpretq_s8_s32(vdupq_n_s32(four));
    }
    static Scores start(const ScanQuery& query) {
        return splat(128 * query.code_sum - query.correction);
    }
    static void add_group(Scores& sums, const std::uint8_t* line, int8x16_t query_i8x16) {
        for (int part = 0; part < 4; ++part) {
            sums.i32x4[part] =
                vdotq_s32(sums.i32x4[part], signed_codes(line + 16 * part), query_i8x16);
        }
    }

    template <std::size_t Groups>
    struct FixedQuery {
        explicit FixedQuery(const ScanQuery& query) : first(start(query)) {
            for (std::size_t group = 0; group < Groups; ++group) {
                groups_i8x16[group] = query_group(query, group);
            }
        }
        Scores score(const std::uint8_t* block) const {
            Scores sums = first;
            for (std::size_t group = 0; group < Groups; ++group) {
                add_group(sums, block + group * kLineBytes, groups_i8x16[group]);
            }
            return sums;
        }
        Scores first;
        int8x16_t groups_i8x16[Groups];
    };

    static constexpr std::size_t kLongBlocks = 1;
    static constexpr std::size_t kSharedQueries = 4;
    static constexpr std::size_t kSharedBlocks = 1;
    template <std::size_t Queries, std::size_t Blocks>
    static void score_shared(const ScanQuery* queries, const std::uint8_t* blocks, Scores* scores) {
        const std::size_t groups = queries[0].groups;
        repeat<Queries * Blocks>([&](auto i) { scores[i] = start(queries[i / Blocks]); });
        for (std::size_t group = 0; group < groups; ++group) {
            repeat<Blocks>([&](auto b) {
                const std::uint8_t* line = blocks + (b * groups + group) * kLineBytes;
                int8x16_t codes_i8x16[4];
                repeat<4>([&](auto part) { codes_i8x16[part] = signed_codes(line + 16 * part); });
                repeat<Queries>([&](auto q) {
                    const int8x16_t query_i8x16 = query_group(queries[q], group);
                    int32x4_t* sums = scores[q * Blocks + b].i32x4;
                    repeat<4>([&](auto part) {
                        sums[part] = vdotq_s32(sums[part], codes_i8x16[part], query_i8x16);
                    });
                });
            });
        }
    }

    struct StageQuery {
        explicit StageQuery(const std::int8_t* query) : shift(0) {
            for (int part = 0; part < 4; ++part) query_i8x16[part] = vld1q_s8(query + 16 * part);
            for (std::size_t j = 0; j < kStageBytes; ++j) shift += 128 * query[j];
        }
        std::int32_t dot(const std::uint8_t* row) const {
            int32x4_t sum_i32x4 = vdupq_n_s32(0);
            for (int part = 0; part < 4; ++part) {
                sum_i32x4 = vdotq_s32(sum_i32x4, signed_codes(row + 16 * part), query_i8x16[part]);
            }
            return vaddvq_s32(sum_i32x4) + shift;
        }
        static constexpr std::size_t kAtOnce = 4;
        std::uint32_t bound(const StageArguments& stage, const Candidate* candidates,
                            double threshold, Bounds<kAtOnce>& found, double* largest) const {
            return bound_one_by_one(*this, stage, candidates, threshold, found, largest);
        }
        int8x16_t query_i8x16[4];
        std::int32_t shift;
    };

    struct Lanes {
        float64x2_t f64x2[8];
    };
    static constexpr std::size_t kLaneSums = 2;
    static Lanes zero_lanes() {
        Lanes lanes;
        for (float64x2_t& part : lanes.f64x2) part = vdupq_n_f64(0.0);
        return lanes;
    }
    static Lanes add_lanes(Lanes lanes, const double* query, const float* row) {
        for (int part = 0; part < 8; ++part) {
            const float64x2_t product_f64x2 =
                vmulq_f64(vld1q_f64(query + 2 * part), vcvt_f64_f32(vld1_f32(row + 2 * part)));
            lanes.f64x2[part] = vaddq_f64(lanes.f64x2[part], product_f64x2);
        }
        return lanes;
    }
    static double fold(Lanes lanes) {
        for (int half = 4; half != 0; half /= 2) {
            for (int part = 0; part < half; ++part) {
                lanes.f64x2[part] = vaddq_f64(lanes.f64x2[part], lanes.f64x2[part + half]);
            }
        }
        return vgetq_lane_f64(lanes.f64x2[0], 0) + vgetq_lane_f64(lanes.f64x2[0], 1);
    }

    static void score_block_f32(const float* block, const float* query, std::size_t dims,
                                float* scores) {
        float32x4_t sums_f32x4[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0),
                                     vdupq_n_f32(0)};
        for (std::size_t j = 0; j < dims; ++j) {
            const float32x4_t query_f32x4 = vdupq_n_f32(query[j]);
            for (int part = 0; part < 4; ++part) {
                const float32x4_t entry_f32x4 = vld1q_f32(block + j * kBlockEntries + 4 * part);
                sums_f32x4[part] = vaddq_f32(sums_f32x4[part], vmulq_f32(query_f32x4, entry_f32x4));
            }
        }
        for (int part = 0; part < 4; ++part) vst1q_f32(scores + 4 * part, sums_f32x4[part]);
    }
};

}  // namespace

extern const Kernels kNeonKernels;
const Kernels kNeonKernels = make_kernels<NeonIsa>("neon");

}  // namespace hiernorm
