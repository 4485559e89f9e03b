// A kernel family from the templates over one instruction set. `Isa` supplies the few operations
// that differ; the templates are the algorithm and, with ScalarIsa, the portable family.
#pragma once

#include "kernels/distances.hpp"
#include "kernels/floats.hpp"
#include "kernels/kernels.hpp"
#include "kernels/scan.hpp"
#include "kernels/stages.hpp"

namespace hiernorm {
namespace {

template <class Isa>
constexpr Kernels make_kernels(std::string_view name) {
    return Kernels{name,
                   score_u8i8<Isa>,
                   scan_u8i8<Isa>,
                   scan_list_u8i8<Isa>,
                   select_i32<Isa>,
                   enter_u8i8<Isa>,
                   tighten_u8i8<Isa>,
                   dot_f32<Isa>,
                   code_f64<Isa>,
                   squares_f64<Isa>,
                   score_f32<Isa>,
                   score_cones_f32,
                   distance_f32};
}

}  // namespace
}  // namespace hiernorm
