// The portable family: plain C++, the yardstick of all others.
#include <algorithm>
#include <array>

#include "kernels/generic.hpp"

namespace hiernorm {
namespace {

struct ScalarIsa : PortableCoding, PortableFloats {
    using Scores = std::array<std::int32_t, kBlockEntries>;

    static Scores splat(std::int32_t value) {
        Scores all;
        all.fill(value);
        return all;
    }
    static Scores load(const std::int32_t* scores) {
        Scores block;
        std::copy_n(scores, kBlockEntries, block.begin());
        return block;
    }
    static void store(std::int32_t* out, const Scores& block) {
        std::copy(block.begin(), block.end(), out);
    }
    static std::uint32_t above(const Scores& block, std::int32_t cut) {
        std::uint32_t mask = 0;
        for (std::size_t i = 0; i < kBlockEntries; ++i) {
            mask |= std::uint32_t{block[i] > cut} << i;
        }
        return mask;
    }
    static bool any_above(const Scores& block, std::int32_t cut) { return above(block, cut) != 0; }
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
    static Scores maximum(Scores a, const Scores& b) {
        for (std::size_t i = 0; i < kBlockEntries; ++i) a[i] = std::max(a[i], b[i]);
        return a;
    }
    static Scores maximum_below(Scores a, const Scores& b, std::int32_t cut) {
        for (std::size_t i = 0; i < kBlockEntries; ++i) {
            if (b[i] <= cut) a[i] = std::max(a[i], b[i]);
        }
        return a;
    }
    static std::int32_t horizontal_maximum(const Scores& block) {
        return *std::max_element(block.begin(), block.end());
    }
    static Scores insert(const Scores& best, std::int32_t score) {
        return insert_one_by_one<ScalarIsa>(best, score);
    }

    static constexpr std::size_t kLongBlocks = 1;
    static constexpr std::size_t kSharedQueries = 1;
    static constexpr std::size_t kSharedBlocks = 1;
    template <std::size_t Queries, std::size_t Blocks>
    static void score_shared(const ScanQuery* queries, const std::uint8_t* blocks, Scores* scores) {
        static_assert(Queries == 1 && Blocks == 1);
        const ScanQuery& query = *queries;
        Scores sums = splat(-query.correction);
        for (std::size_t group = 0; group < query.groups; ++group) {
            for (std::size_t entry = 0; entry < kBlockEntries; ++entry) {
                for (std::size_t slot = 0; slot < kGroupSlots; ++slot) {
                    sums[entry] +=
                        std::int32_t{*blocks++} * query.codes[group * kGroupSlots + slot];
                }
            }
        }
        *scores = sums;
    }
    template <std::size_t>
    struct FixedQuery {
        explicit FixedQuery(const ScanQuery& q) : query(q) {}
        Scores score(const std::uint8_t* block) const {
            Scores scores;
            score_shared<1, 1>(&query, block, &scores);
            return scores;
        }
        const ScanQuery& query;
    };

    struct StageQuery {
        explicit StageQuery(const std::int8_t* q) : query(q) {}
        std::int32_t dot(const std::uint8_t* row) const {
            std::int32_t sum = 0;
            for (std::size_t j = 0; j < kStageBytes; ++j) sum += std::int32_t{row[j]} * query[j];
            return sum;
        }
        static constexpr std::size_t kAtOnce = 4;
        std::uint32_t bound(const StageArguments& stage, const Candidate* candidates,
                            double threshold, Bounds<kAtOnce>& found, double* largest) const {
            return bound_one_by_one(*this, stage, candidates, threshold, found, largest);
        }
        const std::int8_t* query;
    };

    using Lanes = std::array<double, kLanes>;
    static constexpr std::size_t kLaneSums = 2;
    static Lanes zero_lanes() { return {}; }
    static Lanes add_lanes(Lanes lanes, const double* query, const float* row) {
        for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += query[l] * static_cast<double>(row[l]);
        return lanes;
    }
    static double fold(Lanes lanes) {
        for (std::size_t half = kLanes / 2; half != 0; half /= 2) {
            for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
        }
        return lanes[0];
    }

    static void score_block_f32(const float* block, const float* query, std::size_t dims,
                                float* scores) {
        std::array<float, kBlockEntries> sums{};
        for (std::size_t j = 0; j < dims; ++j) {
            for (std::size_t entry = 0; entry < kBlockEntries; ++entry) {
                sums[entry] += query[j] * block[j * kBlockEntries + entry];
            }
        }
        std::copy(sums.begin(), sums.end(), scores);
    }
};

}  // namespace

extern const Kernels kScalarKernels;
const Kernels kScalarKernels = make_kernels<ScalarIsa>("scalar");

}  // namespace hiernorm
