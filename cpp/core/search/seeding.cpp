// Finds the best majors, of the nearest cells or of the first tiles.
#include "search/seeding.hpp"

#include <algorithm>
#include <functional>

namespace hiernorm {
namespace {

constexpr std::size_t kFewSeeds = 64;
constexpr std::size_t kMoreSeeds = 3;  // from cells: the best major need not be the best entry

// Score and position in one number, so that the order is total: the larger score comes first, then
// the smaller position.
std::int64_t key_of(std::int32_t score, std::size_t position) {
    return std::int64_t{score} * (std::int64_t{1} << 32) - static_cast<std::int64_t>(position);
}
std::uint32_t position_of(std::int64_t key) { return static_cast<std::uint32_t>(-key); }

}  // namespace

void Seeding::begin() {
    seeds_.clear();
    seeded_ = 0;
}

void Seeding::seed_from_cells(PreparedQuery& query, CellSkipper& cells) {
    const std::size_t entries = query.store().size();
    const std::size_t wanted = query.missing() + kMoreSeeds;
    best_.clear();
    // With a mask it takes more entries to find as many that count.
    for (const std::uint32_t block : cells.nearest(query.mask().expected(wanted, entries))) {
        const std::size_t first = std::size_t{block} * kBlockEntries;
        find_best(query, first, std::min(kBlockEntries, entries - first), wanted);
    }
    if (best_.size() < query.missing()) return;
    for (const std::int64_t key : best_) seeds_.push_back(position_of(key));
    for (const std::uint32_t position : seeds_) query.prefetch_row(position);
    for (const std::uint32_t position : seeds_) query.settle(position);
    seeded_ = seeds_.size();
    std::sort(seeds_.begin(), seeds_.end());
}

bool Seeding::is_seed(std::uint32_t position) const {
    return std::binary_search(seeds_.begin(), seeds_.end(), position);
}

// Keeps the keys of the `wanted` best majors seen so far: a heap with the worst of them in front.
void Seeding::find_best(const PreparedQuery& query, std::size_t first, std::size_t entries,
                        std::size_t wanted) {
    scores_.resize(entries + kBlockEntries);
    const Chunk& chunk = query.store().chunk(first / kChunkEntries);
    const std::int32_t largest = query.kernels().score_u8i8(
        chunk.major_codes.data() + first % kChunkEntries * query.encoding().slots(), entries,
        query.codes().scan(), scores_.data());
    if (best_.size() == wanted && key_of(largest, first) < best_.front()) return;
    for (std::size_t i = 0; i < entries; ++i) {
        const std::int64_t key = key_of(scores_[i], first + i);
        if (best_.size() == wanted && key < best_.front()) continue;
        if (!query.mask().allows(first + i)) continue;
        if (best_.size() == wanted) {
            std::pop_heap(best_.begin(), best_.end(), std::greater<>());
            best_.pop_back();
        }
        best_.push_back(key);
        std::push_heap(best_.begin(), best_.end(), std::greater<>());
    }
}

std::size_t Seeding::seed_from_tile(PreparedQuery& query, const Tile& tile, Candidate* out) {
    const Kernels& kernels = query.kernels();
    const Mask& mask = query.mask();
    const std::size_t allowed = mask.count(tile.position, tile.entries);
    if (allowed == 0) return 0;
    scores_.resize(round_up(tile.entries, kBlockEntries));
    const std::uint8_t* codes =
        tile.chunk.major_codes.data() + tile.first * query.encoding().slots();
    query.store().require_major_codes(codes, tile.entries);
    const std::int32_t largest =
        kernels.score_u8i8(codes, tile.entries, query.codes().scan(), scores_.data());
    query.stats().scanned += tile.entries;
    mask.hide(scores_.data(), tile.position, tile.entries, kNoScore);
    const std::size_t wanted = std::min(query.missing(), allowed);
    const std::int32_t bar =
        wanted == 1 && mask.all() ? largest : nth_largest(wanted, tile.entries);
    std::size_t count =
        kernels.sift_i32(scores_.data(), tile.entries, bar - 1, tile.position, out, nullptr);
    for (std::size_t i = 0; i < count; ++i) query.prefetch_row(out[i].position);
    for (std::size_t i = 0; i < count && query.missing() != 0; ++i) {
        query.settle(out[i].position);
        ++seeded_;
        scores_[out[i].position - tile.position] = kNoScore;
    }
    if (wanted == allowed) return 0;
    std::int32_t skipped = kNoScore;
    count = kernels.sift_i32(scores_.data(), tile.entries, query.cut(tile.norms), tile.position,
                             out, &skipped);
    query.skip_scores(skipped, tile.norms);
    return count;
}

// The n-th largest of the tile's scores, 1 <= n <= entries.
std::int32_t Seeding::nth_largest(std::size_t n, std::size_t entries) {
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
