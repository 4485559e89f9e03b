// The view of a query under an encoding, and the norms of its parts.
#pragma once

#include <vector>

#include "encode/encoding.hpp"
#include "encode/exact_query.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

struct QueryView {
    std::vector<double> values;
    double major_norm = 0.0;
    double minor_norm = 0.0;
    // Times TileNorms::norm: rounding of scores, of the rotation, of the bounds.
    double margin = 0.0;
    double offset = 0.0;  // bounds of this view minus canonical scores; L2 only

    void prepare(const Kernels& kernels, const Encoding& encoding, const ExactQuery& exact);

    // The same for `count` queries at once: they share the loads of the rotation.
    static void prepare_together(const Kernels& kernels, const Encoding& encoding,
                                 const ExactQuery* const* queries, QueryView* const* views,
                                 std::size_t count);

   private:
    void finish(const Kernels& kernels, const Encoding& encoding, const ExactQuery& exact);
};

}  // namespace hiernorm
