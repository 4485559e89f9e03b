// Cones over the entries of grouped additions: a cone around every block of 16 entries, around
// every 16 such blocks (256 entries), and around every 16 of those (4,096). A search goes down and
// reads the blocks only whose cones can hold an entry that reaches its threshold.
//
// Whatever was not added in a group, or is not complete, has open cones: it is always read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cells/cone.hpp"
#include "encode/encoding.hpp"
#include "encode/tile_norms.hpp"
#include "store/buffer.hpp"

namespace hiernorm {

// The cones over one chunk, level by level, as codes in blocks of 16 cones.
using ChunkCones = std::array<Buffer<std::uint8_t>, kConeLevels>;

using LevelPointers = std::array<const std::uint8_t*, kConeLevels>;

ConeLayout cone_layout(const Encoding& encoding);

// Bytes of the blocks of 16 cones over the first `entries` of a level.
std::size_t cone_bytes(const ConeLayout& layout, std::size_t level, std::size_t entries);

// The largest over all members of cones.
struct ConeNorms {
    double norm = 0.0;  // of what the cone is drawn around
    double tail = 0.0;  // of the minor
    double view_error = 0.0;
};

class Cells {
   public:
    // Entries that can be seen and lie in cones of their own.
    std::size_t grouped_entries() const { return grouped_; }

    // Null where no entry of the chunk was grouped.
    const ChunkCones* chunk(std::size_t index) const {
        return index < chunks_.size() ? chunks_[index].get() : nullptr;
    }
    const ConeLayout& layout() const { return layout_; }

    const ConeNorms& norms() const { return norms_; }

    // The entries to be written at `first` (a multiple of 16) to `end` come in groups.
    void plan(const Encoding& encoding, std::size_t first, std::size_t end);

    // Takes in the entry written at `position`; entries come in order.
    void include(std::size_t position, const double* view, const TileNorms& norms,
                 double view_error);

    // Forgets what was written behind the first `entries` and never shown.
    void withdraw(std::size_t entries);

    // Shows the first `entries`; cannot fail.
    void show(std::size_t entries);

    // For a file: copies the cones over the first `entries`, cone_bytes() of them; those of entries
    // in no group are open.
    void copy_cones(std::size_t level, std::size_t entries, std::uint8_t* out) const;

    // Brings them back: all entries were grouped at once, whole blocks of them. The codes stay
    // where they are, aligned to 64 bytes; codes that were tampered with rule out what they should
    // not, but lead nowhere else.
    void borrow(const Encoding& encoding, const LevelPointers& cones, const ConeNorms& norms,
                std::size_t entries);

    std::size_t nbytes() const;

   private:
    struct Range {
        std::size_t first;
        std::size_t end;
    };

    void add_chunk(std::size_t index);
    void close(std::size_t level, std::size_t end);
    void store(std::size_t level, std::size_t cone, const std::int8_t* codes);

    std::size_t major_ = 0;
    bool entry_tails_ = false;
    ConeLayout layout_{};
    std::size_t grouped_ = 0;
    Range planned_{};
    std::vector<Range> closed_;  // the grouped additions, whole blocks of each
    ConeNorms norms_;
    std::vector<std::unique_ptr<ChunkCones>> chunks_;
    std::vector<float> units_;  // of the 4,096 entries under way: blocks[dim][entry]
};

}  // namespace hiernorm
