// The step tighten as templates over one instruction set.
#pragma once

#include "kernels/instruction_set.hpp"
#include "kernels/lanes.hpp"
#include "kernels/prefetch.hpp"

namespace hiernorm {
namespace {

inline const std::uint8_t* stage_row(const StageArguments& stage, std::uint32_t position) {
    return stage.rows + (position - stage.first_position) * stage.row_bytes;
}

inline double stage_bound(const StageArguments& stage, std::int32_t major, std::int32_t minor,
                          const std::uint8_t* row) {
    return stage.base + stage.major_scale * major + stage.minor_scale * (minor - stage.correction) +
           stage.tail_scale * row[kStageBytes - 1];
}

// For families without instructions of their own for it: one by one.
template <class StageQuery, std::size_t Count>
std::uint32_t bound_one_by_one(const StageQuery& query, const StageArguments& stage,
                               const Candidate* candidates, double threshold, Bounds<Count>& found,
                               double* largest) {
    std::uint32_t reached = 0;
    for (std::size_t l = 0; l < Count; ++l) {
        const std::uint8_t* row = stage_row(stage, candidates[l].position);
        found.minors[l] = query.dot(row);
        const double bound = stage_bound(stage, candidates[l].score, found.minors[l], row);
        found.bounds[l] = bound;
        const bool below = bound < threshold;
        reached |= (below ? 0u : 1u) << l;
        const double ruled_out = below ? bound : largest[l];
        largest[l] = largest[l] > ruled_out ? largest[l] : ruled_out;
    }
    return reached;
}

template <InstructionSet Isa>
std::size_t tighten_first_u8i8(const StageArguments& stage, double threshold,
                               const Candidate* candidates, std::size_t count,
                               Contender* contenders, double* skipped) {
    constexpr std::size_t kAtOnce = Isa::StageQuery::kAtOnce;
    constexpr std::size_t kAhead = kAtOnce < 8 ? 8 : kAtOnce;
    const typename Isa::StageQuery query(stage.query);
    std::size_t kept = 0;
    double largest[kAtOnce];
    for (double& value : largest) value = *skipped;
    const auto tighten = [&](const Candidate* some, std::uint32_t wanted) {
        Bounds<kAtOnce> found;
        std::uint32_t reached = query.bound(stage, some, threshold, found, largest) & wanted;
        for (; reached != 0; reached &= reached - 1) {
            const std::uint32_t l = lowest_bit(reached);
            contenders[kept++] = {some[l].position, some[l].score, found.minors[l],
                                  found.bounds[l]};
        }
    };
    std::size_t i = 0;
    for (; i + kAtOnce <= count; i += kAtOnce) {
        for (std::size_t ahead = i + kAhead; ahead < i + kAhead + kAtOnce && ahead < count;
             ++ahead) {
            prefetch(stage_row(stage, candidates[ahead].position));
        }
        tighten(candidates + i, ~0u);
    }
    if (i < count) {
        Candidate last[kAtOnce];  // the others are the last one again
        for (std::size_t l = 0; l < kAtOnce; ++l) {
            last[l] = candidates[i + l < count ? i + l : count - 1];
        }
        tighten(last, (1u << (count - i)) - 1u);
    }
    for (const double value : largest) *skipped = *skipped > value ? *skipped : value;
    return kept;
}

template <InstructionSet Isa>
std::size_t tighten_next_u8i8(const StageArguments& stage, double threshold, Contender* contenders,
                              std::size_t count, double* skipped) {
    constexpr std::size_t kAhead = 8;
    const typename Isa::StageQuery query(stage.query);
    std::size_t kept = 0;
    double largest = *skipped;
    for (std::size_t i = 0; i < count; ++i) {
        if (i + kAhead < count) {
            prefetch(stage_row(stage, contenders[i + kAhead].position));
        }
        Contender contender = contenders[i];
        const std::uint8_t* row = stage_row(stage, contender.position);
        contender.minor += query.dot(row);
        contender.bound = stage_bound(stage, contender.major, contender.minor, row);
        if (contender.bound < threshold) {
            largest = largest > contender.bound ? largest : contender.bound;
        } else {
            contenders[kept++] = contender;
        }
    }
    *skipped = largest;
    return kept;
}

}  // namespace
}  // namespace hiernorm
