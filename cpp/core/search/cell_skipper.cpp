// Goes down the cones of one query.
#include "search/cell_skipper.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hiernorm {
namespace {

// Cones that are followed down to get a threshold from, and blocks that are read in the end.
constexpr std::size_t kFollowed = 6;
constexpr std::size_t kNearest = 16;

// Going from one listed block to the next costs as much as scanning so many slots of a block in a
// row; measured. The queries of a group find the codes of a row in the nearest cache.
constexpr double kSlotsOfStep = 12.8;
constexpr double kSlotsOfStepInGroup = 36.0;

// Where three of four ranges had to be read whole, the rest is not even tried.
constexpr std::size_t kTrials = 4;

constexpr std::size_t cones_of(std::size_t entries, std::size_t level) {
    return divide_up(entries, entries_per_cone(level));
}

}  // namespace

void CellSkipper::begin(const Store& store, const Kernels& kernels, const QueryView& view,
                        bool in_group, Workspace& workspace) {
    store_ = &store;
    kernels_ = &kernels;
    workspace_ = &workspace;
    query_.prepare(kernels, store.encoding(), store.cells(), view, store.largest());
    const auto slots = static_cast<double>(store.encoding().slots());
    most_read_ = slots / (slots + (in_group ? kSlotsOfStepInGroup : kSlotsOfStep));
    tried_ = 0;
    whole_ = 0;
}

std::span<const std::uint32_t> CellSkipper::nearest(std::size_t entries) {
    const Cells& cells = store_->cells();
    const std::size_t blocks_wanted =
        std::max(kNearest, 2 * entries / kBlockEntries) * seeding_effort(store_->size()) +
        std::min(entries, kNearest);
    const std::size_t slots = cells.layout().slots();
    std::vector<std::uint32_t>& nearest = workspace_->nearest;
    std::vector<Candidate>& ranked = workspace_->ranked_cones;
    nearest.clear();
    for (std::size_t c = 0; c < store_->chunks(); ++c) {
        if (cells.chunk(c) != nullptr) nearest.push_back(static_cast<std::uint32_t>(c));
    }
    // Numbers of blocks of 16 cones become numbers of cones, which are blocks one level down.
    for (std::size_t level = kConeLevels; level-- > 0;) {
        const std::size_t blocks = kChunkEntries / entries_per_cone(level) / kBlockEntries;
        const std::size_t cones = cones_of(store_->size(), level);
        const std::size_t wanted =
            level == 0 ? blocks_wanted : blocks_wanted * kFollowed / kNearest;
        ranked.clear();
        for (const std::uint32_t block : nearest) {
            alignas(64) std::int32_t scores[kBlockEntries];
            kernels_->score_u8i8((*cells.chunk(block / blocks))[level].data() +
                                     block % blocks * kBlockEntries * slots,
                                 kBlockEntries, query_.directions(), scores);
            rank(scores, block * kBlockEntries, cones, wanted);
        }
        nearest.clear();
        for (const Candidate& candidate : ranked) nearest.push_back(candidate.position);
        std::sort(nearest.begin(), nearest.end());
    }
    return nearest;
}

// Keeps the `wanted` best of the cones seen so far; the first of equals.
void CellSkipper::rank(const std::int32_t* scores, std::size_t first, std::size_t cones,
                       std::size_t wanted) {
    constexpr auto kLowest = std::numeric_limits<std::int32_t>::min();
    std::vector<Candidate>& ranked = workspace_->ranked_cones;
    Candidate better[2 * kBlockEntries];
    const std::int32_t bar = ranked.size() < wanted ? kLowest : ranked.back().score;
    const std::size_t count =
        kernels_->sift_i32(scores, std::min(kBlockEntries, cones - first), bar,
                           static_cast<std::uint32_t>(first), better, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
        if (ranked.size() == wanted) {
            if (better[i].score <= ranked.back().score) continue;
            ranked.pop_back();
        }
        auto place = ranked.end();
        while (place != ranked.begin() && (place - 1)->score < better[i].score) --place;
        ranked.insert(place, better[i]);
    }
}

bool CellSkipper::skip(std::size_t chunk, std::size_t first, double threshold, SearchStats& stats) {
    const ChunkCones* cones = store_->cells().chunk(chunk);
    if (tried_ >= kTrials && 4 * whole_ >= 3 * tried_) return false;
    if (cones == nullptr || !query_.aim(threshold)) return false;
    ++tried_;
    const std::size_t end = std::min(first + kRangeEntries, store_->chunk_entries(chunk));
    require_cones(*cones, first, end);
    descend(*cones, first, end);
    const std::size_t blocks = cones_of(end, 0) - first / kBlockEntries;
    if (static_cast<double>(left_count_) > most_read_ * static_cast<double>(blocks)) {
        ++whole_;
        return false;
    }
    next_ = 0;
    stats.cells += left_count_;
    if (left_count_ < blocks) {
        // No member of the others reaches the threshold.
        const double below = std::nextafter(threshold, -std::numeric_limits<double>::infinity());
        stats.skipped_bound = std::max(stats.skipped_bound, below);
    }
    return true;
}

// Checks the cones that descend() reads.
void CellSkipper::require_cones(const ChunkCones& cones, std::size_t first, std::size_t end) const {
    const std::vector<const BlockChecks*>& checks = store_->checks().cones;
    if (checks.empty()) return;
    const ConeLayout& layout = store_->cells().layout();
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        if (checks[level] == nullptr) continue;
        const std::size_t in_block = entries_per_cone(level + 1);
        const std::size_t begin = cone_bytes(layout, level, first / in_block * in_block);
        checks[level]->require(cones[level].data() + begin, cone_bytes(layout, level, end) - begin);
    }
}

// Leaves the blocks that can hold an entry which reaches the threshold in left_.
void CellSkipper::descend(const ChunkCones& cones, std::size_t first, std::size_t end) {
    constexpr std::size_t kMost = kRangeEntries / kBlockEntries;
    Buffer<std::uint16_t>& below = workspace_->level_below;
    left_.grow(kMost + kBlockEntries);
    below.grow(kMost + kBlockEntries);
    // The topmost cones of a chunk are one block, of which the range has a few.
    left_[0] = 0;
    left_count_ = 1;
    for (std::size_t level = kConeLevels; level-- > 0;) {
        left_count_ = kernels_->skip_cells_u8i8(cones[level].data(), left_.data(), left_count_,
                                                query_.scan(), query_.cut(), below.data());
        const std::size_t last = cones_of(end, level);
        while (left_count_ != 0 && below[left_count_ - 1] >= last) --left_count_;
        std::swap(left_, below);
        if (level + 1 < kConeLevels) continue;
        const std::uint16_t* const begin = left_.data();
        const auto before = static_cast<std::size_t>(
            std::lower_bound(begin, begin + left_count_, first / entries_per_cone(level)) - begin);
        left_count_ -= before;
        if (before != 0) std::copy_n(begin + before, left_count_, left_.data());
    }
}

std::span<const std::uint16_t> CellSkipper::blocks_before(std::size_t end) {
    const std::uint16_t* const first = left_.data() + next_;
    const std::uint16_t* const last =
        std::lower_bound(first, static_cast<const std::uint16_t*>(left_.data()) + left_count_,
                         (end + kBlockEntries - 1) / kBlockEntries);
    next_ = static_cast<std::size_t>(last - left_.data());
    return {first, last};
}

}  // namespace hiernorm
