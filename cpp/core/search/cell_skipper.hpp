// The step "skip cells": the blocks that one query has to read are those whose cones, of 4,096
// entries, then of 256, then of 16, can hold a better entry.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cells/cone_query.hpp"
#include "search/request.hpp"
#include "search/workspace.hpp"
#include "store/store.hpp"

namespace hiernorm {

// How much is read to find a first threshold: the more entries, the more a better one saves.
constexpr std::size_t seeding_effort(std::size_t entries) {
    constexpr std::size_t kEntries = std::size_t{1} << 18, kMost = 8;
    return std::min(1 + entries / kEntries, kMost);
}

class CellSkipper {
   public:
    void begin(const Store& store, const Kernels& kernels, const QueryView& view, bool in_group,
               Workspace& workspace);

    // Blocks of the store that point much the same way as the query, in order: more than 16, with
    // more than twice `entries` entries, if there are as many.
    std::span<const std::uint32_t> nearest(std::size_t entries);

    // Skips the blocks among kRangeEntries of a chunk, from entry `first` on, that cannot reach the
    // threshold. False where it is not worth it: then all of them are to be read.
    bool skip(std::size_t chunk, std::size_t first, double threshold, SearchStats& stats);

    // Blocks left that blocks_before() has not given yet: they follow one another in memory.
    std::size_t blocks_left() const { return left_count_ - next_; }

    // The next blocks left up to entry `end` of the chunk, as numbers within it.
    std::span<const std::uint16_t> blocks_before(std::size_t end);

   private:
    void rank(const std::int32_t* scores, std::size_t first, std::size_t cones, std::size_t wanted);
    void require_cones(const ChunkCones& cones, std::size_t first, std::size_t end) const;
    void descend(const ChunkCones& cones, std::size_t first, std::size_t end);

    const Store* store_ = nullptr;
    const Kernels* kernels_ = nullptr;
    Workspace* workspace_ = nullptr;
    ConeQuery query_;
    double most_read_ = 0.0;  // share of a range above which reading all of it is faster
    std::size_t tried_ = 0;   // ranges, and those of them that had to be read whole
    std::size_t whole_ = 0;
    Buffer<std::uint16_t> left_;
    std::size_t left_count_ = 0;
    std::size_t next_ = 0;
};

}  // namespace hiernorm
