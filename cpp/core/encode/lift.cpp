// Adds the level to the views of entries and queries.
#include "encode/lift.hpp"

#include <cmath>
#include <cstddef>

namespace hiernorm {
namespace {

void insert(const Fit& fit, double value, std::vector<double>& view) {
    view.insert(view.begin() + static_cast<std::ptrdiff_t>(fit.major - 1), value);
}

}  // namespace

double level_of(const Fit& fit, double squares) { return (fit.centre - squares) / fit.weight; }

void add_entry_level(const Fit& fit, double squares, std::vector<double>& view) {
    if (fit.metric == Metric::kL2) insert(fit, level_of(fit, squares), view);
}

// With y'' = (y, base) and z'' = (z, |q|^2 / base + base), P = |y''| |z''| is at least |q|^2,
// base^2, weight |level| and 2 |q| |x|. As centre <= base^2, |x|^2 = centre - weight level <= 2 P,
// so |q - x|^2 <= 6 P. Canonical score, level, offset and the sums with it take fewer than
// 9 depth + 40 roundings of P, depth is at least 16.
void add_query_level(const Fit& fit, const ExactQuery& exact, double depth, QueryView& view) {
    for (double& value : view.values) value *= 2.0;
    insert(fit, fit.weight, view.values);
    const double squares = exact.norm() * exact.norm();
    view.offset = squares + fit.centre;
    const double beyond = squares / fit.base_norm + fit.base_norm;
    const double norm =
        std::sqrt(4.0 * squares + fit.weight * fit.weight + beyond * beyond) * kRoundUp;
    view.margin = norm * kRoundUp * (16.0 * depth * 0x1p-53 + fit.rotation_error + 0x1p-40);
}

}  // namespace hiernorm
