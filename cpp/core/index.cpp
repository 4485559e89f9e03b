// Additions, look-ups and the distribution of queries over threads.
#include "index.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "float_environment.hpp"
#include "encode/query.hpp"
#include "search/threads.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kSliceEntries = 4096;
constexpr std::size_t kGroupQueries = 128;    // that share a pass, if not told otherwise
constexpr std::size_t kLeastGrouped = 16384;  // entries of one addition that are worth cells
constexpr std::size_t kLeastPerHit = 64;      // entries for each hit wanted, to use cells

// The share of the entries that a search may be expected to read for cells to pay. Rotated vectors
// allow for more, the more slots an entry has: going from block to block costs as much as 12.8 of
// them, measured, and the threshold that cells begin with saves a good part of the steps behind the
// scan.
double most_read(const Fit& fit) {
    if (!fit.rotated()) return 0.5;
    return 1.1 / (1.0 + 12.8 / static_cast<double>(fit.slots()));
}

Layout layout_of(EngineKind engine) {
    switch (engine) {
        case EngineKind::kCascade: return Layout::kCodes;
        case EngineKind::kPaper: return Layout::kFloatMajors;
        default: return Layout::kRowsOnly;
    }
}

}  // namespace

Index::Index(const Settings& settings)
    : settings_(settings),
      store_(layout_of(settings.engine), settings.dim),
      ids_([this](std::size_t number) { return store_.id(store_.position_of(number)); }) {}

std::size_t Index::size() const {
    const std::shared_lock lock(mutex_);
    return store_.size();
}

std::size_t Index::nbytes() const {
    const std::shared_lock lock(mutex_);
    return store_.nbytes() + ids_.nbytes();
}

std::size_t Index::ungrouped() const {
    const std::shared_lock lock(mutex_);
    return store_.size() - store_.cells().grouped_entries();
}

std::optional<Fit> Index::fit() const {
    const std::shared_lock lock(mutex_);
    if (!store_.fitted()) return std::nullopt;
    return store_.fit();
}

void Index::set_fit(Fit fit) {
    const std::unique_lock lock(mutex_);
    if (store_.size() != 0) throw std::logic_error("a fit is set before the first entry");
    if (fit.rotated() && settings_.engine == EngineKind::kPaper) {
        throw std::invalid_argument("the paper's engine searches the prefix, not a rotation");
    }
    // Norms are those of the rotated rows; the margins of the bounds allow for 1% between the two.
    if (!(fit.rotation_error < 0.01)) {
        throw std::invalid_argument("the rotation is not orthogonal enough");
    }
    store_.set_fit(std::move(fit));
}

void Index::attach(const SegmentArrays& arrays) {
    const std::unique_lock lock(mutex_);
    if (store_.layout() == Layout::kCodes && !store_.fitted()) {
        throw std::logic_error("a segment was attached before its fit was set");
    }
    store_.attach(arrays);
}

Chunk Index::take_chunk(std::size_t chunk) {
    const std::unique_lock lock(mutex_);
    return store_.take_chunk(chunk);
}

