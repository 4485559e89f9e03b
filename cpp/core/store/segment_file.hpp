// The arrays of a segment as they lie in a file: what an encoder hands out, what a store borrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cells/cells.hpp"
#include "encode/encoding.hpp"

namespace hiernorm {

inline constexpr std::size_t kNormColumns = 8;  // of a tile's norms in a file
inline constexpr std::size_t kConeNorms = 3;    // the largest over all members of cones

// Norms as rows of numbers; the order of the columns is part of the file format.
void norms_to_row(const TileNorms& norms, double* row);
TileNorms norms_from_row(const double* row);
void cone_norms_to_row(const ConeNorms& norms, double* row);
ConeNorms cone_norms_from_row(const double* row);

struct SegmentArrays {
    std::size_t entries = 0;
    const std::int64_t* ids = nullptr;
    const float* rows = nullptr;
    // Layout::kCodes only. Whole blocks, aligned to 64 bytes; kStageBytes are readable from the
    // start of every row of a stage.
    const std::uint8_t* major_codes = nullptr;
    std::vector<const std::uint8_t*> stage_codes;
    std::vector<TileNorms> tiles;
    // Cones, if any: cone_bytes() of every level, aligned to 64 bytes.
    LevelPointers cones{};
    ConeNorms cone_norms;

    bool has_cones() const { return cones[0] != nullptr; }
};

}  // namespace hiernorm
