// The arrays of a segment as they lie in a file: what an encoder hands out, what a store borrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cells.hpp"
#include "fit.hpp"

namespace hiernorm {

inline constexpr std::size_t kNormColumns = 8;  // of a tile's norms in a file
inline constexpr std::size_t kConeColumns = 4;  // of a cell's cone in a file

// Tiles and cones as rows of numbers; the order of the columns is part of the file format.
void norms_to_row(const TileNorms& norms, double* row);
TileNorms norms_from_row(const double* row);
void cone_to_row(const Cone& cone, double* row);
Cone cone_from_row(const double* row);

struct SegmentArrays {
    std::size_t entries = 0;
    const std::int64_t* ids = nullptr;
    const float* rows = nullptr;
    // Layout::kCodes only. Whole blocks, aligned to 64 bytes; kStageBytes are readable from the
    // start of every row of a stage.
    const std::uint8_t* major_codes = nullptr;
    std::vector<const std::uint8_t*> stage_codes;
    std::vector<TileNorms> tiles;
    // Cells, if any: first positions in ascending order, cones, directions one after the other.
    std::vector<std::uint32_t> cell_starts;
    std::vector<Cone> cones;
    const float* directions = nullptr;
    double view_error = 0.0;
};

}  // namespace hiernorm
