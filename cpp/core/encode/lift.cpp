// Adds the lift to the views of entries and queries.
#include "encode/lift.hpp"

#include <cmath>
#include <cstddef>

#include "encode/rounding.hpp"

namespace hiernorm {
namespace {

void insert(const Encoding& encoding, double value, std::vector<double>& view) {
    view.insert(view.begin() + static_cast<std::ptrdiff_t>(encoding.major - 1), value);
}

}  // namespace

double lift_of(const Encoding& encoding, double squares) {
    return (encoding.centre - squares) / encoding.weight;
}

void lift_entry(const Encoding& encoding, double squares, std::vector<double>& view) {
    if (encoding.metric == Metric::kL2) insert(encoding, lift_of(encoding, squares), view);
}

// With y'' = (y, base) and z'' = (z, |q|^2 / base + base), P = |y''| |z''| is at least |q|^2,
// base^2, weight |lift| and 2 |q| |x|. As centre <= base^2, |x|^2 = centre - weight lift <= 2 P,
// so |q - x|^2 <= 6 P. Canonical score, lift, offset and the sums with it take fewer than
// 9 depth + 40 roundings of P, depth is at least 16.
void lift_query(const Encoding& encoding, const ExactQuery& exact, double depth, QueryView& view) {
    for (double& value : view.values) value *= 2.0;
    insert(encoding, encoding.weight, view.values);
    const double squares = exact.norm() * exact.norm();
    view.offset = squares + encoding.centre;
    const double beyond = squares / encoding.base_norm + encoding.base_norm;
    const double norm =
        std::sqrt(4.0 * squares + encoding.weight * encoding.weight + beyond * beyond) * kRoundUp;
    view.margin = norm * kRoundUp * (16.0 * depth * 0x1p-53 + encoding.rotation_error + 0x1p-40);
}

}  // namespace hiernorm
