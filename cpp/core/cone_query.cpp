// Weighs major, minor and rounding for the cones.
#include "cone_query.hpp"

#include <algorithm>
#include <limits>

namespace hiernorm {
namespace {

constexpr double kFloatEpsilon = 0x1p-24;

}  // namespace

void ConeQuery::prepare(const Cells& cells, const QueryView& view, std::size_t major,
                        const TileNorms& largest) {
    major_ = major;
    direction_.resize(major);
    const double inverse = view.major_norm > 0.0 ? 1.0 / view.major_norm : 0.0;
    for (std::size_t j = 0; j < major; ++j) {
        direction_[j] = static_cast<float>(view.values[j] * inverse);
    }
    const double tail = view.minor_norm * cells.largest().tail;
    const double norm = view.major_norm * cells.largest().norm;
    const double rounding = view.margin * largest.norm + view.major_norm * cells.view_error();
    total_ = std::max((norm + tail + rounding) * kRoundUp, std::numeric_limits<double>::min());
    // float32 products and sums: each step errs by 2^-24 of values that are at most 1 (a sum of
    // dims products by dims times that); 2^-19 is more than all of them.
    weights_.closeness =
        static_cast<float>((static_cast<double>(major) + 8.0) * 2.0 * kFloatEpsilon);
    weights_.norm = static_cast<float>(norm / total_);
    weights_.tail = static_cast<float>(tail / total_);
    weights_.constant = static_cast<float>(rounding / total_ + 0x1p-19);
}

void ConeQuery::score(const Kernels& kernels, const Cells& cells, std::int32_t* scores,
                      std::int32_t* block_maxima) {
    cosines_.resize((cells.count() + kBlockEntries - 1) / kBlockEntries * kBlockEntries);
    kernels.score_f32(cells.directions(), cells.count(), direction_.data(), major_,
                      cosines_.data());
    kernels.score_cones_f32(cells.arrays(), weights_, cosines_.data(), cosines_.size(), scores,
                            block_maxima);
}

std::int32_t ConeQuery::cut(double threshold) const {
    // Scores lie between 0 and a little over kConeUnits. Three units are given away: one for
    // bound(), one for rounding towards zero, one for the rounding of the quotient.
    const double x = threshold / total_ * kConeUnits;
    if (!(x > 3.0)) return -1;
    return static_cast<std::int32_t>(std::min(x, 2.0 * kConeUnits)) - 3;
}

}  // namespace hiernorm
