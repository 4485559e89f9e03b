// What the bounds need to know about entries: norms, measured and rounded up.
#pragma once

#include <algorithm>

namespace hiernorm {

// The largest over a tile of entries. y is the view of an entry, c its codes.
struct TileNorms {
    double norm = 0.0;            // |x| (1 for cosine)
    double major_residual = 0.0;  // |y - step c| over the major
    double minor_residual = 0.0;  // the same over the minor
    double major_coded = 0.0;     // |step c| over the major
    double minor_coded = 0.0;
    double tail = 0.0;          // norm of the minor
    double uncoded_tail = 0.0;  // the part of it that no slot of the major codes covers
    double stage_tail = 0.0;    // what stage tail codes could not express

    void include(const TileNorms& other) {
        norm = std::max(norm, other.norm);
        major_residual = std::max(major_residual, other.major_residual);
        minor_residual = std::max(minor_residual, other.minor_residual);
        major_coded = std::max(major_coded, other.major_coded);
        minor_coded = std::max(minor_coded, other.minor_coded);
        tail = std::max(tail, other.tail);
        uncoded_tail = std::max(uncoded_tail, other.uncoded_tail);
        stage_tail = std::max(stage_tail, other.stage_tail);
    }
};

}  // namespace hiernorm
