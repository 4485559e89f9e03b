// Encodes a query's direction, and the angle that a threshold allows.
#include "cells/cone_query.hpp"

#include <algorithm>
#include <cmath>

#include "encode/rounding.hpp"
#include "per_thread.hpp"

namespace hiernorm {
namespace {

// Below this cosine nearly every cone would be read.
constexpr double kLeastNeed = 0.05;

// The partial sums of the scan must not overflow (see CodedQuery::encode_major): the codes of a
// direction have a norm of at most largest_norm(), those of the query one of 1 / step and the
// rounding of 16 values by 1/2 each; the slots of the angle add at most 127 (1 / step + 1).
double smallest_step(const ConeLayout& layout) {
    const double norm = layout.largest_norm();
    return (norm + kCodeLimit) / (kPartialLimit - 2.0 * norm - kCodeLimit);
}

}  // namespace

void ConeQuery::prepare(const Kernels& kernels, const Encoding& encoding, const Cells& cells,
                        const QueryView& view, const TileNorms& largest) {
    layout_ = cells.layout();
    std::vector<double>& direction = kept_by_thread<std::vector<double>, ConeQuery>();
    direction.assign(view.values.begin(),
                     view.values.begin() + static_cast<std::ptrdiff_t>(encoding.major));
    double norm = view.major_norm;
    slack_ = view.margin * largest.norm + view.major_norm * cells.norms().view_error;
    if (encoding.entry_tails) {
        direction.push_back(view.minor_norm);
        norm = std::sqrt(view.major_norm * view.major_norm + view.minor_norm * view.minor_norm);
    } else {
        slack_ += view.minor_norm * cells.norms().tail;
    }
    norm_ = norm * cells.norms().norm * kRoundUp;
    const double inverse = norm > 0.0 ? 1.0 / norm : 0.0;
    double largest_pair = 1.0;  // the angle's slots
    for (double& value : direction) value *= inverse;
    for (std::size_t j = 0; j + 1 < direction.size(); j += 2) {
        largest_pair = std::max(largest_pair, std::abs(direction[j]) + std::abs(direction[j + 1]));
    }
    step_ = std::max(largest_pair / (kPairLimit - 2), smallest_step(layout_)) * kRoundUp;

    towards_.codes.assign(layout_.slots(), 0);
    std::int32_t sum = 0;
    const double squares =
        kernels.code_f64(direction.data(), direction.size(), step_, towards_.codes.data(), &sum);
    towards_.finish(layout_.slots());
    aimed_.codes = towards_.codes;
    // Two units are given away: for rounding up here, and for the rounding of everything above.
    const double error = std::sqrt(squares) * kRoundUp * layout_.largest_norm() / step_;
    cut_ = -static_cast<std::int32_t>(std::ceil(error)) - 2;
}

bool ConeQuery::aim(double threshold) {
    const double need = (threshold - slack_) / norm_ * (2.0 - kRoundUp);
    if (!(need > kLeastNeed)) return false;
    const double cosine = std::min(need, 1.0);
    const double sine = std::sqrt(1.0 - cosine * cosine) * kRoundUp;
    aimed_.codes[layout_.cosine_slot()] = static_cast<std::int8_t>(-std::floor(cosine / step_));
    aimed_.codes[layout_.sine_slot()] = static_cast<std::int8_t>(std::ceil(sine / step_));
    aimed_.finish(layout_.slots());
    return true;
}

}  // namespace hiernorm
