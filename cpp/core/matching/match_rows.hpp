// Exact nearest rows of two sets of float32 vectors, in both directions, in one pass over all pairs.
//
// The pass ranks float32 scores (kernels/panels.hpp). Where the best k of a row lead the next by
// more than rounding can change, they are the k best by canonical scores too. Rows where they do
// not lead so far are named, and searched in another way. With u = 2^-24, d dimensions, A and B the
// norms of both rows, a float32 score differs from the exact one by at most
//
//   ip       (d + 1) u A B                        d products and d - 1 additions round, and a sum
//   l2       (d + 4) u (A + B)^2                  of 2 a.b - B^2 - A^2, squares of d roundings
//   cosine   (2 d + 9) u                          product, both squares, roots, quotients, products
//
// up to a factor below 1.02, with the rounding of canonical scores; what underflows adds at most
// 2^-124 a dimension.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "encode/encoding.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

struct RowSet {
    const float* rows;
    std::size_t count;
};

// The k nearest of each row of one set among those of the other, best first.
struct NearestRows {
    std::vector<std::int64_t> ids;     // k for each row
    std::vector<double> scores;        // canonical
    std::vector<std::uint8_t> proved;  // whether they are proved; if not, both are undefined
};

struct RowMatches {
    NearestRows of_a;
    NearestRows of_b;  // empty unless both directions are asked for
};

// `k` is 1 or 2, at most the number of rows of either set that is searched.
RowMatches match_rows(const Kernels& kernels, Metric metric, const RowSet& a, const RowSet& b,
                      std::size_t dim, std::size_t k, bool both, std::size_t threads);

}  // namespace hiernorm
