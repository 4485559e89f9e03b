// Encodes queries and derives the error terms of their bounds.
#include "encode/query.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "encode/lift.hpp"

namespace hiernorm {
namespace {

constexpr double kEpsilon = 0x1p-53;

double root_up(double squares) { return std::sqrt(squares) * kRoundUp; }

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

void ScanCodes::finish(std::size_t offset_slots) {
    constexpr std::size_t kRunSlots = kRunGroups * kGroupSlots;
    const std::size_t runs = (codes.size() + kRunSlots - 1) / kRunSlots;
    half_corrections.assign(2 * runs, 0);
    std::int32_t sum = 0, offset_sum = 0;
    for (std::size_t slot = 0; slot < codes.size(); ++slot) {
        sum += codes[slot];
        if (slot >= offset_slots) continue;
        offset_sum += codes[slot];
        std::int16_t& half = half_corrections[slot / kRunSlots * 2 + slot / 2 % 2];
        half = static_cast<std::int16_t>(
            static_cast<std::uint16_t>(half + codes[slot] * kCodeOffset));  // modulo 2^16
    }
    query = {codes.data(), codes.size() / kGroupSlots, half_corrections.data(),
             offset_sum * kCodeOffset, sum};
}

double canonical_norm(const Kernels& kernels, const float* row, std::size_t dim) {
    thread_local std::vector<double> values;
    values.assign((dim + kLanes - 1) / kLanes * kLanes, 0.0);
    std::copy(row, row + dim, values.begin());
    return std::sqrt(kernels.dot_f32(values.data(), row, dim));
}

void ExactQuery::prepare(const Kernels& kernels, Metric metric, const float* row, std::size_t dim) {
    kernels_ = &kernels;
    metric_ = metric;
    dim_ = dim;
    values_.assign((dim + kLanes - 1) / kLanes * kLanes, 0.0);
    std::copy(row, row + dim, values_.begin());
    norm_ = std::sqrt(kernels.dot_f32(values_.data(), row, dim));
}

double ExactQuery::score(const float* row) const {
    if (metric_ == Metric::kL2) return 0.0 - kernels_->distance_f32(values_.data(), row, dim_);
    const double product = kernels_->dot_f32(values_.data(), row, dim_);
    if (metric_ == Metric::kInnerProduct) return product;
    return product / (norm_ * canonical_norm(*kernels_, row, dim_));
}

double ExactQuery::major_product(const float* row, std::size_t major) const {
    const double product = kernels_->dot_f32(values_.data(), row, major);
    if (metric_ == Metric::kInnerProduct) return product;
    return product / (norm_ * canonical_norm(*kernels_, row, dim_));
}

void QueryView::prepare(const Kernels& kernels, const Fit& fit, const ExactQuery& exact) {
    const bool cosine = fit.metric == Metric::kCosine;
    const std::size_t dim = fit.row_dim();
    values.resize(dim);
    if (fit.rotated()) {
        for (std::size_t r = 0; r < dim; ++r) {
            values[r] = kernels.dot_f32(exact.values().data(), fit.rotation.data() + r * dim, dim);
        }
    } else {
        std::copy_n(exact.values().begin(), dim, values.begin());
    }
    if (cosine) {
        for (double& value : values) value /= exact.norm();
    }
    // Additions behind one another in the canonical sum, the two roots, product and quotient of
    // the cosine, and 2^-40 for the float64 arithmetic of the bounds themselves.
    const double depth = static_cast<double>(dim / kLanes) + 16.0;
    const double norm = cosine ? 1.0 : exact.norm();
    margin = norm * kRoundUp * (2.0 * depth * kEpsilon + fit.rotation_error + 0x1p-40);
    offset = 0.0;
    if (fit.metric == Metric::kL2) add_query_level(fit, exact, depth, *this);
    major_norm = root_up(kernels.squares_f64(values.data(), fit.major));
    minor_norm = root_up(kernels.squares_f64(values.data() + fit.major, fit.minor()));
}

void CodedQuery::prepare(const Kernels& kernels, const Fit& fit, const QueryView& view,
                         const TileNorms& largest, bool soft) {
    view_ = &view;
    soft_ = soft;
    encode_major(kernels, fit, largest);
    encode_minor(kernels, fit);
}

// The step satisfies two limits of the kernels: pairs (kPairLimit), and int16 partial sums. A
// partial sum runs over the slots 0-1 or 2-3 of at most kRunGroups groups, 16 slots; there
//     |sum c e| <= |c| |e| <= half_norm * (|z_half| / step + 2)     (16 roundings of 1/2)
// plus the tail slot, at most 255 * (tail / step + 1).
void CodedQuery::encode_major(const Kernels& kernels, const Fit& fit, const TileNorms& largest) {
    const std::size_t slots = fit.slots();
    thread_local std::vector<double> values;
    values.assign(slots, 0.0);
    std::copy_n(view_->values.begin(), fit.major, values.begin());
    double tail = 0.0;
    if (fit.entry_tails && !soft_) tail = view_->minor_norm * (fit.tail_step / fit.major_step);

    const double half_norm =
        std::min(largest.major_coded / fit.major_step * kRoundUp, kCodeLimit * 4.0);
    double half_squares = 0.0;
    const std::size_t runs = (fit.groups() + kRunGroups - 1) / kRunGroups;
    for (std::size_t run = 0; run < runs; ++run) {
        double squares[2] = {};
        const std::size_t last = std::min(slots, (run + 1) * kRunGroups * kGroupSlots);
        for (std::size_t slot = run * kRunGroups * kGroupSlots; slot < last; ++slot) {
            squares[slot / 2 % 2] += values[slot] * values[slot];
        }
        half_squares = std::max({half_squares, squares[0], squares[1]});
    }
    if (fit.entry_tails) values[fit.major] = tail;
    const double partial = half_norm * root_up(half_squares) + kTailLimit * tail;
    const double room = kPartialLimit - 2.0 * half_norm - kTailLimit;
    const double smallest_step =
        std::max(step_for_pairs(largest_pair(values.data(), slots)), partial / room);
    const double step = smallest_step > 0.0 ? smallest_step * kRoundUp : 1.0;

    scan_.codes.assign(slots, 0);
    std::int32_t sum = 0;
    major_error_ =
        root_up(kernels.code_f64(values.data(), fit.major, step, scan_.codes.data(), &sum));
    tail_code_ = 0;
    if (tail > 0.0) {
        tail_code_ = static_cast<std::int32_t>(std::ceil(tail / step * kRoundUp));
        scan_.codes[fit.major] = static_cast<std::int8_t>(tail_code_);
    }
    scale_ = fit.major_step * step;
    inverse_scale_ = 1.0 / scale_;
    scan_.finish(fit.major);
}

void CodedQuery::encode_minor(const Kernels& kernels, const Fit& fit) {
    const std::size_t stages = fit.stages.size();
    const double* values = view_->values.data();
    minor_codes_.assign(stages * kStageBytes, 0);
    stage_corrections_.assign(stages, 0);
    stage_tails_.assign(stages, 0.0);
    double pair = 0.0;
    for (const Fit::Stage& stage : fit.stages) {
        pair = std::max(pair, largest_pair(values + stage.first, stage.dims));
    }
    const double step = pair > 0.0 ? step_for_pairs(pair) * kRoundUp : 1.0;
    double squares = 0.0;
    std::int32_t sum = 0;
    for (std::size_t s = 0; s < stages; ++s) {
        const Fit::Stage& stage = fit.stages[s];
        std::int32_t stage_sum = 0;
        squares += kernels.code_f64(values + stage.first, stage.dims, step,
                                    minor_codes_.data() + s * kStageBytes, &stage_sum);
        sum += stage_sum;
        stage_corrections_[s] = sum * kCodeOffset;
    }
    double behind = 0.0;
    for (std::size_t s = stages; s-- > 0;) {
        stage_tails_[s] = root_up(behind) * fit.tail_step;
        behind += kernels.squares_f64(values + fit.stages[s].first, fit.stages[s].dims);
    }
    minor_error_ = root_up(squares);
    minor_scale_ = fit.minor_step * step;
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
