// Holds the entries: ids, rows and codes, in chunks that never move once they are full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cells/cells.hpp"
#include "cells/grouping.hpp"
#include "encode/encoding.hpp"
#include "encode/tile_norms.hpp"
#include "store/block_checks.hpp"
#include "store/buffer.hpp"

namespace hiernorm {

// What an engine needs besides ids and rows.
enum class Layout { kRowsOnly, kCodes, kFloatMajors };

struct Chunk {
    Buffer<std::int64_t> ids;
    Buffer<float> rows;
    Buffer<std::uint8_t> major_codes;               // Layout::kCodes
    std::vector<Buffer<std::uint8_t>> stage_codes;  // Layout::kCodes
    Buffer<double> row_norms;  // Layout::kCodes for cosine: canonical; none where attached
    Buffer<float> float_majors;                     // Layout::kFloatMajors: blocks[dim][entry]
    std::vector<TileNorms> tiles;
};

struct SegmentArrays;  // segment_file.hpp

class Store {
   public:
    Store(Layout layout, std::size_t dim) : layout_(layout), dim_(dim) {}

    std::size_t size() const { return size_; }
    std::size_t dim() const { return dim_; }
    Layout layout() const { return layout_; }
    const Encoding& encoding() const { return encoding_; }
    bool has_encoding() const { return encoding_.dim != 0; }
    void set_encoding(Encoding encoding) {
        encoding_ = std::move(encoding);
        encoding_.lay_out_stages();
    }
    const TileNorms& largest() const { return largest_; }
    const Cells& cells() const { return cells_; }

    std::size_t chunks() const { return divide_up(size_, kChunkEntries); }
    const Chunk& chunk(std::size_t index) const { return *chunks_[index]; }
    std::size_t chunk_entries(std::size_t index) const {
        return std::min(kChunkEntries, size_ - index * kChunkEntries);
    }

    const float* row(std::size_t position) const {
        return chunk(position / kChunkEntries).rows.data() + position % kChunkEntries * dim_;
    }
    // The canonical norm of a row, where it is kept; null otherwise.
    const double* known_norm(std::size_t position) const {
        const Buffer<double>& norms = chunk(position / kChunkEntries).row_norms;
        return norms.data() == nullptr ? nullptr : norms.data() + position % kChunkEntries;
    }
    std::int64_t id(std::size_t position) const {
        return chunk(position / kChunkEntries).ids[position % kChunkEntries];
    }

    // Entries are numbered in the order in which they were added; cells move them.
    std::size_t position_of(std::size_t number) const {
        return number < positions_.size() ? positions_[number] : number;
    }

    // An addition: begin() forgets one that was never published, and may be told how the entries to
    // come are grouped; write() puts them behind the visible ones, `ahead` of them, in the order of
    // the grouping; number() fixes their numbers; publish() makes them visible and cannot fail.
    // `views` are the rotated rows, before any division by a norm; null without a rotation.
    void begin(Grouping grouping);
    void write(std::size_t ahead, const float* rows, const std::int64_t* ids, const double* views,
               std::size_t count, std::size_t more_to_come);
    void number(std::size_t count);
    void publish(std::size_t count);

    // Codes that were written and are not visible: moved out, so that a segment larger than memory
    // can be encoded chunk by chunk. The next write() goes to the chunk behind it.
    Chunk take_chunk(std::size_t index);

    // Throw DamagedBlock unless what is read is what was written to the file. An index in memory
    // has no checks.
    void require_row(std::size_t position) const {
        if (checks_.rows != nullptr) checks_.rows->require(row(position), dim_ * sizeof(float));
    }
    void require_id(std::size_t position) const {
        if (checks_.ids == nullptr) return;
        checks_.ids->require(&chunk(position / kChunkEntries).ids[position % kChunkEntries],
                             sizeof(std::int64_t));
    }
    // Rows and ids of consecutive entries of one chunk.
    void require_entries(std::size_t position, std::size_t entries) const {
        if (checks_.rows != nullptr) {
            checks_.rows->require(row(position), entries * dim_ * sizeof(float));
        }
        if (checks_.ids != nullptr) {
            checks_.ids->require(&chunk(position / kChunkEntries).ids[position % kChunkEntries],
                                 entries * sizeof(std::int64_t));
        }
    }
    void require_major_codes(const std::uint8_t* codes, std::size_t entries) const {
        if (checks_.major_codes == nullptr) return;
        checks_.major_codes->require(codes, round_up(entries, kBlockEntries) * encoding_.slots());
    }
    // Of the blocks of 16 entries that `list` names, in ascending order.
    void require_major_codes(const std::uint8_t* codes, std::span<const std::uint16_t> list) const {
        if (checks_.major_codes == nullptr || list.empty()) return;
        const std::size_t bytes = kBlockEntries * encoding_.slots();
        if (checks_.major_codes->knows(codes + list.front() * bytes,
                                       (list.back() - list.front() + std::size_t{1}) * bytes)) {
            return;
        }
        for (const std::uint16_t block : list) {
            checks_.major_codes->require(codes + block * bytes, bytes);
        }
    }
    const SegmentChecks& checks() const { return checks_; }

    // Makes arrays of a file the entries of an empty store with an encoding, as they are: nothing
    // is copied but what is small. Nothing can be added afterwards.
    void attach(const SegmentArrays& arrays);
    bool attached() const { return attached_; }

    std::size_t nbytes() const;

   private:
    Chunk& chunk_with_room(std::size_t position, std::size_t entries);
    void write_entry(std::size_t position, const float* row, std::int64_t id, const double* view);

    Layout layout_;
    std::size_t dim_;
    Encoding encoding_;
    std::size_t size_ = 0;
    bool attached_ = false;
    TileNorms largest_;
    Cells cells_;
    SegmentChecks checks_;
    std::vector<std::uint32_t> order_;  // of the addition under way; empty: as it came
    std::vector<std::uint32_t>
        positions_;  // of the entries by number; the rest are at their number
    std::vector<std::unique_ptr<Chunk>> chunks_;
};

}  // namespace hiernorm
