// Canonical scores and norms, by the kernels.
#include "encode/exact_query.hpp"

#include <algorithm>
#include <cmath>

#include "per_thread.hpp"

namespace hiernorm {

double canonical_norm(const Kernels& kernels, const float* row, std::size_t dim) {
    // The squared distance to zero has the products of the row with itself, summed in their order.
    std::vector<double>& zero = kept_by_thread<std::vector<double>, ExactQuery>();
    if (zero.size() < dim) zero.assign(round_up(dim, kLanes), 0.0);
    return std::sqrt(kernels.distance_f32(zero.data(), row, dim));
}

void ExactQuery::prepare(const Kernels& kernels, Metric metric, const float* row, std::size_t dim) {
    kernels_ = &kernels;
    metric_ = metric;
    dim_ = dim;
    values_.assign(round_up(dim, kLanes), 0.0);
    std::copy(row, row + dim, values_.begin());
    norm_ = std::sqrt(kernels.dot_f32(values_.data(), row, dim));
}

double ExactQuery::score(const float* row) const {
    return score(row, metric_ == Metric::kCosine ? canonical_norm(*kernels_, row, dim_) : 1.0);
}

double ExactQuery::score(const float* row, double row_norm) const {
    if (metric_ == Metric::kL2) return 0.0 - kernels_->distance_f32(values_.data(), row, dim_);
    return major_product(row, dim_, row_norm);
}

double ExactQuery::major_product(const float* row, std::size_t major, double row_norm) const {
    const double product = kernels_->dot_f32(values_.data(), row, major);
    return metric_ == Metric::kCosine ? product / (norm_ * row_norm) : product;
}

}  // namespace hiernorm
