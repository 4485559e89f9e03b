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
template <class StageQuery>
Four bound_one_by_one(const StageQuery& query, const StageArguments& stage,
                      const Candidate* candidates) {
    Four four;
    for (std::size_t i = 0; i < kFour; ++i) {
        const std::uint8_t* row = stage_row(stage, candidates[i].position);
        four.minors[i] = query.dot(row);
        four.bounds[i] = stage_bound(stage, candidates[i].score, four.minors[i], row);
    }
    return four;
}

template <InstructionSet Isa>
std::size_t tighten_first_u8i8(const StageArguments& stage, double threshold,
                               const Candidate* candidates, std::size_t count,
                               Contender* contenders, double* skipped) {
    constexpr std::size_t kAhead = 8;
    const typename Isa::StageQuery query(stage.query);
    std::size_t kept = 0;
    double largest[kFour] = {*skipped, *skipped, *skipped, *skipped};
    std::size_t i = 0;
    for (; i + kFour <= count; i += kFour) {
        for (std::size_t ahead = i + kAhead; ahead < i + kAhead + kFour && ahead < count; ++ahead) {
            prefetch(stage_row(stage, candidates[ahead].position));
        }
        const Four four = query.bound(stage, candidates + i);
        std::uint32_t above = 0;
        for (std::size_t l = 0; l < kFour; ++l) {
            const bool below = four.bounds[l] < threshold;
            above |= (below ? 0u : 1u) << l;
            const double ruled_out = below ? four.bounds[l] : largest[l];
            largest[l] = largest[l] > ruled_out ? largest[l] : ruled_out;
        }
        for (; above != 0; above &= above - 1) {
            const std::uint32_t l = lowest_bit(above);
            contenders[kept++] = {candidates[i + l].position, candidates[i + l].score,
                                  four.minors[l], four.bounds[l]};
        }
    }
    for (; i < count; ++i) {
        const std::uint8_t* row = stage_row(stage, candidates[i].position);
        const std::int32_t minor = query.dot(row);
        const double bound = stage_bound(stage, candidates[i].score, minor, row);
        if (bound < threshold) {
            largest[0] = largest[0] > bound ? largest[0] : bound;
        } else {
            contenders[kept++] = {candidates[i].position, candidates[i].score, minor, bound};
        }
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
