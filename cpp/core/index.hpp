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

enum class EngineKind { kCascade, kPaper, kExhaustive, kFlat };

// "cascade", "paper", "exhaustive" or "flat"; throws std::invalid_argument for any other name.
EngineKind engine_named(std::string_view name);

// How much a search covered: the entries that it was allowed to return, and all that there were.
struct Searched {
    std::size_t entries = 0;
    std::size_t live = 0;
};

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
    // From twice as many entries on, a query with threads to spare is searched by several.
    static constexpr std::size_t kEntriesPerThread = std::size_t{1} << 18;

    explicit Index(const Settings& settings);

    const Settings& settings() const { return settings_; }
    std::size_t size() const;     // positions, with those of removed entries
    std::size_t live() const;     // entries
    std::size_t removed() const;  // entries that are still stored, and never returned
    std::size_t nbytes() const;
    std::size_t ungrouped() const;  // entries that lie in no cone
    std::optional<Encoding> encoding() const;

    // Before the first entry; engines that search exhaustively need none.
    void set_encoding(Encoding encoding);

    // From how many queries in a group on the flat scan is expected to be faster than the cascade:
    // the element bit_width(k) / 2, or the last, is for k hits; 0 is never. See planning.py.
    void plan_flat(std::vector<std::size_t> least_queries);
    std::vector<std::size_t> flat_plan() const;

    // Throws std::invalid_argument for a row or an id that cannot be added.
    void check(const float* rows, const std::int64_t* ids, std::size_t count) const;

    // Adds entries, all or (if something throws) none: an Addition from beginning to end. The
    // encoding must have no rotation. To `replace` entries with the same ids, check rows and ids
    // before.
    void add(const float* rows, const std::int64_t* ids, std::size_t count, bool replace = false);

    // Removes the entries with these ids, as a whole; returns how many there were. Their memory
    // stays in use.
    std::size_t remove(const std::int64_t* ids, std::size_t count);

    // The entries of an empty index, encoded as they were, are those of a file; nothing can be
    // added to it. Whoever calls keeps the arrays alive. Entries can be looked up and removed by id
    // only if the index is to `know_ids`; then it throws std::invalid_argument for one given twice.
    void attach(const SegmentArrays& arrays, bool know_ids = false);
    bool attached() const;

    // Ids to which a search is limited; those that are unknown are ignored.
    using Where = std::optional<std::span<const std::int64_t>>;

    // Answers `count` queries.
    Searched search(const SearchRequest& request, const float* queries, std::size_t count,
                    std::size_t threads, std::size_t batch_size, Answers& answers,
                    const Where& where = {}) const;

    // The same, where `answers` hold what was found elsewhere: the k best of both are left. Stats
    // are those of this search alone.
    Searched search_further(const SearchRequest& request, const float* queries, std::size_t count,
                            std::size_t threads, std::size_t batch_size, Answers& answers,
                            const Where& where = {}) const;

    // Exhaustive search by canonical scores, whatever the engine.
    Searched search_all(const SearchRequest& request, const float* queries, std::size_t count,
                        std::size_t threads, Answers& answers, const Where& where = {}) const;

    // Whether there is an entry with this id.
    void find(const std::int64_t* ids, std::size_t count, bool* found) const;

    // All ids in order of insertion.
    std::vector<std::int64_t> ids() const;

    // Copies the rows of `ids`; throws std::out_of_range naming the first unknown id.
    void reconstruct(const std::int64_t* ids, std::size_t count, float* rows) const;

    // Copies ids and rows of `count` entries from `first` on, in order of insertion; throws
    // std::out_of_range if there are fewer.
    void copy_entries(std::size_t first, std::size_t count, std::int64_t* ids, float* rows) const;

    // Copies what a segment file of the entries would hold, but for the tables of sorted ids: calls
    // place(tensor), which returns where a tensor is to be written. For reference.cascade_search.
    void copy_tensors(const std::function<std::byte*(const TensorLayout&)>& place) const;

   private:
    friend class Addition;

    using GroupSearch = void (Index::*)(const Kernels&, const SearchRequest&, const float*,
                                        std::span<Answer>) const;

    Searched answer(bool exhaustive, SearchRequest request, const float* queries, std::size_t count,
                    std::size_t threads, std::size_t batch_size, Answers& answers,
                    const Where& where) const;
    void distribute(GroupSearch engine, const SearchRequest& request, const float* queries,
                    std::size_t count, std::size_t threads, std::size_t batch_size,
                    Answers& answers) const;
    std::size_t group_queries(const SearchRequest& request, std::size_t count) const;
    bool prefers_flat(const SearchRequest& request, std::size_t together) const;
    void search_group(const Kernels&, const SearchRequest&, const float* queries,
                      std::span<Answer>) const;
    void search_group_all(const Kernels&, const SearchRequest&, const float* queries,
                          std::span<Answer>) const;
    void search_group_flat(const Kernels&, const SearchRequest&, const float* queries,
                           std::span<Answer>) const;
    // Under the lock.
    bool is_live(std::size_t position) const {
        return live_.empty() || (live_[position / 8] >> (position % 8) & 1) != 0;
    }
    std::size_t remove_locked(const std::int64_t* ids, std::size_t count);
    void mark_new_entries();  // after an addition was published
    std::size_t mark(std::span<const std::int64_t> ids, std::vector<std::uint8_t>& bits) const;

    void check_rows(const char* what, const float* rows, std::size_t count) const;

    Settings settings_;
    mutable FairSharedMutex mutex_;    // guards what follows
    std::binary_semaphore writer_{1};  // an Addition holds it; any thread may give it back
    Store store_;
    IdTable ids_;
    std::vector<std::uint8_t> live_;  // bits by position, as of a Mask; empty: all are alive
    std::size_t marked_ = 0;          // positions that live_ has bits for
    std::size_t removed_ = 0;
    std::vector<std::size_t> flat_plan_;
};

}  // namespace hiernorm
