// Queries in the groups that the kernels of panels read.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/kernels.hpp"

namespace hiernorm {

static_assert(kPanelQueries % kFewQueries == 0);

// Each of `count` queries has `steps` steps of `step` values. `packed` has room for whole groups of
// kFewQueries; what pads them is left as it is.
template <class Value>
void pack_panel_queries(const Value* rows, std::size_t count, std::size_t steps, std::size_t step,
                        Value* packed) {
    const std::size_t whole = count / kPanelQueries * kPanelQueries;
    for (std::size_t q = 0; q < count; ++q) {
        const std::size_t size = q < whole ? kPanelQueries : kFewQueries;
        const std::size_t first = q / size * size;  // `whole` is a multiple of both sizes
        Value* out = packed + (first * steps + (q - first)) * step;
        for (std::size_t j = 0; j < steps; ++j) {
            std::copy_n(rows + (q * steps + j) * step, step, out + j * size * step);
        }
    }
}

}  // namespace hiernorm
