// The order in which entries lie in the store: blocks of entries that point the same way, blocks
// that do so side by side, and so on up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "encode/encoding.hpp"

namespace hiernorm {

// Entries of one addition that are worth cells: rotated vectors, and vectors that are HN already.
inline constexpr std::size_t kLeastGrouped = 16384;
inline constexpr std::size_t kLeastGroupedHn = 8192;

// Entries to be grouped.
struct GroupingData {
    const Encoding& encoding;
    const float* rows;
    const float* majors;  // of the views, `stride` apart: no lift, before any division by a norm
    std::size_t stride;
    std::size_t count;
};

// Entry order[p] comes at place p; from place `lead` on, 16 after 16 make a block.
struct Grouping {
    std::vector<std::uint32_t> order;
    std::size_t lead = 0;
};

// What a cone is drawn around: the major, with the norm of the minor as one more dimension where
// entries differ in it. Row i of `units` has norm 1, or is zero.
struct ConeVectors {
    std::size_t dims = 0;
    std::vector<float> units;
    std::vector<double> norms;
    std::vector<double> tails;  // norms of the minors that have no dimension here
};
ConeVectors cone_vectors(const GroupingData& data);

// Groups the vectors; the first block begins at place `lead`, below 16. The result depends on the
// set of (id, vector) alone, not on their order, and has the same bits on every machine.
Grouping group_by_direction(const ConeVectors& vectors, const std::int64_t* ids, std::size_t count,
                            std::size_t lead);

}  // namespace hiernorm
