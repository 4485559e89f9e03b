// A cone around vectors that point the same way, in integers that the scan can read.
//
// A cone has a direction u (integers, norm about 127) and the largest angle sigma of a member to
// it. A query at angle theta to u and a member x at angle phi to the query: phi >= theta - sigma.
// So if the query wants cos(phi) >= need, with need in [0, 1], no member can do where
//     theta > acos(need) + sigma,    that is (sigma <= 90 degrees), where
//     u.q/|q| < need |u| cos(sigma) - sqrt(1 - need^2) |u| sin(sigma).
// With |u| cos(sigma) rounded down and |u| sin(sigma) rounded up to integers in two slots of their
// own, this is the sign of one inner product, which the kernels of the major codes compute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "encode/encoding.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

inline constexpr int kConeNorm = 127;  // of a direction, but for the rounding of its values

// Where the values of a cone lie; the slots for the angle have no neighbour in their pairs, so that
// the query's side of them may be as large as kPairLimit.
struct ConeLayout {
    std::size_t dims;

    std::size_t cosine_slot() const { return (dims + 1) / 2 * 2; }
    std::size_t sine_slot() const { return cosine_slot() + 2; }
    std::size_t slots() const {
        return (sine_slot() + 2 + kGroupSlots - 1) / kGroupSlots * kGroupSlots;
    }
    // The largest norm that a direction can have.
    double largest_norm() const;
};

// Codes in [-127, 127], `slots` of them. An open cone holds everything.
void open_cone(const ConeLayout& layout, std::int8_t* codes);

// The cone around members given as blocks[dim][16 members], unit vectors in float32. `rounds` of
// an iteration narrow it. Same members, same codes on every machine.
void enclose(const ConeLayout& layout, const float* blocks, std::size_t block_count,
             std::size_t rounds, std::int8_t* codes);

}  // namespace hiernorm
