// A kernel family: the templates over one instruction set (instruction_set.hpp). With ScalarIsa
// they are the portable family.
#pragma once

#include "kernels/checksums.hpp"
#include "kernels/distances.hpp"
#include "kernels/floats.hpp"
#include "kernels/kernels.hpp"
#include "kernels/panels.hpp"
#include "kernels/rows.hpp"
#include "kernels/scan.hpp"
#include "kernels/sift_panels.hpp"
#include "kernels/stages.hpp"

namespace hiernorm {
namespace {

template <InstructionSet Isa>
constexpr Kernels make_kernels(std::string_view name) {
    Kernels kernels = {.name = name,
                       .score_u8i8 = score_u8i8<Isa>,
                       .scan_u8i8 = scan_u8i8<Isa>,
                       .scan_shared_u8i8 = scan_shared_u8i8<Isa>,
                       .scan_list_u8i8 = scan_list_u8i8<Isa>,
                       .skip_cells_u8i8 = skip_cells_u8i8<Isa>,
                       .sift_i32 = sift_i32<Isa>,
                       .nth_largest_i32 = nth_largest_i32<Isa>,
                       .tighten_first_u8i8 = tighten_first_u8i8<Isa>,
                       .tighten_next_u8i8 = tighten_next_u8i8<Isa>,
                       .dot_f32 = dot_f32<Isa>,
                       .dot_rows_f32 = dot_rows_f32<Isa>,
                       .code_f64 = code_f64<Isa>,
                       .squares_f64 = squares_f64<Isa>,
                       .score_f32 = score_f32<Isa>,
                       .sift_f32 = sift_f32<Isa>,
                       .distance_f32 = distance_f32,
                       .score_rows_f32 = score_rows_f32<Isa>,
                       .distance_rows_f32 = distance_rows_f32<Isa>,
                       .pack_panel_f32 = pack_panel_f32<Isa>,
                       .score_panel_f32 = score_panel_f32<Isa>,
                       .rank_panel_f32 = rank_panel_f32<Isa>,
                       .select_f32 = select_f32<Isa>,
                       .shift_panel_f32 = shift_panel_f32<Isa>,
                       .sift_panel_f32 = sift_panel_f32<Isa>,
                       .crc32c = crc32c};
    if constexpr (SiftsBytes<Isa>) {
        kernels.code_panel_u8 = code_panel_u8<Isa>;
        kernels.sift_panel_u8i8 = sift_panel_u8i8<Isa>;
    }
    return kernels;
}

}  // namespace
}  // namespace hiernorm
