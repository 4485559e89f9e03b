// Rotates, divides and lifts a query.
#include "encode/query_view.hpp"

#include <algorithm>

#include "encode/lift.hpp"
#include "encode/rounding.hpp"

namespace hiernorm {

void QueryView::prepare(const Kernels& kernels, const Encoding& encoding, const ExactQuery& exact) {
    const bool cosine = encoding.metric == Metric::kCosine;
    const std::size_t dim = encoding.row_dim();
    values.resize(dim);
    if (encoding.rotated()) {
        for (std::size_t r = 0; r < dim; ++r) {
            values[r] =
                kernels.dot_f32(exact.values().data(), encoding.rotation.data() + r * dim, dim);
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
    margin = norm * kRoundUp * (2.0 * depth * 0x1p-53 + encoding.rotation_error + 0x1p-40);
    offset = 0.0;
    if (encoding.metric == Metric::kL2) lift_query(encoding, exact, depth, *this);
    major_norm = root_up(kernels.squares_f64(values.data(), encoding.major));
    minor_norm = root_up(kernels.squares_f64(values.data() + encoding.major, encoding.minor()));
}

}  // namespace hiernorm
