// Goes down the cones of one query.
#include "engines/cell_choice.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hiernorm {
namespace {

constexpr std::size_t kNearest = 16;  // cones that are followed down, to get a threshold from

// Reading more than this share of a chunk block by block is slower than reading it in a row.
constexpr double kMostChosen = 0.6;

// The topmost level has one block of cones a chunk.
static_assert(kChunkEntries == entries_per_cone(kConeLevels));

constexpr std::size_t cones_of(std::size_t entries, std::size_t level) {
    return (entries + entries_per_cone(level) - 1) / entries_per_cone(level);
}

}  // namespace

void CellChoice::begin(const Store& store, const Kernels& kernels, const QueryView& view) {
    store_ = &store;
    kernels_ = &kernels;
    query_.prepare(kernels, store.fit(), store.cells(), view, store.largest());
    dense_ = false;
}

std::span<const std::uint32_t> CellChoice::nearest(std::size_t entries) {
    const Cells& cells = store_->cells();
    const std::size_t wanted = std::max(kNearest, 2 * entries / kBlockEntries);
    const std::size_t slots = cells.layout().slots();
    nearest_.clear();
    for (std::size_t c = 0; c < store_->chunks(); ++c) {
        if (cells.chunk(c) != nullptr) nearest_.push_back(static_cast<std::uint32_t>(c));
    }
    // Numbers of blocks of 16 cones become numbers of cones, which are blocks one level down.
    for (std::size_t level = kConeLevels; level-- > 0;) {
        const std::size_t cones = kChunkEntries / entries_per_cone(level);
        const std::size_t blocks = cones / kBlockEntries;
        scores_.resize(nearest_.size() * kBlockEntries);
        ranked_.clear();
        for (const std::uint32_t block : nearest_) {
            const std::uint8_t* codes = (*cells.chunk(block / blocks))[level].data() +
                                        block % blocks * kBlockEntries * slots;
            kernels_->score_u8i8(codes, kBlockEntries, query_.directions(), scores_.data());
            for (std::size_t i = 0; i < kBlockEntries; ++i) {
                const std::size_t cone = block * kBlockEntries + i;
                if (cone * entries_per_cone(level) >= store_->size()) break;
                ranked_.push_back({static_cast<std::uint32_t>(cone), scores_[i]});
            }
        }
        keep_nearest(wanted);
    }
    return nearest_;
}

// The best candidates, in order of position.
void CellChoice::keep_nearest(std::size_t count) {
    if (ranked_.size() > count) {
        const auto nth = ranked_.begin() + static_cast<std::ptrdiff_t>(count);
        std::nth_element(
            ranked_.begin(), nth, ranked_.end(), [](const Candidate& a, const Candidate& b) {
                return a.score > b.score || (a.score == b.score && a.position < b.position);
            });
        ranked_.resize(count);
    }
    nearest_.clear();
    for (const Candidate& candidate : ranked_) nearest_.push_back(candidate.position);
    std::sort(nearest_.begin(), nearest_.end());
}

bool CellChoice::choose(std::size_t chunk, double threshold, Report& report) {
    const ChunkCones* cones = store_->cells().chunk(chunk);
    if (cones == nullptr || dense_ || !query_.aim(threshold)) return false;
    const std::size_t entries = store_->chunk_entries(chunk);
    const std::size_t blocks = cones_of(entries, 0);
    dense_ = !descend(*cones, entries);
    if (dense_) return false;
    next_ = 0;
    report.cells += chosen_count_;
    if (chosen_count_ < blocks) {
        // No member of the others reaches the threshold.
        const double below = std::nextafter(threshold, -std::numeric_limits<double>::infinity());
        report.skipped_bound = std::max(report.skipped_bound, below);
    }
    return true;
}

// Leaves the blocks in chosen_; false if they are too many.
bool CellChoice::descend(const ChunkCones& cones, std::size_t entries) {
    constexpr std::size_t kMost = kChunkEntries / kBlockEntries;
    chosen_.resize(kMost + kBlockEntries);
    next_level_.resize(kMost + kBlockEntries);
    chosen_[0] = 0;  // blocks of 16 cones to look at
    chosen_count_ = 1;
    for (std::size_t level = kConeLevels; level-- > 0;) {
        chosen_count_ = kernels_->choose_u8i8(cones[level].data(), chosen_.data(), chosen_count_,
                                              query_.scan(), query_.cut(), next_level_.data());
        const std::size_t end = cones_of(entries, level);
        while (chosen_count_ != 0 && next_level_[chosen_count_ - 1] >= end) --chosen_count_;
        chosen_.swap(next_level_);
    }
    return static_cast<double>(chosen_count_ * kBlockEntries) <=
           kMostChosen * static_cast<double>(entries);
}

std::span<const std::uint16_t> CellChoice::blocks_before(std::size_t end) {
    const std::uint16_t* const first = chosen_.data() + next_;
    const std::uint16_t* const last =
        std::lower_bound(first, static_cast<const std::uint16_t*>(chosen_.data()) + chosen_count_,
                         (end + kBlockEntries - 1) / kBlockEntries);
    next_ = static_cast<std::size_t>(last - chosen_.data());
    return {first, last};
}

}  // namespace hiernorm
