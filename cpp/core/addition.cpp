// Checks, groups, writes in slices, publishes.
#include "addition.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "cells/estimate.hpp"
#include "float_environment.hpp"
#include "interrupt.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kSliceEntries = 4096;  // written while searches wait

// Rotated entries from which on cells pay whatever their cones leave: a search begins with a good
// threshold, and survivors lie side by side. Measured; fewer entries lose at k = 1.
constexpr std::size_t kLeastForSeeds = std::size_t{1} << 15;

// The share of the entries that a search may be expected to read for cells to pay. Rotated vectors
// allow for more, the more slots an entry has: going from block to block costs as much as 12.8 of
// them, measured, and the threshold that cells begin with saves a good part of the steps behind the
// scan.
double most_read(const Encoding& encoding) {
    if (!encoding.rotated()) return 0.5;
    return 1.1 / (1.0 + 12.8 / static_cast<double>(encoding.slots()));
}

}  // namespace

Addition::Addition(Index& index, const NewEntries& entries, bool checked) : index_(index) {
    index_.writer_.acquire();
    try {
        if (!checked) index_.check(entries.rows, entries.ids, entries.count);
        const DefaultFloatEnvironment environment;
        ids_.assign(entries.ids, entries.ids + entries.count);
        Grouping grouping = group(entries);
        order_ = grouping.order;
        const std::unique_lock lock(index_.mutex_);
        index_.store_.begin(std::move(grouping));
    } catch (...) {
        index_.writer_.release();
        throw;
    }
}

// Otherwise no cells where a search would read most entries all the same: in the order they came,
// the first entries tell more about the others.
Grouping Addition::group(const NewEntries& entries) const {
    const CellUse cells = index_.settings_.cells;
    const bool always = cells == CellUse::kAlways;
    if (index_.settings_.engine != EngineKind::kCascade || cells == CellUse::kNever) return {};
    const Store& store = index_.store_;
    const std::size_t least = store.encoding().rotated() ? kLeastGrouped : kLeastGroupedHn;
    if (entries.count < least && !always) return {};
    const GroupingData data{.encoding = store.encoding(),
                            .rows = entries.rows,
                            .majors = entries.majors,
                            .stride = entries.stride,
                            .count = entries.count};
    const ConeVectors vectors = cone_vectors(data);
    const std::size_t lead = round_up(store.size(), kBlockEntries) - store.size();
    Grouping grouping = group_by_direction(vectors, entries.ids, entries.count, lead);
    const bool sure = always || (data.encoding.rotated() && entries.count >= kLeastForSeeds);
    if (!sure && estimate_read_share(grouping, vectors, data) > most_read(data.encoding)) return {};
    return grouping;
}

void Addition::require_open() const {
    if (!open_) throw std::logic_error("the addition is closed");
}

void Addition::write(const float* rows, const std::int64_t* ids, const double* views,
                     std::size_t count) {
    require_open();
    if (count > ids_.size() - written_) {
        throw std::logic_error("an addition is written more entries than it was told of");
    }
    const DefaultFloatEnvironment environment;
    const std::size_t dim = index_.settings_.dim;
    Store& store = index_.store_;
    for (std::size_t first = 0; first < count; first += kSliceEntries) {
        poll_interrupt();  // without the lock
        const std::size_t entries = std::min(kSliceEntries, count - first);
        const std::unique_lock lock(index_.mutex_);
        if (store.layout() != Layout::kRowsOnly && !store.has_encoding()) {
            throw std::logic_error("entries were added before the encoding was set");
        }
        store.write(written_, rows + first * dim, ids + first,
                    views == nullptr ? nullptr : views + first * dim, entries,
                    ids_.size() - written_ - entries);
        written_ += entries;
    }
}

void Addition::publish(bool replace) {
    require_open();
    if (taken_ || written_ != ids_.size()) {
        throw std::logic_error("an addition is published before all of it was written");
    }
    {
        const std::unique_lock lock(index_.mutex_);
        if (replace) index_.remove_locked(ids_.data(), ids_.size());
        index_.store_.number(ids_.size());
        index_.ids_.append(ids_.data(), ids_.size());
        index_.store_.publish(ids_.size());
        index_.mark_new_entries();
    }
    close();
}

void Addition::close() {
    if (!std::exchange(open_, false)) return;
    index_.writer_.release();
}

Chunk Addition::take_chunk(std::size_t chunk) {
    require_open();
    taken_ = true;
    const std::unique_lock lock(index_.mutex_);
    return index_.store_.take_chunk(chunk);
}

}  // namespace hiernorm
