// The steps of the cascade for one query, but for the second: seeding.cpp has it.
#include "search/passage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/prefetch.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kRowsAhead = 3;

}  // namespace

void Passage::begin(const Store& store, const Kernels& kernels, const Job& job, const float* row,
                    Answer& answer) {
    store_ = &store;
    kernels_ = &kernels;
    soft_ = job.soft;
    beta_ = job.beta;
    mask_ = job.mask;
    answer_ = &answer;
    const Fit& fit = store.fit();
    exact_.prepare(kernels, fit.metric, row, store.dim());
    view_.prepare(kernels, fit, exact_);
    threshold_ = answer.results.threshold() + view_.offset;
    coded_.prepare(kernels, fit, view_, store.largest(), job.soft);
    finalists_.clear();
    seeds_.clear();
    seeded_ = 0;
    found_again_ = 0;
    weighed_in_ = 0;
    listed_ = false;
    uses_cells_ = job.use_cells && store.cells().grouped_entries() != 0;
    if (uses_cells_) {
        cells_.begin(store, kernels, view_);
        if (answer.results.missing() != 0) seed_from_cells();
    }
}

void Passage::enter_range(std::size_t chunk, std::size_t first) {
    listed_ = uses_cells_ && answer_->results.missing() == 0 &&
              cells_.choose(chunk, first, threshold_, answer_->report);
}

double Passage::proved_slack(const TileNorms& norms) const {
    return coded_.coded_slack(norms) + coded_.tail_slack(norms);
}

double Passage::scan_slack(const TileNorms& norms) const {
    const double tail = coded_.tail_slack(norms);
    return coded_.coded_slack(norms) + (soft_ ? std::min(tail, beta_) : tail);
}

void Passage::skip(double bound) {
    answer_->report.skipped_bound = std::max(answer_->report.skipped_bound, bound);
}

void Passage::skip_scores(std::int32_t largest, const TileNorms& norms) {
    if (largest != kDone) skip(coded_.major_bound(largest) + proved_slack(norms));
}

void Passage::settle_row(std::uint32_t position) {
    answer_->results.offer({exact_.score(store_->row(position)), store_->id(position)});
    ++answer_->report.settled;
    threshold_ = answer_->results.threshold() + view_.offset;
}

void Passage::prefetch_row(std::uint32_t position) const {
    const float* row = store_->row(position);
    for (std::size_t j = 0; j < store_->dim(); j += kLanes) prefetch(row + j);
}

std::size_t Passage::scan(const Tile& tile, Candidate* out) {
    if (listed_) return mask_.keep(out, scan_listed(tile, out));
    if (!mask_.all()) return scan_allowed(tile, out);
    answer_->report.scanned += tile.entries;
    if (answer_->results.missing() != 0) return seed_from_scratch(tile, out);
    return scan_all(tile, out);
}

// Reads the blocks only that hold an entry which may be returned.
std::size_t Passage::scan_allowed(const Tile& tile, Candidate* out) {
    allowed_blocks_.resize(kTileEntries / kBlockEntries);
    const std::size_t blocks = mask_.blocks(tile.position, tile.entries, tile.first / kBlockEntries,
                                            allowed_blocks_.data());
    if (blocks == 0) return 0;
    const bool sparse = blocks * kBlockEntries < tile.entries / 2;
    if (sparse && !soft_ && answer_->results.missing() == 0) {
        return mask_.keep(out, scan_blocks(tile, {allowed_blocks_.data(), blocks}, blocks, out));
    }
    answer_->report.scanned += tile.entries;
    if (answer_->results.missing() != 0) return seed_from_scratch(tile, out);
    return mask_.keep(out, scan_all(tile, out));
}

std::size_t Passage::scan_listed(const Tile& tile, Candidate* out) {
    std::size_t listed = cells_.blocks_left();
    std::span<const std::uint16_t> list = cells_.blocks_before(tile.first + tile.entries);
    if (!mask_.all()) {
        allowed_blocks_.resize(kTileEntries / kBlockEntries);
        const std::size_t kept =
            mask_.keep_blocks(tile.position - tile.first, list, allowed_blocks_.data());
        list = {allowed_blocks_.data(), kept};
        listed = kept;
    }
    return list.empty() ? 0 : scan_blocks(tile, list, listed, out);
}

