// Encodes queries and derives the error terms of their bounds.
#include "encode/coded_query.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "encode/rounding.hpp"
#include "per_thread.hpp"

namespace hiernorm {
namespace {

// The largest |a| + |b| over neighbours at even places.
double largest_pair(const double* values, std::size_t count) {
    double largest = 0.0;
    std::size_t j = 0;
    for (; j + 2 <= count; j += 2) {
        largest = std::max(largest, std::abs(values[j]) + std::abs(values[j + 1]));
    }
    return j < count ? std::max(largest, std::abs(values[j])) : largest;
}

// A step under which no pair of codes exceeds kPairLimit: rounding adds at most 1/2 to a code, and
// at most 1 to that of a tail, which is rounded up.
double step_for_pairs(double pair) { return pair / (kPairLimit - 2); }

}  // namespace

void QueryCodes::finish(std::size_t offset_slots) {
    constexpr std::size_t kBurstSlots = kBurstGroups * kGroupSlots;
    const std::size_t bursts = divide_up(codes.size(), kBurstSlots);
    half_corrections.assign(2 * bursts, 0);
    std::int32_t sum = 0, offset_sum = 0;
    for (std::size_t slot = 0; slot < codes.size(); ++slot) {
        sum += codes[slot];
        if (slot >= offset_slots) continue;
        offset_sum += codes[slot];
        std::int16_t& half = half_corrections[slot / kBurstSlots * 2 + slot / 2 % 2];
        half = static_cast<std::int16_t>(
            static_cast<std::uint16_t>(half + codes[slot] * kCodeOffset));  // modulo 2^16
    }
    query = {codes.data(), codes.size() / kGroupSlots, half_corrections.data(),
             offset_sum * kCodeOffset, sum};
}

void CodedQuery::prepare(const Kernels& kernels, const Encoding& encoding, const QueryView& view,
                         const TileNorms& largest, bool soft) {
    view_ = &view;
    soft_ = soft;
    encode_major(kernels, encoding, largest);
    encode_minor(kernels, encoding);
}

// The step satisfies two limits of the kernels: pairs (kPairLimit), and int16 partial sums. A
// partial sum runs over the slots 0-1 or 2-3 of at most kBurstGroups groups, 16 slots; there
//     |sum c e| <= |c| |e| <= half_norm * (|z_half| / step + 2)     (16 roundings of 1/2)
// plus the tail slot, at most 255 * (tail / step + 1).
void CodedQuery::encode_major(const Kernels& kernels, const Encoding& encoding,
                              const TileNorms& largest) {
    const std::size_t slots = encoding.slots();
    std::vector<double>& values = kept_by_thread<std::vector<double>, CodedQuery>();
    values.assign(slots, 0.0);
    std::copy_n(view_->values.begin(), encoding.major, values.begin());
    double tail = 0.0;
    if (encoding.entry_tails && !soft_)
        tail = view_->minor_norm * (encoding.tail_step / encoding.major_step);

    const double half_norm =
        std::min(largest.major_coded / encoding.major_step * kRoundUp, kCodeLimit * 4.0);
    double half_squares = 0.0;
    const std::size_t bursts = divide_up(encoding.groups(), kBurstGroups);
    for (std::size_t burst = 0; burst < bursts; ++burst) {
        double squares[2] = {};
        const std::size_t last = std::min(slots, (burst + 1) * kBurstGroups * kGroupSlots);
        for (std::size_t slot = burst * kBurstGroups * kGroupSlots; slot < last; ++slot) {
            squares[slot / 2 % 2] += values[slot] * values[slot];
        }
        half_squares = std::max({half_squares, squares[0], squares[1]});
    }
    if (encoding.entry_tails) values[encoding.major] = tail;
    const double partial = half_norm * root_up(half_squares) + kTailLimit * tail;
    const double room = kPartialLimit - 2.0 * half_norm - kTailLimit;
    const double smallest_step =
        std::max(step_for_pairs(largest_pair(values.data(), slots)), partial / room);
    const double step = smallest_step > 0.0 ? smallest_step * kRoundUp : 1.0;

    scan_.codes.assign(slots, 0);
    std::int32_t sum = 0;
    major_error_ =
        root_up(kernels.code_f64(values.data(), encoding.major, step, scan_.codes.data(), &sum));
    tail_code_ = 0;
    if (tail > 0.0) {
        tail_code_ = static_cast<std::int32_t>(std::ceil(tail / step * kRoundUp));
        scan_.codes[encoding.major] = static_cast<std::int8_t>(tail_code_);
    }
    scale_ = encoding.major_step * step;
    inverse_scale_ = 1.0 / scale_;
    scan_.finish(encoding.major);
}

void CodedQuery::encode_minor(const Kernels& kernels, const Encoding& encoding) {
    const std::size_t stages = encoding.stages.size();
    const double* values = view_->values.data();
    minor_codes_.assign(stages * kStageBytes, 0);
    stage_corrections_.assign(stages, 0);
    stage_tails_.assign(stages, 0.0);
    double pair = 0.0;
    for (const Stage& stage : encoding.stages) {
        pair = std::max(pair, largest_pair(values + stage.first, stage.dims));
    }
    const double step = pair > 0.0 ? step_for_pairs(pair) * kRoundUp : 1.0;
    double squares = 0.0;
    std::int32_t sum = 0;
    for (std::size_t s = 0; s < stages; ++s) {
        const Stage& stage = encoding.stages[s];
        std::int32_t stage_sum = 0;
        squares += kernels.code_f64(values + stage.first, stage.dims, step,
                                    minor_codes_.data() + s * kStageBytes, &stage_sum);
        sum += stage_sum;
        stage_corrections_[s] = sum * kCodeOffset;
    }
    double behind = 0.0;
    for (std::size_t s = stages; s-- > 0;) {
        stage_tails_[s] = root_up(behind) * encoding.tail_step;
        behind += kernels.squares_f64(values + encoding.stages[s].first, encoding.stages[s].dims);
    }
    minor_error_ = root_up(squares);
    minor_scale_ = encoding.minor_step * step;
}

// Two units are given away: one for rounding towards zero, one so that the rounding of the product
// cannot matter; it is below 2^31 in size, so it errs by far less than 1.
std::int32_t CodedQuery::cut(double threshold, double slack) const {
    constexpr auto lowest = std::numeric_limits<std::int32_t>::min();
    constexpr auto highest = std::numeric_limits<std::int32_t>::max();
    const double x = (threshold - slack) * inverse_scale_;
    if (!(x > double{lowest} + 2.0)) return lowest;
    if (x >= double{highest}) return highest - 2;
    return static_cast<std::int32_t>(x) - 2;
}

}  // namespace hiernorm
