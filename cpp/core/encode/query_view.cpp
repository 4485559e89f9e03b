// Rotates, divides and lifts a query.
#include "encode/query_view.hpp"

#include <algorithm>

#include "encode/lift.hpp"
#include "encode/rounding.hpp"

namespace hiernorm {

void QueryView::prepare(const Kernels& kernels, const Encoding& encoding, const ExactQuery& exact) {
    const ExactQuery* const query = &exact;
    QueryView* const view = this;
    prepare_together(kernels, encoding, &query, &view, 1);
}

void QueryView::prepare_together(const Kernels& kernels, const Encoding& encoding,
                                 const ExactQuery* const* queries, QueryView* const* views,
                                 std::size_t count) {
    const std::size_t dim = encoding.row_dim();
    for (std::size_t first = 0; first < count; first += kSharedQueries) {
        const std::size_t together = std::min(kSharedQueries, count - first);
        const double* from[kSharedQueries];
        double* to[kSharedQueries];
        for (std::size_t i = 0; i < together; ++i) {
            views[first + i]->values.resize(dim);
            from[i] = queries[first + i]->values().data();
            to[i] = views[first + i]->values.data();
            if (!encoding.rotated()) std::copy_n(from[i], dim, to[i]);
        }
        if (encoding.rotated()) {
            kernels.dot_rows_f32(from, together, encoding.rotation.data(), dim, dim, to);
        }
    }
    for (std::size_t i = 0; i < count; ++i) views[i]->finish(kernels, encoding, *queries[i]);
}

void QueryView::finish(const Kernels& kernels, const Encoding& encoding, const ExactQuery& exact) {
    const bool cosine = encoding.metric == Metric::kCosine;
    const std::size_t dim = encoding.row_dim();
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
