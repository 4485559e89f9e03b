// A segment file: names, dtypes and shapes of its tensors, what a store hands out for them, and
// what it borrows from them. docs/reference/format.md describes the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cells/cells.hpp"
#include "encode/encoding.hpp"
#include "encode/tile_norms.hpp"
#include "store/block_checks.hpp"

namespace hiernorm {

class Store;
struct Chunk;

struct TensorLayout {
    std::string name;
    std::string_view dtype;  // of safetensors: U8, U32, I64, F32 or F64
    std::vector<std::size_t> shape;
    std::size_t beyond = 0;  // bytes behind the tensor that kernels read without using them

    std::size_t nbytes() const;
};

// All tensors of a segment of `entries` entries, in the order of the file; without an encoding it
// has no codes. Ids and rows come last, so that something follows the stages of the minor codes.
std::vector<TensorLayout> segment_tensors(std::size_t dim, std::size_t entries,
                                          const Encoding* encoding, bool cones);

// The tensors of codes and norms that are written chunk by chunk, and those of cones.
std::vector<TensorLayout> chunk_tensors(const Encoding& encoding, std::size_t entries);
std::vector<TensorLayout> cone_tensors(const Encoding& encoding, std::size_t entries);

// Writes a tensor of chunk_tensors() or cone_tensors() for the first `entries` to `out`.
void copy_chunk_tensor(const TensorLayout& tensor, const Encoding& encoding, const Chunk& chunk,
                       std::size_t entries, std::byte* out);
void copy_cone_tensor(const TensorLayout& tensor, const Cells& cells, std::size_t entries,
                      std::byte* out);

// Writes a tensor of segment_tensors() for all visible entries of a store to `out`; not the tables
// of sorted ids, which no store has.
void copy_tensor(const TensorLayout& tensor, const Store& store, std::byte* out);

// What a store borrows from a file.
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
    SegmentChecks checks;

    bool has_cones() const { return cones[0] != nullptr; }
};

// Tensors by name, as they lie in a mapped file; codes with the bytes `beyond` them.
using NamedTensors = std::map<std::string, std::span<const std::byte>, std::less<>>;

// Checks of tensors by name; a tensor without one is not checked.
using NamedChecks = std::map<std::string, const BlockChecks*, std::less<>>;

// Checks that all tensors of a segment are there, in the size that its layout gives them, and that
// its norms are finite. Throws std::invalid_argument that says what is wrong, and DamagedBlock if
// norms are not what was written.
SegmentArrays arrays_of(const NamedTensors& tensors, std::size_t dim, std::size_t entries,
                        const Encoding* encoding, const NamedChecks& checks = {});

}  // namespace hiernorm
