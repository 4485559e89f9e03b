// The codes and norms of one entry.
#pragma once

#include <cstddef>
#include <cstdint>

#include "encode/encoding.hpp"
#include "encode/tile_norms.hpp"

namespace hiernorm {

// Where the codes of one entry go: slot 0 of the entry within its block, and its row in each stage.
struct EntryCodes {
    std::uint8_t* major;
    std::uint8_t* const* stages;
    std::size_t row;
};

// Writes the codes of one view; returns the entry's norms. `view_error` bounds the distance of the
// view from its true value beyond Encoding::rotation_error; the norms include it.
TileNorms encode_entry(const Encoding& encoding, const double* view, double view_error,
                       const EntryCodes& codes);

// The norms alone, for engines without codes.
TileNorms measure_entry(const Encoding& encoding, const double* view, double view_error);

}  // namespace hiernorm
