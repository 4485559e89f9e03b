// Moves entries between a store and the arrays of a file.
#include "segment.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "store.hpp"

namespace hiernorm {
namespace {

[[noreturn]] void refuse(const char* what) { throw std::invalid_argument(what); }

void check_arrays(const SegmentArrays& arrays, const Store& store) {
    if (arrays.entries == 0 || arrays.entries > kMaxEntries) refuse("a segment has no entries");
    if (store.layout() == Layout::kFloatMajors) refuse("this engine searches no segments");
    if (store.layout() != Layout::kCodes) return;
    if (reinterpret_cast<std::uintptr_t>(arrays.major_codes) % 64 != 0) {
        refuse("the major codes of a segment are not aligned to 64 bytes");
    }
    if (arrays.stage_codes.size() != store.fit().stages.size()) {
        refuse("a segment has not the stages of its fit");
    }
    if (arrays.tiles.size() != (arrays.entries + kTileEntries - 1) / kTileEntries) {
        refuse("a segment has not one set of norms per tile");
    }
    const std::vector<std::uint32_t>& starts = arrays.cell_starts;
    if (starts.size() != arrays.cones.size()) refuse("a segment has not one cone per cell");
    if (starts.empty()) return;
    const bool ascending =
        std::adjacent_find(starts.begin(), starts.end(), std::greater_equal<>()) == starts.end();
    if (starts.front() != 0 || !ascending || starts.back() >= arrays.entries) {
        refuse("the cells of a segment do not follow one another");
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

void cone_to_row(const Cone& cone, double* row) {
    row[0] = cone.open ? 1.0 : 0.0;
    row[1] = cone.cosine;
    row[2] = cone.norm;
    row[3] = cone.tail;
}

Cone cone_from_row(const double* row) {
    return {.open = row[0] != 0.0, .cosine = row[1], .norm = row[2], .tail = row[3]};
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
    if (!arrays.cell_starts.empty()) {
        cells_.restore(arrays.cell_starts, arrays.cones, arrays.directions, fit_.major,
                       arrays.view_error, size_);
    }
}

}  // namespace hiernorm
