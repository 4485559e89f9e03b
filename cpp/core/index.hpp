// The index as the bindings see it: entries, an encoding, an engine; safe to use from many threads.
//
// A search sees the entries that were visible when it began: every addition (addition.hpp) appears
// as a whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <semaphore>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <vector>

#include "encode/encoding.hpp"
#include "search/engines.hpp"
#include "store/ids.hpp"
#include "store/segment_file.hpp"
#include "store/store.hpp"

namespace hiernorm {

enum class EngineKind { kCascade, kPaper, kExhaustive };

// "cascade", "paper" or "exhaustive"; throws std::invalid_argument for any other name.
EngineKind engine_named(std::string_view name);

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
    std::optional<Encoding> encoding() const;

    // Before the first entry; engines that search exhaustively need none.
    void set_encoding(Encoding encoding);

    // Throws std::invalid_argument for a row or an id that cannot be added.
    void check(const float* rows, const std::int64_t* ids, std::size_t count) const;

    // Adds entries, all or (if something throws) none: an Addition from beginning to end. The
    // encoding must have no rotation.
    void add(const float* rows, const std::int64_t* ids, std::size_t count);

    // The entries of an empty index, encoded as they were, are those of a file; nothing can be
    // added to it. Whoever calls keeps the arrays alive.
    void attach(const SegmentArrays& arrays);

    // Answers `count` queries; returns the number of entries that were searched.
    std::size_t search(const SearchRequest& request, const float* queries, std::size_t count,
                       std::size_t threads, std::size_t batch_size,
                       std::vector<Answer>& answers) const;

    // The same, where `answers` hold what was found elsewhere: the k best of both are left. Stats
    // are those of this search alone.
    std::size_t search_further(const SearchRequest& request, const float* queries,
                               std::size_t count, std::size_t threads, std::size_t batch_size,
                               std::vector<Answer>& answers) const;

    // Exhaustive search by canonical scores, whatever the engine.
    std::size_t search_all(const SearchRequest& request, const float* queries, std::size_t count,
                           std::size_t threads, std::vector<Answer>& answers) const;

    // Copies the rows of `ids`; throws std::out_of_range naming the first unknown id.
    void reconstruct(const std::int64_t* ids, std::size_t count, float* rows) const;

    // Copies ids and rows of the first `count` entries, in order of insertion.
    void copy_entries(std::size_t first, std::size_t count, std::int64_t* ids, float* rows) const;

    // Copies what a segment file of the entries would hold, but for the tables of sorted ids: calls
    // place(tensor), which returns where a tensor is to be written. For reference.cascade_search.
    void copy_tensors(const std::function<std::byte*(const TensorLayout&)>& place) const;

   private:
    friend class Addition;

    using GroupSearch = void (Index::*)(const Kernels&, const SearchRequest&, const float*,
                                        std::span<Answer>) const;

    std::size_t distribute(GroupSearch engine, const SearchRequest& request, const float* queries,
                           std::size_t count, std::size_t threads, std::size_t batch_size,
                           std::vector<Answer>& answers) const;
    void search_group(const Kernels&, const SearchRequest&, const float* queries,
                      std::span<Answer>) const;
    void search_group_all(const Kernels&, const SearchRequest&, const float* queries,
                          std::span<Answer>) const;
    void check_rows(const char* what, const float* rows, std::size_t count) const;

    Settings settings_;
    mutable FairSharedMutex mutex_;    // guards store_ and ids_
    std::binary_semaphore writer_{1};  // an Addition holds it; any thread may give it back
    Store store_;
    IdTable ids_;
};

}  // namespace hiernorm
