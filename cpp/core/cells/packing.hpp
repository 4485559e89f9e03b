// Packs vectors that point the same way into groups of 16.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiernorm {

// Rearranges the members (numbers of rows of `units`) so that 16 after 16 of them point much the
// same way; what is left over, fewer than 16, comes last. The same members in the same order give
// the same groups on every machine.
void pack_by_direction(const float* units, std::size_t dims, std::uint32_t* members,
                       std::size_t count);

}  // namespace hiernorm
