// What makes up for rounding in norms and bounds.
#pragma once

#include <cmath>
#include <cstddef>

namespace hiernorm {

// Makes up for the rounding of a norm or a bound computed in float64: n additions err by less than
// n 2^-52 of the sum of absolute values, and n stays far below 2^22.
inline constexpr double kRoundUp = 1.0 + 1e-9;

// The root of a sum of squares, not below the true norm.
inline double root_up(double squares) { return std::sqrt(squares) * kRoundUp; }

// The norm of `count` values, not below the true one. The sum runs from the first value on.
inline double norm_up(const double* values, std::size_t count) {
    double squares = 0.0;
    for (std::size_t j = 0; j < count; ++j) squares += values[j] * values[j];
    return root_up(squares);
}

}  // namespace hiernorm
