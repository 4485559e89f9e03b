// The steps of the cascade for one query.
#include "engines/passage.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "prefetch.hpp"

namespace hiernorm {
namespace {

constexpr std::int32_t kDone = std::numeric_limits<std::int32_t>::min();  // settled already
constexpr std::size_t kFewSeeds = 64;
constexpr std::size_t kRowsAhead = 3;

}  // namespace

void Passage::begin(const Store& store, const Kernels& kernels, const Job& job, const float* row,
                    Answer& answer) {
    store_ = &store;
    kernels_ = &kernels;
    soft_ = job.soft;
    beta_ = job.beta;
    answer_ = &answer;
    threshold_ = answer.results.threshold();
    const Fit& fit = store.fit();
    exact_.prepare(kernels, fit.metric, row, fit.dim);
    view_.prepare(kernels, fit, exact_);
    coded_.prepare(kernels, fit, view_, store.largest(), job.soft);
    finalists_.clear();
    weighed_in_ = 0;
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
    threshold_ = answer_->results.threshold();
}

void Passage::prefetch_row(std::uint32_t position) const {
    const float* row = store_->row(position);
    for (std::size_t j = 0; j < store_->dim(); j += kLanes) prefetch(row + j);
}

std::size_t Passage::scan(const Tile& tile, Candidate* out) {
    if (answer_->results.missing() != 0) return seed_from_scratch(tile, out);
    const std::uint8_t* nearby = nullptr;
    if (store_->fit().stages[0].bytes == kStageBytes) {
        nearby = tile.chunk.stage_codes[0].data() + tile.first * kStageBytes;
    }
    // Exact search need not know the largest score it skips: the cut bounds it, and what the cut
    // proves is below the threshold. Soft mode must know.
    const std::int32_t cut = coded_.cut(threshold_, scan_slack(tile.norms));
    std::int32_t skipped = kDone;
    const std::size_t count = kernels_->scan_u8i8(
        tile.chunk.major_codes.data() + tile.first * store_->fit().slots(), tile.entries,
        coded_.scan(), cut, tile.position, nearby, out, soft_ ? &skipped : nullptr);
    if (count < tile.entries) skip_scores(soft_ ? skipped : cut, tile.norms);
    return count;
}

// While fewer than k entries are settled: the best majors of the tile are settled at once; the
// others become candidates if the threshold they give allows it.
std::size_t Passage::seed_from_scratch(const Tile& tile, Candidate* out) {
    scores_.resize((tile.entries + kBlockEntries - 1) / kBlockEntries * kBlockEntries);
    const std::int32_t largest =
        kernels_->score_u8i8(tile.chunk.major_codes.data() + tile.first * store_->fit().slots(),
                             tile.entries, coded_.scan(), scores_.data());
    const std::size_t wanted = std::min(answer_->results.missing(), tile.entries);
    const std::int32_t bar = wanted == 1 ? largest : nth_largest(wanted, tile.entries);
    std::size_t count =
        kernels_->select_i32(scores_.data(), tile.entries, bar - 1, tile.position, out, nullptr);
    for (std::size_t i = 0; i < count; ++i) prefetch_row(out[i].position);
    for (std::size_t i = 0; i < count && answer_->results.missing() != 0; ++i) {
        settle_row(out[i].position);
        scores_[out[i].position - tile.position] = kDone;
    }
    if (wanted == tile.entries) return 0;
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

void Passage::refine(const Chunk& chunk, const Candidate* candidates, std::size_t count) {
    const TileNorms& norms = chunk.tiles[candidates[0].position % kChunkEntries / kTileEntries];
    std::size_t left = sift(chunk, norms, candidates, count);
    if (left == 0) return;
    // The minor's codes take away the tail's share, the row's major the errors of the codes. A tail
    // that is smaller than those (alpha = 0, say) is not worth reading.
    const bool read_minor = store_->fit().entry_tails || store_->fit().rotated() ||
                            coded_.tail_slack(norms) >= coded_.coded_slack(norms);
    if (read_minor) left = tighten(chunk, norms, left);
    weigh(norms, left, read_minor);
}

// Step 3: the candidates that the present threshold leaves become contenders.
std::size_t Passage::sift(const Chunk& chunk, const TileNorms& norms, const Candidate* candidates,
                          std::size_t count) {
    const Fit& fit = store_->fit();
    const std::int32_t cut = coded_.cut(threshold_, scan_slack(norms));
    if (contenders_.size() < count) contenders_.resize(std::max(count, kTileEntries));
    Contender* out = contenders_.data();
    std::int32_t skipped = kDone;
    for (std::size_t i = 0; i < count; ++i) {
        if (candidates[i].score > cut) {
            *out++ = {candidates[i].position, candidates[i].score, 0, 0.0};
        } else {
            skipped = std::max(skipped, candidates[i].score);
        }
    }
    skip_scores(skipped, norms);
    const auto left = static_cast<std::size_t>(out - contenders_.data());
    answer_->report.sifted += left;
    if (!fit.entry_tails) return left;
    for (std::size_t i = 0; i < left; ++i) {
        const std::size_t entry = contenders_[i].position % kChunkEntries;
        contenders_[i].major -= coded_.tail_score(
            fit, chunk.major_codes.data() + entry / kBlockEntries * kBlockEntries * fit.slots() +
                     entry % kBlockEntries * kGroupSlots);
    }
    return left;
}

// Step 4: rules out contenders stage by stage.
std::size_t Passage::tighten(const Chunk& chunk, const TileNorms& norms, std::size_t count) {
    const std::vector<Fit::Stage>& stages = store_->fit().stages;
    const auto first =
        static_cast<std::uint32_t>(contenders_[0].position / kChunkEntries * kChunkEntries);
    for (std::size_t stage = 0; stage < stages.size() && count != 0; ++stage) {
        StageJob job = coded_.stage_job(stage, norms);
        job.rows = chunk.stage_codes[stage].data();
        job.row_bytes = stages[stage].bytes;
        job.first_position = first;
        count = kernels_->tighten_u8i8(job, threshold_, contenders_.data(), count,
                                       &answer_->report.skipped_bound);
        if (stage == 0) {
            for (std::size_t i = 0; i < count; ++i) prefetch(store_->row(contenders_[i].position));
        }
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
        const double codes = coded_.major_bound(contender.major);
        double bound = minor_read ? contender.bound : codes + proved_slack(norms);
        double width = 2.0 * (slack + coded_.coded_slack(norms));
        if (!fit.rotated()) {
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
    report.sifted += report.settled - weighed_in_;  // seeds were never sifted
    report.tightened = finalists_.size() + report.settled;
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
}

}  // namespace hiernorm
