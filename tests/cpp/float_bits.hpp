// Comparison of float32 bits in tests of the kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hiernorm::testing {

inline bool same_bits_or_nan(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

}  // namespace hiernorm::testing
