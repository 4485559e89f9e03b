// Chooses the steps of codes and lays out the stages of the minor.
#include "encode/encoding.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "encode/rounding.hpp"

namespace hiernorm {
namespace {

double step_for(double largest, double limit) { return largest > 0.0 ? largest / limit : 1.0; }

}  // namespace

Metric metric_named(std::string_view name) {
    for (const Metric metric : {Metric::kInnerProduct, Metric::kCosine, Metric::kL2}) {
        if (name_of(metric) == name) return metric;
    }
    throw std::invalid_argument("metric must be one of ip, cosine, l2, got '" + std::string(name) +
                                "'");
}

std::string_view name_of(Metric metric) {
    switch (metric) {
        case Metric::kInnerProduct: return "ip";
        case Metric::kCosine: return "cosine";
        case Metric::kL2: return "l2";
    }
    throw std::invalid_argument("no such metric");
}

void Encoding::check(std::size_t row_dimensions) const {
    if (row_dim() != row_dimensions) {
        throw std::invalid_argument("an encoding is of " + std::to_string(row_dim()) +
                                    " dimensions, the rows have " + std::to_string(row_dimensions));
    }
    if (major < 1 + lift_dims() || major >= dim) {
        throw std::invalid_argument("an encoding has a major of " + std::to_string(major) + " of " +
                                    std::to_string(dim) + " dimensions");
    }
    const auto check_positive = [](const char* name, double value) {
        if (std::isfinite(value) && value > 0.0) return;
        throw std::invalid_argument(std::string(name) + " of an encoding is " +
                                    std::to_string(value) + ", it must be above 0 and finite");
    };
    check_positive("major_step", major_step);
    check_positive("minor_step", minor_step);
    check_positive("tail_step", tail_step);
    check_positive("weight", weight);
    if (metric == Metric::kL2) check_positive("base_norm", base_norm);
    if (rotated() && rotation.size() != row_dim() * row_dim()) {
        throw std::invalid_argument("the rotation of an encoding is not square");
    }
    // Norms are those of the rotated rows; the margins of the bounds allow for 1% between the two.
    if (!(rotation_error < 0.01)) {
        throw std::invalid_argument("the rotation is not orthogonal enough");
    }
}

void Encoding::lay_out_stages() {
    constexpr std::size_t kStageDims = kStageBytes - 1;
    stages.clear();
    std::size_t first = major;
    for (; dim - first > kStageBytes; first += kStageDims) {
        stages.push_back({first, kStageDims, kStageBytes});
    }
    stages.push_back({first, dim - first, dim - first});
}

void Encoding::choose_steps(const double* views, std::size_t count, double headroom) {
    double largest_major = 0.0, largest_minor = 0.0, largest_tail = 0.0;
    double smallest_tail = count == 0 ? 0.0 : HUGE_VAL;
    for (std::size_t i = 0; i < count; ++i) {
        const double* view = views + i * dim;
        for (std::size_t j = 0; j < major; ++j) {
            largest_major = std::max(largest_major, std::abs(view[j]));
        }
        for (std::size_t j = major; j < dim; ++j) {
            largest_minor = std::max(largest_minor, std::abs(view[j]));
        }
        const double tail = norm_up(view + major, minor());
        largest_tail = std::max(largest_tail, tail);
        smallest_tail = std::min(smallest_tail, tail);
    }
    major_step = step_for(headroom * largest_major, kCodeLimit);
    minor_step = step_for(headroom * largest_minor, kCodeLimit);
    tail_step = step_for(headroom * largest_tail, kTailLimit);
    // HN vectors all have the same tail: one number per tile says it. Others pay for a slot.
    entry_tails = smallest_tail < 0.98 * largest_tail;
}

}  // namespace hiernorm
