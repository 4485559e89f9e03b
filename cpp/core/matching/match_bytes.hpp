// Exact matching of two sets of byte vectors: best, second best, ratio test, cross check.
//
// 1. A pass over all pairs finds finalists. A pair's product is computed only if its bound
//    (byte_set.hpp) says that it can still be a match beside the products of its row and its column
//    that are known (Contest::cut). Pairs of vectors that are probably near each other come first:
//    their products set the cuts for the others. So most pairs cost one bound.
// 2. Finalists are confirmed (confirm.hpp): another product of the row or of the column, which the
//    pass left out, may be too large for the ratio test.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "matching/byte_set.hpp"

namespace hiernorm {

// When the best of a row is a match.
struct MatchRule {
    // limits[b]: the largest second best that a best product b passes the ratio test with, -1 if
    // there is none; nondecreasing. The last one holds for all larger products.
    std::span<const std::int32_t> limits;
    std::int32_t least = 1;   // the smallest product of a match
    bool cross_check = true;  // the best of the column must be the row, and pass too

    std::int32_t limit(std::int32_t best) const {
        const auto at = static_cast<std::size_t>(best);
        return limits[at < limits.size() ? at : limits.size() - 1];
    }
};

// The best two of the products of one vector that were computed.
struct Contest {
    std::int32_t best = 0;  // products of 0 are no match, as in COLMAP
    std::int32_t second = 0;
    std::int64_t at = -1;  // the first of those with the best product

    std::int32_t cut = 0;  // products below it are no match

    explicit Contest(const MatchRule& rule) { set_cut(rule); }
    void enter(std::int32_t product, std::int64_t other, const MatchRule& rule);
    // Joins the contest of the same vector with others.
    void join(const Contest& other);
    bool is_won(const MatchRule& rule) const;
    void set_cut(const MatchRule& rule);
};

struct ByteMatches {
    std::vector<std::int64_t> rows, columns;
    std::uint64_t products = 0;  // pairs whose product was computed
};

// The matches of the rows of `a` with rows of `b`, in the order of `a`. Any number of threads gives
// the same matches.
ByteMatches match_bytes(const ByteSet& a, const ByteSet& b, const MatchRule& rule,
                        std::size_t threads);

}  // namespace hiernorm
