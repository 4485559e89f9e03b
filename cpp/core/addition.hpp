// An addition: entries on their way into an index, visible all at once or never.
//
// It holds the index's writer lock from its first to its last moment, so that there is one addition
// at a time. Searches go on: they wait for one slice of a write at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cells/grouping.hpp"
#include "index.hpp"

namespace hiernorm {

// The entries that an addition is told of before it writes them.
struct NewEntries {
    const float* rows;
    const float* majors;  // of the views, without the lift; `stride` apart
    std::size_t stride;
    const std::int64_t* ids;
    std::size_t count;
};

class Addition {
   public:
    // Waits for the lock, checks the entries unless they are known to be acceptable, and groups
    // them into cells where the index has any. Throws std::invalid_argument for a row or an id that
    // is not acceptable.
    Addition(Index& index, const NewEntries& entries, bool checked = false);
    ~Addition() { close(); }
    Addition(const Addition&) = delete;
    Addition& operator=(const Addition&) = delete;

    // Entry order()[p] is to be written as number p; empty: as they came.
    const std::vector<std::uint32_t>& order() const { return order_; }

    // Writes the next `count` entries. `views` are the rotated rows, null without a rotation.
    void write(const float* rows, const std::int64_t* ids, const double* views, std::size_t count);

    // Makes all entries visible and gives the lock back. Those that they `replace`, by their ids,
    // vanish at the same time.
    void publish(bool replace = false);

    // Gives the lock back; what was not published is as if it had never been written.
    void close();

    // What has been written of a chunk, for a file. It leaves the memory, so that more can be
    // encoded than fits; the addition can no longer be published.
    Chunk take_chunk(std::size_t chunk);
    // The cones over what has been written, and what that was encoded with.
    const Cells& cells() const { return index_.store_.cells(); }
    const Encoding& encoding() const { return index_.store_.encoding(); }
    std::size_t written() const { return written_; }

   private:
    Grouping group(const NewEntries& entries) const;
    void require_open() const;

    Index& index_;
    bool open_ = true;
    bool taken_ = false;
    std::vector<std::int64_t> ids_;  // in the order in which they were given
    std::vector<std::uint32_t> order_;
    std::size_t written_ = 0;
};

}  // namespace hiernorm
