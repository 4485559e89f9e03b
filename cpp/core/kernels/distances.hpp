// The canonical squared distance, for every instruction set from one loop.
#pragma once

#include <cstddef>

#include "kernels/kernels.hpp"

namespace hiernorm {
namespace {

// Difference, square and sum are rounded apart (nothing fuses them), lane by lane as in dot_f32:
// whatever width the compiler gives the inner loop, the bits are the same.
inline double distance_f32(const double* query, const float* row, std::size_t dim) {
    double lanes[kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= dim; j += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            const double difference = query[j + l] - static_cast<double>(row[j + l]);
            lanes[l] += difference * difference;
        }
    }
    for (std::size_t l = 0; j + l < dim; ++l) {
        const double difference = query[j + l] - static_cast<double>(row[j + l]);
        lanes[l] += difference * difference;
    }
    for (std::size_t half = kLanes / 2; half != 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return lanes[0];
}

}  // namespace
}  // namespace hiernorm
