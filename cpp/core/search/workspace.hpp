// Memory that lives with a thread and serves one search after the other: nothing is allocated for a
// query once a search like it has run.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"
#include "per_thread.hpp"
#include "store/buffer.hpp"

namespace hiernorm {

// What the steps of a query write and read within one call of a step; the queries of a group share
// it. Values are undefined before a step has written them.
struct Workspace {
    Buffer<std::int32_t> scores;            // seed: of a tile or of blocks
    std::vector<std::int32_t> best_scores;  // seed: of a tile, or of each block
    std::vector<Candidate> pool;            // seed from cells
    std::vector<Candidate> ranked_cones;    // best first
    std::vector<std::uint32_t> nearest;     // cones, then blocks
    Buffer<std::uint16_t> level_below;      // skip cells
    Buffer<std::uint16_t> allowed_blocks;   // scan with a mask
    Buffer<Contender> contenders;           // tighten and weigh, of one tile
};

// What the calling thread has kept of an earlier use, or a new one; kept again at the end of the
// scope. A search within a search (a signal handler may begin one) finds none, and makes its own.
template <class T>
class Kept {
   public:
    Kept() : value_(std::move(slot())) {
        if (value_ == nullptr) value_ = std::make_unique<T>();
    }
    ~Kept() { slot() = std::move(value_); }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    T& operator*() { return *value_; }
    T* operator->() { return value_.get(); }

   private:
    static std::unique_ptr<T>& slot() { return kept_by_thread<std::unique_ptr<T>>(); }

    std::unique_ptr<T> value_;
};

}  // namespace hiernorm
