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

// The n-th largest of the tile's scores, 1 <= n <= entries.
std::int32_t nth_largest(Workspace& workspace, std::size_t n, std::size_t entries) {
    const std::int32_t* const first = workspace.scores.data();
    const std::int32_t* const last = first + entries;
    std::vector<std::int32_t>& best = workspace.best_scores;
    if (n > kFewSeeds) {
        best.assign(first, last);
        const auto nth = best.begin() + static_cast<std::ptrdiff_t>(n - 1);
        std::nth_element(best.begin(), nth, best.end(), std::greater<>());
        return *nth;
    }
    // The n largest so far in descending order; few scores get past the comparison.
    best.assign(first, first + n);
    std::sort(best.begin(), best.end(), std::greater<>());
    for (const std::int32_t* score = first + n; score != last; ++score) {
        if (*score <= best.back()) continue;
        std::size_t place = n - 1;
        for (; place != 0 && best[place - 1] < *score; --place) best[place] = best[place - 1];
        best[place] = *score;
    }
    return best.back();
}

}  // namespace

void Seeding::begin() {
    seeds_.clear();
    seeded_ = 0;
}

void Seeding::seed_from_cells(PreparedQuery& query, CellSkipper& cells) {
    const std::size_t entries = query.store().size();
    const std::size_t wanted = query.missing() + kMoreSeeds;
    std::vector<std::int64_t>& best = query.workspace().best_keys;
    best.clear();
    // With a mask it takes more entries to find as many that count.
    for (const std::uint32_t block : cells.nearest(query.mask().expected(wanted, entries))) {
        const std::size_t first = std::size_t{block} * kBlockEntries;
        find_best(query, first, std::min(kBlockEntries, entries - first), wanted);
    }
    if (best.size() < query.missing()) return;
    for (const std::int64_t key : best) seeds_.push_back(position_of(key));
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
    std::vector<std::int64_t>& best = query.workspace().best_keys;
    Buffer<std::int32_t>& scores = query.workspace().scores;
    scores.grow_geometrically(entries + kBlockEntries);
    const Chunk& chunk = query.store().chunk(first / kChunkEntries);
    const std::int32_t largest = query.kernels().score_u8i8(
        chunk.major_codes.data() + first % kChunkEntries * query.encoding().slots(), entries,
        query.codes().scan(), scores.data());
    if (best.size() == wanted && key_of(largest, first) < best.front()) return;
    for (std::size_t i = 0; i < entries; ++i) {
        const std::int64_t key = key_of(scores[i], first + i);
        if (best.size() == wanted && key < best.front()) continue;
        if (!query.mask().allows(first + i)) continue;
        if (best.size() == wanted) {
            std::pop_heap(best.begin(), best.end(), std::greater<>());
            best.pop_back();
        }
        best.push_back(key);
        std::push_heap(best.begin(), best.end(), std::greater<>());
    }
}

std::size_t Seeding::seed_from_tile(PreparedQuery& query, const Tile& tile, Candidate* out) {
    const Kernels& kernels = query.kernels();
    const Mask& mask = query.mask();
    const std::size_t allowed = mask.count(tile.position, tile.entries);
    if (allowed == 0) return 0;
    Buffer<std::int32_t>& scores = query.workspace().scores;
    scores.grow_geometrically(round_up(tile.entries, kBlockEntries));
    const std::uint8_t* codes =
        tile.chunk.major_codes.data() + tile.first * query.encoding().slots();
    query.store().require_major_codes(codes, tile.entries);
    const std::int32_t largest =
        kernels.score_u8i8(codes, tile.entries, query.codes().scan(), scores.data());
    query.stats().scanned += tile.entries;
    mask.hide(scores.data(), tile.position, tile.entries, kNoScore);
    const std::size_t wanted = std::min(query.missing(), allowed);
    const std::int32_t bar =
        wanted == 1 && mask.all() ? largest : nth_largest(query.workspace(), wanted, tile.entries);
    std::size_t count =
        kernels.sift_i32(scores.data(), tile.entries, bar - 1, tile.position, out, nullptr);
    for (std::size_t i = 0; i < count; ++i) query.prefetch_row(out[i].position);
    for (std::size_t i = 0; i < count && query.missing() != 0; ++i) {
        query.settle(out[i].position);
        ++seeded_;
        scores[out[i].position - tile.position] = kNoScore;
    }
    if (wanted == allowed) return 0;
    std::int32_t skipped = kNoScore;
    count = kernels.sift_i32(scores.data(), tile.entries, query.cut(tile.norms), tile.position,
                             out, &skipped);
    query.skip_scores(skipped, tile.norms);
    return count;
}

}  // namespace hiernorm