// Scans the blocks of `list`; behind them it goes on to `listed` blocks with those of later tiles.
std::size_t Passage::scan_blocks(const Tile& tile, std::span<const std::uint16_t> list,
                                 std::size_t listed, Candidate* out) {
    const std::size_t end = tile.first + tile.entries;
    // Behind the last entry of the store a block is not whole.
    const bool partial = (list.back() + std::size_t{1}) * kBlockEntries > end;
    if (partial) list = list.first(list.size() - 1);
    const std::size_t rest = partial ? end % kBlockEntries : 0;
    const std::uint8_t* codes = tile.chunk.major_codes.data();
    const auto position = tile.position - static_cast<std::uint32_t>(tile.first);
    const std::int32_t cut = coded_.cut(threshold_, scan_slack(tile.norms));
    std::size_t count =
        kernels_->scan_list_u8i8(codes, list.data(), list.size(), listed, coded_.scan(), cut,
                                 position, stage_rows(tile.chunk), out);
    if (partial) {
        const std::size_t whole = end - rest;
        count += kernels_->scan_u8i8(codes + whole * store_->fit().slots(), rest, coded_.scan(),
                                     cut, position + static_cast<std::uint32_t>(whole), nullptr,
                                     out + count, nullptr);
    }
    const std::size_t scanned = list.size() * kBlockEntries + rest;
    answer_->report.scanned += scanned;
    if (count < scanned) skip_scores(cut, tile.norms);
    return count;
}

// The rows of the first stage, where they are of 64 bytes.
const std::uint8_t* Passage::stage_rows(const Chunk& chunk) const {
    if (store_->fit().stages[0].bytes != kStageBytes) return nullptr;
    return chunk.stage_codes[0].data();
}

std::size_t Passage::scan_all(const Tile& tile, Candidate* out) {
    // Exact search need not know the largest score it skips: the cut bounds it, and what the cut
    // proves is below the threshold. Soft mode must know.
    const std::int32_t cut = coded_.cut(threshold_, scan_slack(tile.norms));
    std::int32_t skipped = kDone;
    const std::uint8_t* rows = stage_rows(tile.chunk);
    if (rows != nullptr) rows += tile.first * kStageBytes;
    const std::size_t count = kernels_->scan_u8i8(
        tile.chunk.major_codes.data() + tile.first * store_->fit().slots(), tile.entries,
        coded_.scan(), cut, tile.position, rows, out, soft_ ? &skipped : nullptr);
    if (count < tile.entries) skip_scores(soft_ ? skipped : cut, tile.norms);
    return count;
}

void Passage::refine(const Chunk& chunk, Candidate* candidates, std::size_t count) {
    const TileNorms& norms = chunk.tiles[candidates[0].position % kChunkEntries / kTileEntries];
    std::size_t left = sift(chunk, norms, candidates, count);
    if (left == 0) return;
    if (contenders_.size() < left) contenders_.resize(std::max(left, kTileEntries));
    // The minor's codes take away the tail's share, the row's major the errors of the codes. A tail
    // that is smaller than those (alpha = 0, say) is not worth reading.
    const bool read_minor = store_->fit().entry_tails || store_->fit().rotated() ||
                            coded_.tail_slack(norms) >= coded_.coded_slack(norms);
    if (read_minor) {
        left = tighten(chunk, norms, candidates, left);
    } else {
        for (std::size_t i = 0; i < left; ++i) {
            contenders_[i] = {candidates[i].position, candidates[i].score, 0, 0.0};
        }
    }
    weigh(norms, left, read_minor);
}

// Step 3: keeps the candidates that the present threshold leaves, and takes back what their tails
// added to their scores.
std::size_t Passage::sift(const Chunk& chunk, const TileNorms& norms, Candidate* candidates,
                          std::size_t count) {
    const Fit& fit = store_->fit();
    const std::int32_t cut = coded_.cut(threshold_, scan_slack(norms));
    std::size_t left = 0;
    std::int32_t skipped = kDone;
    for (std::size_t i = 0; i < count; ++i) {
        const Candidate candidate = candidates[i];
        candidates[left] = candidate;
        left += candidate.score > cut ? 1 : 0;
        skipped = std::max(skipped, candidate.score > cut ? kDone : candidate.score);
    }
    skip_scores(skipped, norms);
    answer_->report.sifted += left;
    if (!fit.entry_tails) return left;
    for (std::size_t i = 0; i < left; ++i) {
        const std::size_t entry = candidates[i].position % kChunkEntries;
        candidates[i].score -= coded_.tail_score(
            fit, chunk.major_codes.data() + entry / kBlockEntries * kBlockEntries * fit.slots() +
                     entry % kBlockEntries * kGroupSlots);
    }
    return left;
}

