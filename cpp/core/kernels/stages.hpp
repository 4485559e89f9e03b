// The stages of the minor codes as templates over one instruction set.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/lanes.hpp"
#include "kernels/prefetch.hpp"

namespace hiernorm {
namespace {

inline const std::uint8_t* stage_row(const StageJob& job, std::uint32_t position) {
    return job.rows + (position - job.first_position) * job.row_bytes;
}

inline double stage_bound(const StageJob& job, std::int32_t major, std::int32_t minor,
                          const std::uint8_t* row) {
    return job.base + job.major_scale * major + job.minor_scale * (minor - job.correction) +
           job.tail_scale * row[kStageBytes - 1];
}

constexpr std::size_t kFour = 4;

// Sums and bounds of four candidates at a time.
struct Four {
    std::int32_t minors[kFour];
    double bounds[kFour];
};

// For families without instructions of their own for it: one by one.
template <class StageQuery>
Four bound_one_by_one(const StageQuery& query, const StageJob& job, const Candidate* candidates) {
    Four four;
    for (std::size_t i = 0; i < kFour; ++i) {
        const std::uint8_t* row = stage_row(job, candidates[i].position);
        four.minors[i] = query.dot(row);
        four.bounds[i] = stage_bound(job, candidates[i].score, four.minors[i], row);
    }
    return four;
}

template <class Isa>
std::size_t enter_u8i8(const StageJob& job, double threshold, const Candidate* candidates,
                       std::size_t count, Contender* contenders, double* skipped) {
    constexpr std::size_t kAhead = 8;
    const typename Isa::StageQuery query(job.query);
    std::size_t kept = 0;
    double largest[kFour] = {*skipped, *skipped, *skipped, *skipped};
    std::size_t i = 0;
    for (; i + kFour <= count; i += kFour) {
        for (std::size_t ahead = i + kAhead; ahead < i + kAhead + kFour && ahead < count; ++ahead) {
            prefetch(stage_row(job, candidates[ahead].position));
        }
        const Four four = query.bound(job, candidates + i);
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
        const std::uint8_t* row = stage_row(job, candidates[i].position);
        const std::int32_t minor = query.dot(row);
        const double bound = stage_bound(job, candidates[i].score, minor, row);
        if (bound < threshold) {
            largest[0] = largest[0] > bound ? largest[0] : bound;
        } else {
            contenders[kept++] = {candidates[i].position, candidates[i].score, minor, bound};
        }
    }
    for (const double value : largest) *skipped = *skipped > value ? *skipped : value;
    return kept;
}

template <class Isa>
std::size_t tighten_u8i8(const StageJob& job, double threshold, Contender* contenders,
                         std::size_t count, double* skipped) {
    constexpr std::size_t kAhead = 8;
    const typename Isa::StageQuery query(job.query);
    std::size_t kept = 0;
    double largest = *skipped;
    for (std::size_t i = 0; i < count; ++i) {
        if (i + kAhead < count) {
            prefetch(stage_row(job, contenders[i + kAhead].position));
        }
        Contender contender = contenders[i];
        const std::uint8_t* row = stage_row(job, contender.position);
        contender.minor += query.dot(row);
        contender.bound = stage_bound(job, contender.major, contender.minor, row);
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
