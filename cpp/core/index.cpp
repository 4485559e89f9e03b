// Entries: added, marked as removed, looked up and copied.
#include "index.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "addition.hpp"
#include "encode/exact_query.hpp"
#include "float_environment.hpp"
#include "interrupt.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kSliceEntries = 4096;  // gathered at a time

Layout layout_of(EngineKind engine) {
    switch (engine) {
        case EngineKind::kCascade: return Layout::kCodes;
        case EngineKind::kPaper: return Layout::kFloatMajors;
        case EngineKind::kExhaustive:
        case EngineKind::kFlat: return Layout::kRowsOnly;
    }
    throw std::invalid_argument("no such engine");
}

// Sets the bits of `first` to `last` - 1 in `bits`, which grow to whole words of 64.
void set_bits(std::vector<std::uint8_t>& bits, std::size_t first, std::size_t last) {
    bits.resize(divide_up(last, 64) * 8);
    for (std::size_t i = first; i < last; ++i) {
        bits[i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
    }
}

// One pass that vectorises: one more in the exponent overflows into the sign exactly for infinity
// and NaN.
bool all_finite(const float* row, std::size_t dim) {
    std::uint32_t overflow = 0;
    for (std::size_t j = 0; j < dim; ++j) {
        overflow |= (std::bit_cast<std::uint32_t>(row[j]) & 0x7fffffffu) + 0x00800000u;
    }
    return (overflow & 0x80000000u) == 0;
}

}  // namespace

EngineKind engine_named(std::string_view name) {
    if (name == "cascade") return EngineKind::kCascade;
    if (name == "paper") return EngineKind::kPaper;
    if (name == "exhaustive") return EngineKind::kExhaustive;
    if (name == "flat") return EngineKind::kFlat;
    throw std::invalid_argument("engine must be one of cascade, paper, exhaustive, flat, got '" +
                                std::string(name) + "'");
}

Index::Index(const Settings& settings)
    : settings_(settings),
      store_(layout_of(settings.engine), settings.dim),
      ids_([this](std::size_t number) { return store_.id(store_.position_of(number)); }) {}

std::size_t Index::size() const {
    const std::shared_lock lock(mutex_);
    return store_.size();
}

std::size_t Index::live() const {
    const std::shared_lock lock(mutex_);
    return store_.size() - removed_;
}

std::size_t Index::removed() const {
    const std::shared_lock lock(mutex_);
    return removed_;
}

std::size_t Index::nbytes() const {
    const std::shared_lock lock(mutex_);
    return store_.nbytes() + ids_.nbytes() + live_.size();
}

std::size_t Index::ungrouped() const {
    const std::shared_lock lock(mutex_);
    return store_.size() - store_.cells().grouped_entries();
}

std::optional<Encoding> Index::encoding() const {
    const std::shared_lock lock(mutex_);
    if (!store_.has_encoding()) return std::nullopt;
    return store_.encoding();
}

void Index::set_encoding(Encoding encoding) {
    const std::unique_lock lock(mutex_);
    if (store_.size() != 0) throw std::logic_error("an encoding is set before the first entry");
    if (encoding.rotated() && settings_.engine == EngineKind::kPaper) {
        throw std::invalid_argument("the paper's engine searches the prefix, not a rotation");
    }
    encoding.check(settings_.dim);
    store_.set_encoding(std::move(encoding));
}

void Index::plan_flat(std::vector<std::size_t> least_queries) {
    const std::unique_lock lock(mutex_);
    flat_plan_ = std::move(least_queries);
}

std::vector<std::size_t> Index::flat_plan() const {
    const std::shared_lock lock(mutex_);
    return flat_plan_;
}

void Index::attach(const SegmentArrays& arrays, bool know_ids) {
    const std::unique_lock lock(mutex_);
    if (store_.layout() == Layout::kCodes && !store_.has_encoding()) {
        throw std::logic_error("a segment was attached before its encoding was set");
    }
    if (know_ids) {
        if (const auto twice = ids_.first_duplicate(arrays.ids, arrays.entries)) {
            throw std::invalid_argument("id " + std::to_string(*twice) + " is given twice");
        }
    }
    store_.attach(arrays);
    if (know_ids) ids_.append(arrays.ids, arrays.entries);
}

bool Index::attached() const {
    const std::shared_lock lock(mutex_);
    return store_.attached();
}

void Index::check_rows(const char* what, const float* rows, std::size_t count) const {
    const Kernels& kernels = active_kernels();
    for (std::size_t i = 0; i < count; ++i) {
        if (i % kPolledEvery == kPolledEvery - 1) poll_interrupt();
        const float* row = rows + i * settings_.dim;
        if (!all_finite(row, settings_.dim)) {
            for (std::size_t j = 0; j < settings_.dim; ++j) {
                if (std::isfinite(row[j])) continue;
                throw std::invalid_argument(std::string(what) + " row " + std::to_string(i) +
                                            ", dimension " + std::to_string(j) + " is " +
                                            (std::isnan(row[j]) ? "NaN" : "infinite") +
                                            "; all values must be finite float32");
            }
        }
        if (settings_.metric == Metric::kCosine &&
            canonical_norm(kernels, row, settings_.dim) == 0.0) {
            throw std::invalid_argument(std::string(what) + " row " + std::to_string(i) +
                                        " is a zero vector; the cosine metric needs a direction");
        }
    }
}