// Step 4: rules out candidates stage by stage.
std::size_t Passage::tighten(const Chunk& chunk, const TileNorms& norms,
                             const Candidate* candidates, std::size_t count) {
    const std::vector<Fit::Stage>& stages = store_->fit().stages;
    double* const skipped = &answer_->report.skipped_bound;
    const auto first =
        static_cast<std::uint32_t>(candidates[0].position / kChunkEntries * kChunkEntries);
    for (std::size_t stage = 0; stage < stages.size() && count != 0; ++stage) {
        StageJob job = coded_.stage_job(stage, norms);
        job.rows = chunk.stage_codes[stage].data();
        job.row_bytes = stages[stage].bytes;
        job.first_position = first;
        if (stage != 0) {
            count = kernels_->tighten_u8i8(job, threshold_, contenders_.data(), count, skipped);
            continue;
        }
        count =
            kernels_->enter_u8i8(job, threshold_, candidates, count, contenders_.data(), skipped);
        for (std::size_t i = 0; i < count; ++i) prefetch(store_->row(contenders_[i].position));
    }
    return count;
}

// Step 4, end: where the major is a prefix of the row, its exact product replaces that of the
// codes. What is left of the error bounds the score from below as well, so that entries which are
// certain to raise the threshold are settled at once; the others become finalists.
void Passage::weigh(const TileNorms& norms, std::size_t count, bool minor_read) {
    const Fit& fit = store_->fit();
    const double slack = minor_read ? coded_.minor_slack(norms) : coded_.tail_slack(norms);
    for (std::size_t i = 0; i < count; ++i) {
        const Contender& contender = contenders_[i];
        if (is_seed(contender.position)) {
            ++found_again_;
            continue;
        }
        const double codes = coded_.major_bound(contender.major);
        double bound = minor_read ? contender.bound : codes + proved_slack(norms);
        double width = 2.0 * (slack + coded_.coded_slack(norms));
        if (!fit.rotated() && fit.levels() == 0) {
            const double coded_part = codes + coded_.coded_slack(norms);
            const double exact = exact_.major_product(store_->row(contender.position), fit.major);
            const double margin = coded_.margin(norms);
            bound = bound - coded_part + exact + margin;
            width = 2.0 * (slack + margin);
        }
        if (bound < threshold_) {
            skip(bound);
        } else if (bound - width > threshold_) {
            settle_row(contender.position);
            ++weighed_in_;
        } else {
            finalists_.push_back({contender.position, bound});
        }
    }
}

void Passage::settle() {
    Report& report = answer_->report;
    report.sifted = std::min<std::uint64_t>(report.sifted + seeded_ - found_again_, store_->size());
    report.tightened = finalists_.size() + weighed_in_ + seeded_;
    std::sort(finalists_.begin(), finalists_.end(), [](const Finalist& a, const Finalist& b) {
        return a.bound > b.bound || (a.bound == b.bound && a.position < b.position);
    });
    for (std::size_t i = 0; i < std::min(kRowsAhead, finalists_.size()); ++i) {
        prefetch_row(finalists_[i].position);
    }
    for (std::size_t i = 0; i < finalists_.size(); ++i) {
        if (finalists_[i].bound < threshold_) {
            skip(finalists_[i].bound);
            break;
        }
        if (i + kRowsAhead < finalists_.size()) prefetch_row(finalists_[i + kRowsAhead].position);
        settle_row(finalists_[i].position);
    }
    report.skipped_bound -= view_.offset;
    // What exact search skips was proved to score below the threshold, however the difference is
    // rounded.
    if (!soft_) {
        report.skipped_bound = std::min(
            report.skipped_bound,
            std::nextafter(answer_->results.threshold(), -std::numeric_limits<double>::infinity()));
    }
}

}  // namespace hiernorm
