// A query's side of the cones: for a threshold, the codes whose product with a cone's tells whether
// a member of it can reach the threshold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cells/cells.hpp"
#include "encode/coded_query.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

class ConeQuery {
   public:
    // `largest` are the norms over all entries.
    void prepare(const Kernels& kernels, const Encoding& encoding, const Cells& cells,
                 const QueryView& view, const TileNorms& largest);

    // Aims at a threshold; false where it is too low for cones to rule anything out.
    bool aim(double threshold);

    // A cone with score <= cut() has no member that reaches the threshold aimed at.
    const ScanQuery& scan() const { return aimed_.query; }
    std::int32_t cut() const { return cut_; }

    // Scores by direction alone: the higher, the nearer.
    const ScanQuery& directions() const { return towards_.query; }

   private:
    ConeLayout layout_{};
    double norm_ = 0.0;   // the largest product of the norms, the minor's share apart
    double slack_ = 0.0;  // the minor's share and rounding
    double step_ = 1.0;
    std::int32_t cut_ = 0;
    QueryCodes towards_;
    QueryCodes aimed_;
};

}  // namespace hiernorm
