// The index as the bindings see it: entries, a fit, an engine; safe to use from many threads.
//
// A search sees the entries that were visible when it began: every addition appears as a whole or
// not at all. Additions write in slices, so that a search waits for one slice at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "cells/estimate.hpp"
#include "search/engines.hpp"
#include "encode/encoding.hpp"
#include "store/ids.hpp"
#include "store/segment_file.hpp"
#include "store/store.hpp"

namespace hiernorm {

enum class EngineKind { kCascade, kPaper, kExhaustive };

enum class CellUse { kWhereItPays, kAlways, kNever };

struct Settings {
    std::size_t dim = 0;
    Metric metric = Metric::kInnerProduct;
    EngineKind engine = EngineKind::kCascade;
    double alpha = 0.0;  // of the paper's engine
    CellUse cells = CellUse::kWhereItPays;
};

// Readers share, a writer waits for them, and later readers wait for it: neither side starves.
class FairSharedMutex {
   public:
    void lock_shared() {
        const std::lock_guard turn(turnstile_);
        mutex_.lock_shared();
    }
    void unlock_shared() { mutex_.unlock_shared(); }
    void lock() {
        turnstile_.lock();
        mutex_.lock();
    }
    void unlock() {
        mutex_.unlock();
        turnstile_.unlock();
    }

   private:
    std::mutex turnstile_;
    std::shared_mutex mutex_;
};

class Index {
   public:
    explicit Index(const Settings& settings);

    const Settings& settings() const { return settings_; }
    std::size_t size() const;
    std::size_t nbytes() const;
    std::size_t ungrouped() const;  // entries that lie in no cone
    std::optional<Fit> fit() const;

    // Before the first entry; engines that search exhaustively need none.
    void set_fit(Fit fit);

    // Adds entries, all or (if something throws) none. Ids must be new; the fit must have no
    // rotation. Throws std::invalid_argument for a row or an id that is not acceptable.
    void add(const float* rows, const std::int64_t* ids, std::size_t count);

    // The same in parts, for one writer at a time: check all rows, group them by the majors of
    // their views, without the level
    // (which tells the order to write them in; empty: as they are), write them part by part with
    // their views (rows `ahead` of the visible ones, `more` to come after this part), publish.
    void check(const float* rows, const std::int64_t* ids, std::size_t count) const;
    std::vector<std::uint32_t> group(const float* rows, const float* majors, std::size_t stride,
                                     const std::int64_t* ids, std::size_t count);
    void write(std::size_t ahead, const float* rows, const std::int64_t* ids, const double* views,
               std::size_t count, std::size_t more);
    void publish(const std::int64_t* ids, std::size_t count);

    // The entries of an empty index, fitted as they were encoded, are those of a file; nothing can
    // be added to it. Whoever calls keeps the arrays alive.
    void attach(const SegmentArrays& arrays);

    // What was written and not published, for a file: codes and norms of a chunk, which leave the
    // memory, and the cells of all chunks.
    Chunk take_chunk(std::size_t chunk);
    const Cells& cells() const { return store_.cells(); }

    // Answers `count` queries; returns the number of entries that were searched.
    std::size_t search(const Job& job, const float* queries, std::size_t count, std::size_t threads,
                       std::size_t batch_size, std::vector<Answer>& answers) const;

    // The same, where `answers` hold what was found elsewhere: the k best of both are left. Reports
    // are those of this search alone.
    std::size_t search_further(const Job& job, const float* queries, std::size_t count,
                               std::size_t threads, std::size_t batch_size,
                               std::vector<Answer>& answers) const;

    // Exhaustive search by canonical scores, whatever the engine.
    std::size_t search_all(const Job& job, const float* queries, std::size_t count,
                           std::size_t threads, std::vector<Answer>& answers) const;

    // Copies the rows of `ids`; throws std::out_of_range naming the first unknown id.
    void reconstruct(const std::int64_t* ids, std::size_t count, float* rows) const;

    // Copies ids and rows of the first `count` entries, in order of insertion.
    void copy_entries(std::size_t first, std::size_t count, std::int64_t* ids, float* rows) const;

   private:
    using GroupSearch = void (Index::*)(const Kernels&, const Job&, const float*,
                                        std::span<Answer>) const;

    std::size_t run(GroupSearch engine, const Job& job, const float* queries, std::size_t count,
                    std::size_t threads, std::size_t batch_size,
                    std::vector<Answer>& answers) const;
    void search_group(const Kernels&, const Job&, const float* queries, std::span<Answer>) const;
    void search_group_all(const Kernels&, const Job&, const float* queries,
                          std::span<Answer>) const;
    Grouping plan_cells(const GroupingData& data, const std::int64_t* ids) const;
    void write_in_order(const float* rows, const std::int64_t* ids,
                        const std::vector<std::uint32_t>& order);
    void check_rows(const char* what, const float* rows, std::size_t count) const;

    Settings settings_;
    mutable FairSharedMutex mutex_;  // guards store_ and ids_
    std::mutex writer_;              // one addition at a time
    Store store_;
    IdTable ids_;
};

}  // namespace hiernorm
