// Whether finalists are matches: no product that was left out may exceed what the rule allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "matching/byte_set.hpp"
#include "matching/match_bytes.hpp"

namespace hiernorm {

// A row and a column, by their places, that no computed product keeps from being a match.
struct Finalist {
    std::size_t row, column;
    std::int32_t product;
};

// The finalists whose column is the best of their row and passes the tests; adds the products that
// are computed to `products`.
std::vector<Finalist> confirm_rows(const ByteSet& a, const ByteSet& b,
                                   std::span<const Finalist> finalists, const MatchRule& rule,
                                   std::size_t threads, std::uint64_t& products);

}  // namespace hiernorm
