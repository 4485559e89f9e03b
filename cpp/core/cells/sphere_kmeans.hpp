// K-means on the sphere, coarse groups first, then within each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hiernorm {

// Rearranges the members (numbers of rows of `units`, unit or zero vectors) so that cells are
// contiguous, and returns their sizes: about `cell_entries`, never more than half as many again.
// The same members in the same order give the same cells on every machine.
std::vector<std::size_t> split_by_direction(const float* units, std::size_t dims,
                                            std::uint32_t* members, std::size_t count,
                                            std::size_t cell_entries);

// Divides by the norm; false, and nothing done, where it is zero.
bool make_unit(double* values, std::size_t count);

}  // namespace hiernorm
