// Step 2 of the cascade: the entries that give a query its first threshold.
#include <algorithm>
#include <functional>

#include "search/passage.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kFewSeeds = 64;
constexpr std::size_t kMoreSeeds = 3;  // from cells: the best major need not be the best entry

}  // namespace

void Passage::seed_from_cells() {
    const std::size_t wanted = answer_->results.missing() + kMoreSeeds;
    // With a mask it takes more entries to find as many that count.
    for (const std::uint32_t block : cells_.nearest(mask_.expected(wanted, store_->size()))) {
        const std::size_t first = std::size_t{block} * kBlockEntries;
        find_seeds(first, std::min(kBlockEntries, store_->size() - first), wanted);
    }
    if (seeds_.size() < answer_->results.missing()) seeds_.clear();
    for (const Candidate& seed : seeds_) prefetch_row(seed.position);
    for (const Candidate& seed : seeds_) settle_row(seed.position);
    seeded_ = seeds_.size();
    std::sort(seeds_.begin(), seeds_.end(),
              [](const Candidate& a, const Candidate& b) { return a.position < b.position; });
}

// Whether the scan has found an entry again that is settled already.
bool Passage::is_seed(std::uint32_t position) const {
    const auto seed = std::lower_bound(
        seeds_.begin(), seeds_.end(), position,
        [](const Candidate& candidate, std::uint32_t at) { return candidate.position < at; });
    return seed != seeds_.end() && seed->position == position;
}

// Keeps the `wanted` best majors seen so far: a heap with the worst of them in front.
void Passage::find_seeds(std::size_t first, std::size_t entries, std::size_t wanted) {
    const auto better = [](const Candidate& a, const Candidate& b) { return a.score > b.score; };
    scores_.resize(entries + kBlockEntries);
    const std::int32_t largest =
        kernels_->score_u8i8(store_->chunk(first / kChunkEntries).major_codes.data() +
                                 first % kChunkEntries * store_->fit().slots(),
                             entries, coded_.scan(), scores_.data());
    if (seeds_.size() == wanted && largest <= seeds_.front().score) return;
    for (std::size_t i = 0; i < entries; ++i) {
        if (!mask_.allows(first + i)) continue;
        if (seeds_.size() == wanted) {
            if (scores_[i] <= seeds_.front().score) continue;
            std::pop_heap(seeds_.begin(), seeds_.end(), better);
            seeds_.pop_back();
        }
        seeds_.push_back({static_cast<std::uint32_t>(first + i), scores_[i]});
        std::push_heap(seeds_.begin(), seeds_.end(), better);
    }
}

// While fewer than k entries are settled: the best majors of the tile are settled at once; the
// others become candidates if the threshold they give allows it.
std::size_t Passage::seed_from_scratch(const Tile& tile, Candidate* out) {
    scores_.resize((tile.entries + kBlockEntries - 1) / kBlockEntries * kBlockEntries);
    const std::int32_t largest =
        kernels_->score_u8i8(tile.chunk.major_codes.data() + tile.first * store_->fit().slots(),
                             tile.entries, coded_.scan(), scores_.data());
    mask_.hide(scores_.data(), tile.position, tile.entries, kDone);
    const std::size_t allowed = mask_.count(tile.position, tile.entries);
    const std::size_t wanted = std::min(answer_->results.missing(), allowed);
    const std::int32_t bar =
        wanted == 1 && mask_.all() ? largest : nth_largest(wanted, tile.entries);
    std::size_t count =
        kernels_->select_i32(scores_.data(), tile.entries, bar - 1, tile.position, out, nullptr);
    for (std::size_t i = 0; i < count; ++i) prefetch_row(out[i].position);
    for (std::size_t i = 0; i < count && answer_->results.missing() != 0; ++i) {
        settle_row(out[i].position);
        ++seeded_;
        scores_[out[i].position - tile.position] = kDone;
    }
    if (wanted == allowed) return 0;
    std::int32_t skipped = kDone;
    count = kernels_->select_i32(scores_.data(), tile.entries,
                                 coded_.cut(threshold_, scan_slack(tile.norms)), tile.position, out,
                                 &skipped);
    skip_scores(skipped, tile.norms);
    return count;
}

// The n-th largest of the tile's scores, 1 <= n <= entries.
std::int32_t Passage::nth_largest(std::size_t n, std::size_t entries) {
    const auto first = scores_.begin();
    const auto last = first + static_cast<std::ptrdiff_t>(entries);
    if (n > kFewSeeds) {
        ranked_.assign(first, last);
        const auto nth = ranked_.begin() + static_cast<std::ptrdiff_t>(n - 1);
        std::nth_element(ranked_.begin(), nth, ranked_.end(), std::greater<>());
        return *nth;
    }
    // The n largest so far in descending order; few scores get past the comparison.
    ranked_.assign(first, first + static_cast<std::ptrdiff_t>(n));
    std::sort(ranked_.begin(), ranked_.end(), std::greater<>());
    for (auto score = first + static_cast<std::ptrdiff_t>(n); score != last; ++score) {
        if (*score <= ranked_.back()) continue;
        std::size_t place = n - 1;
        for (; place != 0 && ranked_[place - 1] < *score; --place) {
            ranked_[place] = ranked_[place - 1];
        }
        ranked_[place] = *score;
    }
    return ranked_.back();
}

}  // namespace hiernorm
