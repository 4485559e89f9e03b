// Groups vectors by direction: k-means on the sphere, coarse groups first, then within each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hiernorm {

// Entry order[p] comes at place p; the first sizes[0] places are cell 0, and so on.
struct Grouping {
    std::vector<std::uint32_t> order;
    std::vector<std::uint32_t> sizes;
    std::vector<float> directions;  // cells x dims, of norm 1 or, if all members are 0, zero
};

// Groups `count` vectors (of `dims` values, `stride` apart) into cells of about `cell_entries`,
// never more than half as many again. The result depends on the set of (id, vector) alone, not on
// their order, and has the same bits on every machine.
Grouping group_by_direction(const float* vectors, std::size_t stride, std::size_t dims,
                            const std::int64_t* ids, std::size_t count, std::size_t cell_entries);

}  // namespace hiernorm
