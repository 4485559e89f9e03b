// Bounds, chooses and lists cells for one query.
#include "engines/cell_choice.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace hiernorm {
namespace {

constexpr std::size_t kBestCells = 4;  // at least, to get a threshold from
constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();

}  // namespace

void CellChoice::begin(const Store& store, const Kernels& kernels, const QueryView& view) {
    cells_ = &store.cells();
    kernels_ = &kernels;
    const std::size_t padded =
        (cells_->count() + kBlockEntries - 1) / kBlockEntries * kBlockEntries;
    scores_.resize(padded);
    chosen_.resize(padded + kBlockEntries);
    query_.prepare(*cells_, view, store.fit().major, store.largest());
    block_maxima_.resize(padded / kBlockEntries);
    query_.score(kernels, *cells_, scores_.data(), block_maxima_.data());
    list_.resize(kTileEntries / kBlockEntries);
    next_ = 0;
}

// The n-th largest of the blocks' maxima is exceeded or equalled by n cells at least.
std::span<const Candidate> CellChoice::best(std::size_t entries) {
    for (std::size_t wanted = kBestCells;; wanted *= 4) {
        wanted = std::min(wanted, block_maxima_.size());
        const auto nth = block_maxima_.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
        std::nth_element(block_maxima_.begin(), nth, block_maxima_.end(), std::greater<>());
        const bool all = wanted == block_maxima_.size();
        const std::size_t count = kernels_->select_i32(
            scores_.data(), cells_->count(), all ? kNone : *nth - 1, 0, chosen_.data(), nullptr);
        if (all || entries_of(count) >= entries) return {chosen_.data(), count};
    }
}

void CellChoice::skip(std::int32_t score, Report& report) const {
    if (score != kNone) report.skipped_bound = std::max(report.skipped_bound, query_.bound(score));
}

std::size_t CellChoice::choose(double threshold) {
    skipped_ = kNone;
    chosen_count_ = kernels_->select_i32(scores_.data(), cells_->count(), query_.cut(threshold), 0,
                                         chosen_.data(), &skipped_);
    return entries_of(chosen_count_);
}

std::size_t CellChoice::entries_of(std::size_t chosen) const {
    std::size_t entries = 0;
    for (std::size_t i = 0; i < chosen; ++i) {
        entries += cells_->end(chosen_[i].position) - cells_->first(chosen_[i].position);
    }
    return entries;
}

std::span<const std::uint16_t> CellChoice::blocks(std::size_t position, std::size_t entries,
                                                  double threshold, Report& report) {
    const std::size_t end = position + entries;
    if (next_ == chosen_count_ || cells_->first(chosen_[next_].position) >= end) return {};
    const std::int32_t cut = query_.cut(threshold);
    std::int32_t skipped = kNone;
    std::uint16_t* out = list_.data();
    std::size_t listed = 0;  // blocks before this one
    for (; next_ < chosen_count_; ++next_) {
        const Candidate cell = chosen_[next_];
        const std::size_t cell_first = std::max(cells_->first(cell.position), position);
        const std::size_t cell_end = cells_->end(cell.position);
        if (cell_first >= end) break;
        if (cell.score > cut) {
            const std::size_t first = (cell_first - position) / kBlockEntries;
            const std::size_t last =
                (std::min(cell_end, end) - position + kBlockEntries - 1) / kBlockEntries;
            for (std::size_t block = std::max(first, listed); block < last; ++block) {
                *out++ = static_cast<std::uint16_t>(block);
            }
            listed = last;
            ++report.cells;
        } else {
            skipped = std::max(skipped, cell.score);
        }
        if (cell_end > end) break;  // the rest of it is in the next tile
    }
    skip(skipped, report);
    return {list_.data(), out};
}

}  // namespace hiernorm
