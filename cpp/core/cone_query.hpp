// A query's side of the cones: one integer score per cell, whose bound no member can exceed.
//
// With t = cos(theta) between query and direction, sigma as in cells.hpp, and all norms over
// the largest of the store, the bound is
//     total * (a norm cos(max(0, theta - sigma)) + b tail + c),    a + b + c about 1,
// where a and b are the shares of major and minor, and c covers the rounding of everything here.
// A negative cosine counts as zero: then the bound is that of the tails alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cells.hpp"
#include "kernels/kernels.hpp"
#include "query.hpp"

namespace hiernorm {

class ConeQuery {
   public:
    // `largest` are the norms over all entries.
    void prepare(const Cells& cells, const QueryView& view, std::size_t major,
                 const TileNorms& largest);

    // Scores of all cells of `cells`, the one given to prepare(), with room for whole blocks, and
    // the largest score of each block.
    void score(const Kernels& kernels, const Cells& cells, std::int32_t* scores,
               std::int32_t* block_maxima);

    // The largest cut such that score <= cut proves that no member reaches the threshold.
    std::int32_t cut(double threshold) const;

    // No member of a cell with this score scores higher.
    double bound(std::int32_t score) const {
        return total_ * (static_cast<double>(score) + 1.0) / kConeUnits * kRoundUp;
    }

   private:
    std::size_t major_ = 0;
    double total_ = 0.0;
    ConeWeights weights_{};
    std::vector<float> direction_;
    std::vector<float> cosines_;
};

}  // namespace hiernorm
