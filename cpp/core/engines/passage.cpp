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
    coded_.prepare(fit, view_, store.largest(), job.soft);
    seeds_.clear();
    finalists_.clear();
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

std::size_t Passage::scan(const Tile& tile, bool alone, Candidate* out) {
    if (answer_->results.missing() != 0) return seed_from_scratch(tile, out);
    std::int32_t skipped = kDone;
    const std::uint8_t* nearby = nullptr;
    if (alone && store_->fit().stages[0].bytes == kStageBytes) {
        nearby = tile.chunk.stage_codes[0].data() + tile.first * kStageBytes;
    }
    const std::size_t count = kernels_->scan_u8i8(
        tile.chunk.major_codes.data() + tile.first * store_->fit().slots(), tile.entries,
        coded_.scan(), coded_.cut(threshold_, scan_slack(tile.norms)), tile.position, nearby, out,
        &skipped);
    skip_scores(skipped, tile.norms);
    if (count != 0) settle_better_majors(out, count);
    return count;
}

// While fewer than k entries are settled: the best majors of the tile are settled at once; the
// others become candidates if the threshold they give allows it.
std::size_t Passage::seed_from_scratch(const Tile& tile, Candidate* out) {
    scores_.resize((tile.entries + kBlockEntries - 1) / kBlockEntries * kBlockEntries);
    kernels_->score_u8i8(tile.chunk.major_codes.data() + tile.first * store_->fit().slots(),
                         tile.entries, coded_.scan(), scores_.data());
    const std::size_t wanted = std::min(answer_->results.missing(), tile.entries);
    const std::int32_t bar = nth_largest(wanted, tile.entries);
    std::int32_t skipped = kDone;
    std::size_t count = kernels_->select_i32(scores_.data(), tile.entries, bar - 1, tile.position,
                                             out, &skipped);
    for (std::size_t i = 0; i < count; ++i) prefetch_row(out[i].position);
    for (std::size_t i = 0; i < count && answer_->results.missing() != 0; ++i) {
        settle_seed(out[i].position, out[i].score);
        scores_[out[i].position - tile.position] = kDone;
    }
    if (wanted == tile.entries) return 0;
    skipped = kDone;
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
    if (n == 1) return *std::max_element(first, last);
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

void Passage::settle_seed(std::uint32_t position, std::int32_t score) {
    settle_row(position);
    if (seeds_.size() == answer_->results.wanted()) {
        std::pop_heap(seeds_.begin(), seeds_.end(), std::greater<>());
        seeds_.back() = score;
    } else {
        seeds_.push_back(score);
    }
    std::push_heap(seeds_.begin(), seeds_.end(), std::greater<>());
}

// Candidates with better majors than all k seeds are settled at once and raise the threshold.
void Passage::settle_better_majors(Candidate* candidates, std::size_t count) {
    if (!answer_->results.wants_best()) return;
    for (std::size_t i = 0; i < count; ++i) {
        if (candidates[i].score <= seeds_.front()) continue;
        settle_seed(candidates[i].position, candidates[i].score);
        candidates[i].score = kDone;
    }
}

void Passage::sift(const Chunk& chunk, const Candidate* candidates, std::size_t count) {
    const Fit& fit = store_->fit();
    contenders_.resize(count);
    std::size_t kept = 0;
    std::size_t tile = ~std::size_t{0};
    std::int32_t cut = 0;
    std::int32_t skipped = kDone;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t entry = candidates[i].position % kChunkEntries;
        if (entry / kTileEntries != tile) {
            if (skipped != kDone) skip_scores(skipped, chunk.tiles[tile]);
            tile = entry / kTileEntries;
            cut = coded_.cut(threshold_, scan_slack(chunk.tiles[tile]));
            skipped = kDone;
        }
        if (candidates[i].score > cut) {
            contenders_[kept++] = {entry, candidates[i].score, 0};
        } else {
            skipped = std::max(skipped, candidates[i].score);
        }
    }
    if (skipped != kDone) skip_scores(skipped, chunk.tiles[tile]);
    contenders_.resize(kept);
    answer_->report.sifted += kept;
    if (!fit.entry_tails) return;
    for (Contender& contender : contenders_) {
        contender.major -= coded_.tail_score(
            fit, chunk.major_codes.data() +
                     contender.entry / kBlockEntries * kBlockEntries * fit.slots() +
                     contender.entry % kBlockEntries * kGroupSlots);
    }
}

void Passage::tighten(const Chunk& chunk, std::size_t base) {
    const std::vector<Fit::Stage>& stages = store_->fit().stages;
    for (std::size_t stage = 0; stage < stages.size() && !contenders_.empty(); ++stage) {
        kernels_->add_dots_u8i8(chunk.stage_codes[stage].data(), stages[stage].bytes,
                                coded_.stage_codes(stage), contenders_.data(), contenders_.size());
        if (stage + 1 < stages.size()) {
            drop_after_stage(chunk, stage);
        } else {
            promote(chunk, stage, base);
        }
    }
}

// Calls use(contender, bound without what lies behind `stage`) for each contender.
template <class Use>
void Passage::for_each_contender(const Chunk& chunk, std::size_t stage, Use use) {
    const std::int32_t correction = coded_.correction_through(stage);
    std::size_t tile = ~std::size_t{0};
    double slack = 0.0;
    for (const Contender& contender : contenders_) {
        if (contender.entry / kTileEntries != tile) {
            tile = contender.entry / kTileEntries;
            slack = coded_.coded_slack(chunk.tiles[tile]) + coded_.minor_slack(chunk.tiles[tile]);
        }
        use(contender, coded_.major_bound(contender.major) +
                           coded_.minor_part(contender.minor - correction) + slack);
    }
}

// Rules out contenders by the codes up to `stage` and the norm of what follows.
void Passage::drop_after_stage(const Chunk& chunk, std::size_t stage) {
    const Fit::Stage& layout = store_->fit().stages[stage];
    const std::uint8_t* tails = chunk.stage_codes[stage].data() + layout.dims;
    const double tail = coded_.stage_tail(stage);
    double skipped = -kInfinity;
    std::size_t kept = 0;
    for_each_contender(chunk, stage, [&](const Contender& contender, double bound) {
        bound += tail * tails[contender.entry * layout.bytes];
        if (bound < threshold_) {
            skipped = std::max(skipped, bound);
        } else {
            contenders_[kept++] = contender;
        }
    });
    skip(skipped);
    contenders_.resize(kept);
}

// All codes are read: who is left is a finalist.
void Passage::promote(const Chunk& chunk, std::size_t stage, std::size_t base) {
    for_each_contender(chunk, stage, [&](const Contender& contender, double bound) {
        if (bound < threshold_) {
            skip(bound);
        } else {
            finalists_.push_back({static_cast<std::uint32_t>(base + contender.entry), bound});
        }
    });
}

void Passage::settle() {
    Report& report = answer_->report;
    report.sifted += report.settled;
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
