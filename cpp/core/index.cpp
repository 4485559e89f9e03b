// Look-ups and the distribution of queries over threads.
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
#include "search/threads.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kSliceEntries = 4096;  // gathered at a time
constexpr std::size_t kGroupQueries = 512;   // that share a pass, if not told otherwise
constexpr std::size_t kFlatQueries = 1024;   // of a flat scan, which packs rows for all of them
constexpr std::size_t kCachedCodes = std::size_t{1} << 19;  // bytes of codes in a core's cache
constexpr std::size_t kCachedQueries = 64;                  // that share a pass over those
constexpr std::size_t kLeastGroup = 16;  // queries that share a pass over cells; measured
constexpr std::size_t kLeastPerHit = 64;  // entries for each hit wanted, to use cells

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

void Index::search_group(const Kernels& kernels, const SearchRequest& request, const float* queries,
                         std::span<Answer> answers) const {
    switch (settings_.engine) {
        case EngineKind::kCascade:
            return search_cascade(store_, kernels, request, queries, answers);
        case EngineKind::kPaper:
            return search_paper(store_, kernels, settings_.alpha, request, queries, answers);
        case EngineKind::kExhaustive: return search_group_all(kernels, request, queries, answers);
        case EngineKind::kFlat: return search_group_flat(kernels, request, queries, answers);
    }
}

void Index::search_group_all(const Kernels& kernels, const SearchRequest& request,
                             const float* queries, std::span<Answer> answers) const {
    search_exhaustive(store_, kernels, settings_.metric, request, queries, answers);
}

void Index::search_group_flat(const Kernels& kernels, const SearchRequest& request,
                              const float* queries, std::span<Answer> answers) const {
    search_flat(store_, kernels, settings_.metric, request, queries, answers);
}

// The flat scan reads the rows that a mask leaves out too.
bool Index::prefers_flat(const SearchRequest& request, std::size_t together) const {
    if (flat_plan_.empty() || request.range || request.soft) return false;
    if (!request.mask.most(store_.size())) return false;
    const auto place = static_cast<std::size_t>(std::bit_width(request.k)) / 2;
    const std::size_t least = flat_plan_[std::min(place, flat_plan_.size() - 1)];
    return least != 0 && together >= least;
}

// The queries of a group share the loads of codes. A smaller group leaves more of a core's cache to
// codes that stay in it. Cells leave each query codes of its own: few queries share too few loads to
// pay for taking turns in the cache.
std::size_t Index::group_queries(const SearchRequest& request, std::size_t count) const {
    if (settings_.engine == EngineKind::kFlat) return kFlatQueries;
    if (settings_.engine != EngineKind::kCascade) return kGroupQueries;
    if (store_.size() * store_.encoding().slots() <= kCachedCodes) return kCachedQueries;
    const bool has_cells = request.use_cells && store_.cells().grouped_entries() != 0;
    return has_cells && count < kLeastGroup ? 1 : kGroupQueries;
}

void Index::distribute(GroupSearch engine, const SearchRequest& request, const float* queries,
                       std::size_t count, std::size_t threads, std::size_t batch_size,
                       Answers& answers) const {
    const Kernels& kernels = active_kernels();
    const std::size_t parts = std::min(threads, store_.size() / kEntriesPerThread);
    if (count < threads && parts > 1 && engine == &Index::search_group &&
        settings_.engine == EngineKind::kCascade) {
        for (std::size_t i = 0; i < count; ++i) {
            search_cascade_parts(store_, kernels, request, queries + i * settings_.dim, answers[i],
                                 parts);
        }
        return;
    }
    threads = std::max<std::size_t>(1, std::min(threads, count));
    const std::size_t share = divide_up(count, threads);
    const bool planned = engine == &Index::search_group &&
                         prefers_flat(request, batch_size == 0 ? share : batch_size);
    if (planned) engine = &Index::search_group_flat;
    std::size_t group = batch_size;
    if (group == 0) group = planned ? kFlatQueries : group_queries(request, share);
    group = std::max<std::size_t>(1, std::min(group, share));
    run_tasks((count + group - 1) / group, threads, [&](std::size_t task) {
        const std::size_t first = task * group;
        (this->*engine)(kernels, request, queries + first * settings_.dim,
                        answers.all().subspan(first, std::min(group, count - first)));
    });
}

Searched Index::answer(bool exhaustive, SearchRequest request, const float* queries,
                       std::size_t count, std::size_t threads, std::size_t batch_size,
                       Answers& answers, const Where& where) const {
    const DefaultFloatEnvironment environment;
    check_rows("queries", queries, count);
    const std::shared_lock lock(mutex_);
    const std::size_t size = store_.size();
    Searched searched{.entries = size - removed_, .live = size - removed_};
    std::vector<std::uint8_t> bits;
    if (where) {
        searched.entries = mark(*where, bits);
        request.mask = Mask(bits.data(), searched.entries);
    } else if (removed_ != 0) {
        request.mask = Mask(live_.data(), searched.live);
    }
    if (size == 0) return searched;
    const bool all = exhaustive || request.mask.sparse(size);
    // A query for many hits reads everything anyway.
    request.use_cells = settings_.cells == CellUse::kAlways || request.range ||
                        request.k <= size / kLeastPerHit;
    distribute(all ? &Index::search_group_all : &Index::search_group, request, queries, count,
               threads, batch_size, answers);
    return searched;
}

Searched Index::search(const SearchRequest& request, const float* queries, std::size_t count,
                       std::size_t threads, std::size_t batch_size, Answers& answers,
                       const Where& where) const {
    answers.reset(request, count);
    return search_further(request, queries, count, threads, batch_size, answers, where);
}

Searched Index::search_further(const SearchRequest& request, const float* queries,
                               std::size_t count, std::size_t threads, std::size_t batch_size,
                               Answers& answers, const Where& where) const {
    return answer(false, request, queries, count, threads, batch_size, answers, where);
}

Searched Index::search_all(const SearchRequest& request, const float* queries, std::size_t count,
                           std::size_t threads, Answers& answers, const Where& where) const {
    answers.reset(request, count);
    return answer(true, request, queries, count, threads, 1, answers, where);
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