void Index::check_rows(const char* what, const float* rows, std::size_t count) const {
    const Kernels& kernels = active_kernels();
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = rows + i * settings_.dim;
        // One pass that vectorises: the product with zero is NaN exactly for infinity and NaN.
        float poison = 0.0f;
        for (std::size_t j = 0; j < settings_.dim; ++j) poison += row[j] * 0.0f;
        if (poison != 0.0f) {
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

// No cells where a search would read most of them all the same: in the order they came, the first
// entries tell more about the others.
Grouping Index::plan_cells(const GroupingData& data, const std::int64_t* ids) const {
    const bool always = settings_.cells == CellUse::kAlways;
    if (settings_.engine != EngineKind::kCascade || settings_.cells == CellUse::kNever ||
        (data.count < kLeastGrouped && !always)) {
        return {};
    }
    const ConeVectors vectors = cone_vectors(data);
    const std::size_t lead = (kBlockEntries - store_.size() % kBlockEntries) % kBlockEntries;
    Grouping grouping = group_by_direction(vectors, ids, data.count, lead);
    if (!always && estimate_read_share(grouping, vectors, data) > most_read(data.fit)) return {};
    return grouping;
}

std::vector<std::uint32_t> Index::group(const float* rows, const float* majors, std::size_t stride,
                                        const std::int64_t* ids, std::size_t count) {
    const DefaultFloatEnvironment environment;
    Grouping grouping = plan_cells({store_.fit(), rows, majors, stride, count}, ids);
    std::vector<std::uint32_t> order = grouping.order;
    const std::unique_lock lock(mutex_);
    store_.begin(std::move(grouping));
    return order;
}

void Index::write(std::size_t ahead, const float* rows, const std::int64_t* ids,
                  const double* views, std::size_t count, std::size_t more) {
    const DefaultFloatEnvironment environment;
    for (std::size_t first = 0; first < count; first += kSliceEntries) {
        const std::size_t entries = std::min(kSliceEntries, count - first);
        const std::unique_lock lock(mutex_);
        if (store_.layout() != Layout::kRowsOnly && !store_.fitted()) {
            throw std::logic_error("entries were added before the fit was set");
        }
        store_.write(ahead + first, rows + first * settings_.dim, ids + first,
                     views == nullptr ? nullptr : views + first * settings_.dim, entries,
                     count - first - entries + more);
    }
}

void Index::publish(const std::int64_t* ids, std::size_t count) {
    const std::unique_lock lock(mutex_);
    store_.number(count);
    ids_.append(ids, count);
    store_.publish(count);
}

void Index::write_in_order(const float* rows, const std::int64_t* ids,
                           const std::vector<std::uint32_t>& order) {
    std::vector<float> slice_rows(kSliceEntries * settings_.dim);
    std::vector<std::int64_t> slice_ids(kSliceEntries);
    for (std::size_t first = 0; first < order.size(); first += kSliceEntries) {
        const std::size_t entries = std::min(kSliceEntries, order.size() - first);
        for (std::size_t i = 0; i < entries; ++i) {
            const std::size_t from = order[first + i];
            std::copy_n(rows + from * settings_.dim, settings_.dim,
                        slice_rows.data() + i * settings_.dim);
            slice_ids[i] = ids[from];
        }
        write(first, slice_rows.data(), slice_ids.data(), nullptr, entries,
              order.size() - first - entries);
    }
}

void Index::add(const float* rows, const std::int64_t* ids, std::size_t count) {
    const std::lock_guard one_writer(writer_);
    check(rows, ids, count);
    const std::vector<std::uint32_t> order = group(rows, rows, settings_.dim, ids, count);
    if (order.empty()) {
        write(0, rows, ids, nullptr, count, 0);
    } else {
        write_in_order(rows, ids, order);
    }
    publish(ids, count);
}

void Index::search_group(const Kernels& kernels, const Job& job, const float* queries,
                         std::span<Answer> answers) const {
    switch (settings_.engine) {
        case EngineKind::kCascade: return search_cascade(store_, kernels, job, queries, answers);
        case EngineKind::kPaper:
            return search_paper(store_, kernels, settings_.alpha, job, queries, answers);
        default: return search_group_all(kernels, job, queries, answers);
    }
}

void Index::search_group_all(const Kernels& kernels, const Job& job, const float* queries,
                             std::span<Answer> answers) const {
    search_exhaustive(store_, kernels, settings_.metric, job, queries, answers);
}

std::size_t Index::run(GroupSearch engine, const Job& job, const float* queries, std::size_t count,
                       std::size_t threads, std::size_t batch_size,
                       std::vector<Answer>& answers) const {
    const DefaultFloatEnvironment environment;
    check_rows("queries", queries, count);
    const Kernels& kernels = active_kernels();
    const std::shared_lock lock(mutex_);
    if (store_.size() == 0) return 0;
    threads = std::max<std::size_t>(1, std::min(threads, count));
    std::size_t group = batch_size == 0 ? kGroupQueries : batch_size;
    group = std::max<std::size_t>(1, std::min(group, (count + threads - 1) / threads));
    run_tasks((count + group - 1) / group, threads, [&](std::size_t task) {
        const std::size_t first = task * group;
        (this->*engine)(kernels, job, queries + first * settings_.dim,
                        std::span(answers).subspan(first, std::min(group, count - first)));
    });
    return store_.size();
}

std::size_t Index::search(const Job& job, const float* queries, std::size_t count,
                          std::size_t threads, std::size_t batch_size,
                          std::vector<Answer>& answers) const {
    ask(job, count, answers);
    return search_further(job, queries, count, threads, batch_size, answers);
}

std::size_t Index::search_further(const Job& job, const float* queries, std::size_t count,
                                  std::size_t threads, std::size_t batch_size,
                                  std::vector<Answer>& answers) const {
    if (job.mask.sparse(size())) {
        return run(&Index::search_group_all, job, queries, count, threads, batch_size, answers);
    }
    Job planned = job;
    // Soft mode proves more by the bounds of entries than by those of cells. A query for many hits
    // reads everything anyway.
    planned.use_cells = !job.soft && (settings_.cells == CellUse::kAlways || job.range ||
                                      job.k <= size() / kLeastPerHit);
    return run(&Index::search_group, planned, queries, count, threads, batch_size, answers);
}

std::size_t Index::search_all(const Job& job, const float* queries, std::size_t count,
                              std::size_t threads, std::vector<Answer>& answers) const {
    ask(job, count, answers);
    return run(&Index::search_group_all, job, queries, count, threads, 1, answers);
}

void Index::reconstruct(const std::int64_t* ids, std::size_t count, float* rows) const {
    const std::shared_lock lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
        const auto number = ids_.find(ids[i]);
        if (!number) {
            throw std::out_of_range("id " + std::to_string(ids[i]) + " is not in the index");
        }
        std::copy_n(store_.row(store_.position_of(*number)), settings_.dim,
                    rows + i * settings_.dim);
    }
}

void Index::copy_entries(std::size_t first, std::size_t count, std::int64_t* ids,
                         float* rows) const {
    const std::shared_lock lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t position = store_.position_of(first + i);
        ids[i] = store_.id(position);
        std::copy_n(store_.row(position), settings_.dim, rows + i * settings_.dim);
    }
}

}  // namespace hiernorm
