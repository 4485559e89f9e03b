// Searches: which engine a group of queries takes, and how groups are distributed over threads.
#include <algorithm>
#include <bit>

#include "float_environment.hpp"
#include "index.hpp"
#include "search/threads.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kGroupQueries = 512;   // that share a pass, if not told otherwise
constexpr std::size_t kFlatQueries = 1024;   // of a flat scan, which packs rows for all of them
constexpr std::size_t kCachedCodes = std::size_t{1} << 19;  // bytes of codes in a core's cache
constexpr std::size_t kCachedQueries = 64;                  // that share a pass over those
constexpr std::size_t kLeastGroup = 16;  // queries that share a pass over cells; measured
constexpr std::size_t kLeastPerHit = 64;  // entries for each hit wanted, to use cells

}  // namespace

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

}  // namespace hiernorm
