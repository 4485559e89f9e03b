// Finds the best entries of the nearest cells, by their codes, or the best majors of the first
// tiles.
#include "search/seeding.hpp"

#include <algorithm>
#include <functional>

#include "search/minor_reader.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kFewSeeds = 64;
constexpr std::size_t kMoreSeeds = 2;      // from cells, beyond those that are wanted
constexpr std::size_t kBlocksPooled = 4;   // blocks whose best major decides what is read further
constexpr std::size_t kBlocksPerSeed = 2;  // more of them for each seed

// The n-th largest of the tile's scores, 1 <= n <= entries.
std::int32_t nth_largest(const Kernels& kernels, Workspace& workspace, std::size_t n,
                         std::size_t entries) {
    const std::int32_t* const first = workspace.scores.data();
    const std::int32_t* const last = first + entries;
    if (n <= kBlockEntries) return kernels.nth_largest_i32(first, entries, n);
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

void fetch_minors(const Encoding& encoding, const Chunk& chunk,
                  std::span<const Candidate> candidates) {
    const std::size_t bytes = encoding.stages[0].bytes;
    for (const Candidate& candidate : candidates) {
        prefetch(chunk.stage_codes[0].data() + candidate.position % kChunkEntries * bytes);
    }
}

}  // namespace

void Seeding::begin() {
    seeds_.clear();
    seeded_ = 0;
}

void Seeding::seed_from_cells(PreparedQuery& query, CellSkipper& cells) {
    const std::size_t size = query.store().size(), wanted = query.missing() + kMoreSeeds;
    // With a mask it takes more entries to find as many that count.
    const std::size_t expected = query.mask().expected(wanted, size);
    fill_pool(query, cells.nearest(expected),
              kBlocksPooled * seeding_effort(size) + kBlocksPerSeed * wanted);
    if (query.workspace().pool.size() < query.missing()) return;
    for (const Contender& seed : best_by_codes(query, wanted)) {
        query.prefetch_row(seed.position);
        seeds_.push_back(seed.position);
    }
    for (const std::uint32_t position : seeds_) query.settle(position);
    seeded_ = seeds_.size();
    std::sort(seeds_.begin(), seeds_.end());
}

// Leaves the entries of the blocks, in order, that may be returned and have no lower score than the
// best of the first `best` blocks, ranked by their best.
void Seeding::fill_pool(const PreparedQuery& query, std::span<const std::uint32_t> blocks,
                        std::size_t best) {
    const std::size_t size = query.store().size(), slots = query.encoding().slots();
    Workspace& workspace = query.workspace();
    workspace.scores.grow_geometrically(blocks.size() * kBlockEntries);
    std::int32_t* const scores = workspace.scores.data();
    std::vector<std::int32_t>& largest = workspace.best_scores;
    largest.clear();
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        std::int32_t* const block = scores + b * kBlockEntries;
        const std::size_t first = std::size_t{blocks[b]} * kBlockEntries;
        const std::size_t entries = std::min(kBlockEntries, size - first);
        const Chunk& chunk = query.store().chunk(first / kChunkEntries);
        query.kernels().score_u8i8(chunk.major_codes.data() + first % kChunkEntries * slots,
                                   entries, query.codes().scan(), block);
        query.mask().hide(block, first, entries, kNoScore);
        std::fill(block + entries, block + kBlockEntries, kNoScore);
        largest.push_back(*std::max_element(block, block + kBlockEntries));
    }
    workspace.pool.clear();
    if (largest.empty()) return;
    const auto nth =
        largest.begin() + static_cast<std::ptrdiff_t>(std::min(best, largest.size()) - 1);
    std::nth_element(largest.begin(), nth, largest.end(), std::greater<>());
    const std::int32_t cut = std::max(*nth, kNoScore + 1) - 1;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        Candidate found[2 * kBlockEntries];
        const std::size_t count = query.kernels().sift_i32(
            scores + b * kBlockEntries, kBlockEntries, cut,
            blocks[b] * static_cast<std::uint32_t>(kBlockEntries), found, nullptr);
        workspace.pool.insert(workspace.pool.end(), found, found + count);
    }
}

// The best of the pool by the codes of the major and of the first stage of the minor.
std::span<const Contender> Seeding::best_by_codes(const PreparedQuery& query, std::size_t wanted) {
    const std::span<Candidate> pool = query.workspace().pool;
    const TileNorms& norms = query.store().largest();
    Buffer<Contender>& buffer = query.workspace().contenders;
    buffer.grow_geometrically(pool.size());
    const std::span<Contender> contenders(buffer.data(), pool.size());
    const bool minor_read = reads_minor(query, norms);
    for (std::size_t first = 0, end = 0; first < pool.size(); first = end) {
        const std::size_t c = pool[first].position / kChunkEntries;
        while (end < pool.size() && pool[end].position / kChunkEntries == c) ++end;
        const Chunk& chunk = query.store().chunk(c);
        const std::span<Candidate> inside = pool.subspan(first, end - first);
        if (minor_read) fetch_minors(query.encoding(), chunk, inside);
        take_back_tails(query, chunk, inside);
        if (minor_read) {
            double skipped = -kInfinity;
            read_minors(query, chunk, norms, -kInfinity, inside, contenders.data() + first,
                        &skipped, {.stages = 1, .fetch_rows = false});
            continue;
        }
        for (std::size_t i = first; i < end; ++i) {
            contenders[i] = {pool[i].position, pool[i].score, 0,
                             query.codes().major_bound(pool[i].score) + query.proved_slack(norms)};
        }
    }
    const auto count = static_cast<std::ptrdiff_t>(std::min(wanted, contenders.size()));
    std::partial_sort(contenders.begin(), contenders.begin() + count, contenders.end(),
                      [](const Contender& a, const Contender& b) {
                          return a.bound > b.bound ||
                                 (a.bound == b.bound && a.position < b.position);
                      });
    return contenders.first(static_cast<std::size_t>(count));
}

bool Seeding::is_seed(std::uint32_t position) const {
    return std::binary_search(seeds_.begin(), seeds_.end(), position);
}

void Seeding::hide_seeds(std::int32_t* scores, std::uint32_t position, std::size_t entries) const {
    auto seed = std::lower_bound(seeds_.begin(), seeds_.end(), position);
    for (; seed != seeds_.end() && *seed - position < entries; ++seed) {
        scores[*seed - position] = kNoScore;
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
    const std::int32_t bar = wanted == 1 && mask.all()
                                 ? largest
                                 : nth_largest(kernels, query.workspace(), wanted, tile.entries);
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
    count = kernels.sift_i32(scores.data(), tile.entries, query.cut(tile.norms), tile.position, out,
                             &skipped);
    query.skip_scores(skipped, tile.norms);
    return count;
}

}  // namespace hiernorm