void Index::check(const float* rows, const std::int64_t* ids, std::size_t count) const {
    const DefaultFloatEnvironment environment;
    check_rows("vectors", rows, count);
    const std::shared_lock lock(mutex_);
    if (store_.attached()) throw std::logic_error("nothing can be added to a segment");
    if (store_.size() + count > kMaxEntries) {
        throw std::invalid_argument("an index holds at most 2^32 - 1 entries");
    }
    if (const auto duplicate = ids_.first_duplicate(ids, count)) {
        throw std::invalid_argument("id " + std::to_string(*duplicate) +
                                    " is in the index already or given twice");
    }
}

void Index::add(const float* rows, const std::int64_t* ids, std::size_t count, bool replace) {
    const std::size_t dim = settings_.dim;
    Addition addition(*this, {rows, rows, dim, ids, count}, /*checked=*/replace);
    const std::vector<std::uint32_t>& order = addition.order();
    if (order.empty()) {
        addition.write(rows, ids, nullptr, count);
    } else {
        std::vector<float> slice_rows(kSliceEntries * dim);
        std::vector<std::int64_t> slice_ids(kSliceEntries);
        for (std::size_t first = 0; first < count; first += kSliceEntries) {
            const std::size_t entries = std::min(kSliceEntries, count - first);
            for (std::size_t i = 0; i < entries; ++i) {
                const std::size_t from = order[first + i];
                std::copy_n(rows + from * dim, dim, slice_rows.data() + i * dim);
                slice_ids[i] = ids[from];
            }
            addition.write(slice_rows.data(), slice_ids.data(), nullptr, entries);
        }
    }
    addition.publish(replace);
}

std::size_t Index::remove(const std::int64_t* ids, std::size_t count) {
    const std::unique_lock lock(mutex_);
    return remove_locked(ids, count);
}

std::size_t Index::remove_locked(const std::int64_t* ids, std::size_t count) {
    const std::size_t before = removed_;
    for (std::size_t i = 0; i < count; ++i) {
        const auto number = ids_.find(ids[i]);
        if (!number) continue;
        if (live_.empty()) {
            set_bits(live_, 0, store_.size());
            marked_ = store_.size();
        }
        ids_.forget(*number);
        const std::size_t position = store_.position_of(*number);
        live_[position / 8] &= static_cast<std::uint8_t>(~(1u << (position % 8)));
        ++removed_;
    }
    return removed_ - before;
}

void Index::mark_new_entries() {
    if (live_.empty()) return;
    set_bits(live_, marked_, store_.size());
    marked_ = store_.size();
}

std::size_t Index::mark(std::span<const std::int64_t> ids, std::vector<std::uint8_t>& bits) const {
    bits.assign(divide_up(store_.size(), 64) * 8, 0);
    std::size_t marked = 0;
    for (const std::int64_t id : ids) {
        const auto number = ids_.find(id);
        if (!number) continue;
        const std::size_t position = store_.position_of(*number);
        const auto bit = static_cast<std::uint8_t>(1u << (position % 8));
        marked += (bits[position / 8] & bit) == 0 ? 1 : 0;  // an id may be given twice
        bits[position / 8] |= bit;
    }
    return marked;
}

void Index::find(const std::int64_t* ids, std::size_t count, bool* found) const {
    const std::shared_lock lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) found[i] = ids_.find(ids[i]).has_value();
}

std::vector<std::int64_t> Index::ids() const {
    const std::shared_lock lock(mutex_);
    std::vector<std::int64_t> all;
    all.reserve(store_.size() - removed_);
    for (std::size_t number = 0; number < store_.size(); ++number) {
        const std::size_t position = store_.position_of(number);
        if (is_live(position)) all.push_back(store_.id(position));
    }
    return all;
}

void Index::reconstruct(const std::int64_t* ids, std::size_t count, float* rows) const {
    const std::shared_lock lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
        const auto number = ids_.find(ids[i]);
        if (!number) {
            throw std::out_of_range("id " + std::to_string(ids[i]) + " is not in the index");
        }
        const std::size_t position = store_.position_of(*number);
        store_.require_row(position);
        std::copy_n(store_.row(position), settings_.dim, rows + i * settings_.dim);
    }
}

void Index::copy_entries(std::size_t first, std::size_t count, std::int64_t* ids,
                         float* rows) const {
    const std::shared_lock lock(mutex_);
    std::size_t number = removed_ == 0 ? first : 0;
    std::size_t ahead = first - number;  // live entries that are still to be passed over
    for (std::size_t i = 0; i < count; ++number) {
        if (number >= store_.size()) throw std::out_of_range("the index has fewer entries");
        const std::size_t position = store_.position_of(number);
        if (!is_live(position)) continue;
        if (ahead > 0) {
            --ahead;
            continue;
        }
        ids[i] = store_.id(position);
        store_.require_row(position);
        std::copy_n(store_.row(position), settings_.dim, rows + i * settings_.dim);
        ++i;
    }
}

void Index::copy_tensors(const std::function<std::byte*(const TensorLayout&)>& place) const {
    const std::shared_lock lock(mutex_);
    const std::size_t entries = store_.size();
    const Encoding* encoding = store_.layout() == Layout::kCodes ? &store_.encoding() : nullptr;
    const bool cones = store_.cells().grouped_entries() != 0;
    for (const TensorLayout& tensor : segment_tensors(settings_.dim, entries, encoding, cones)) {
        if (tensor.name.starts_with("sorted_")) continue;
        copy_tensor(tensor, store_, place(tensor));
    }
}

}  // namespace hiernorm
