// Moves entries between a store and the arrays of a file.
#include "store/segment_file.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "store/store.hpp"

namespace hiernorm {
namespace {

[[noreturn]] void refuse(const char* what) { throw std::invalid_argument(what); }

bool aligned(const std::uint8_t* codes) {
    return reinterpret_cast<std::uintptr_t>(codes) % 64 == 0;
}

void check_arrays(const SegmentArrays& arrays, const Store& store) {
    if (arrays.entries == 0 || arrays.entries > kMaxEntries) refuse("a segment has no entries");
    if (store.layout() == Layout::kFloatMajors) refuse("this engine searches no segments");
    if (store.layout() != Layout::kCodes) return;
    if (!aligned(arrays.major_codes)) {
        refuse("the major codes of a segment are not aligned to 64 bytes");
    }
    if (arrays.stage_codes.size() != store.fit().stages.size()) {
        refuse("a segment has not the stages of its fit");
    }
    if (arrays.tiles.size() != (arrays.entries + kTileEntries - 1) / kTileEntries) {
        refuse("a segment has not one set of norms per tile");
    }
    if (!std::all_of(arrays.cones.begin(), arrays.cones.end(), aligned)) {
        refuse("the cones of a segment are not aligned to 64 bytes");
    }
}

}  // namespace

void norms_to_row(const TileNorms& norms, double* row) {
    for (const double value :
         {norms.norm, norms.major_residual, norms.minor_residual, norms.major_coded,
          norms.minor_coded, norms.tail, norms.uncoded_tail, norms.stage_tail}) {
        *row++ = value;
    }
}

TileNorms norms_from_row(const double* row) {
    return {.norm = row[0],
            .major_residual = row[1],
            .minor_residual = row[2],
            .major_coded = row[3],
            .minor_coded = row[4],
            .tail = row[5],
            .uncoded_tail = row[6],
            .stage_tail = row[7]};
}

void cone_norms_to_row(const ConeNorms& norms, double* row) {
    row[0] = norms.norm;
    row[1] = norms.tail;
    row[2] = norms.view_error;
}

ConeNorms cone_norms_from_row(const double* row) {
    return {.norm = row[0], .tail = row[1], .view_error = row[2]};
}

Chunk Store::take_chunk(std::size_t index) {
    if (index >= chunks_.size()) throw std::out_of_range("no such chunk was written");
    return std::exchange(*chunks_[index], Chunk{});
}

void Store::attach(const SegmentArrays& arrays) {
    if (size_ != 0 || !chunks_.empty()) throw std::logic_error("the store is not empty");
    check_arrays(arrays, *this);
    size_ = arrays.entries;
    attached_ = true;
    for (std::size_t c = 0; c < chunks(); ++c) {
        const std::size_t first = c * kChunkEntries;
        const std::size_t entries = chunk_entries(c);
        auto chunk = std::make_unique<Chunk>();
        chunk->ids = Buffer<std::int64_t>::borrow(arrays.ids + first, entries);
        chunk->rows = Buffer<float>::borrow(arrays.rows + first * dim_, entries * dim_);
        if (layout_ == Layout::kCodes) {
            const std::size_t blocks = (entries + kBlockEntries - 1) / kBlockEntries;
            chunk->major_codes = Buffer<std::uint8_t>::borrow(
                arrays.major_codes + first * fit_.slots(), blocks * kBlockEntries * fit_.slots());
            for (std::size_t stage = 0; stage < fit_.stages.size(); ++stage) {
                const std::size_t bytes = fit_.stages[stage].bytes;
                chunk->stage_codes.push_back(Buffer<std::uint8_t>::borrow(
                    arrays.stage_codes[stage] + first * bytes, entries * bytes));
            }
            const auto tile =
                arrays.tiles.begin() + static_cast<std::ptrdiff_t>(first / kTileEntries);
            const std::size_t tiles = (entries + kTileEntries - 1) / kTileEntries;
            chunk->tiles.assign(tile, tile + static_cast<std::ptrdiff_t>(tiles));
        }
        chunks_.push_back(std::move(chunk));
    }
    for (const TileNorms& tile : arrays.tiles) largest_.include(tile);
    if (arrays.has_cones()) cells_.borrow(fit_, arrays.cones, arrays.cone_norms, size_);
}

}  // namespace hiernorm
