// The cascade: five steps from all entries to the answer, each reading more of fewer entries.
//
//   step        reads per entry                     rules out by
//   1 scan      the major's codes                   integer score <= cut
//   2 seed      the rows of the best majors         (raises the threshold that makes the cut)
//   3 sift      nothing: the scores of step 1       the final threshold of steps 1 and 2
//   4 tighten   the minor's codes, 64 bytes a time  the far tighter bound of major and minor codes
//   5 settle    the float32 row                     the canonical score
//
// A group of queries goes through the steps together, tile by tile, so that the codes of a tile are
// loaded once for all of them. Scanning and seeding interleave: the cut rises as better entries
// turn up, and step 3 applies the last one to all candidates. Whatever is ruled out leaves its
// certified bound in Report::skipped_bound.
#include <algorithm>
#include <functional>

#include "engines/engine.hpp"
#include "query.hpp"

namespace hiernorm {
namespace {

constexpr std::int32_t kDone = std::numeric_limits<std::int32_t>::min();  // settled already
constexpr std::size_t kPrefetchAhead = 12;
constexpr std::size_t kCompactAt = 8192;

struct Tile {
    const Chunk& chunk;
    const TileNorms& norms;
    std::size_t first;    // within the chunk
    std::size_t entries;
    std::uint32_t position;  // of `first`, within the store
};

struct Finalist {
    std::uint32_t position;
    double bound;
};

// The passage of one query through the cascade.
class Passage {
   public:
    void begin(const Store& store, const Kernels& kernels, const Job& job, bool alone,
               const float* row, Answer& answer) {
        store_ = &store;
        kernels_ = &kernels;
        job_ = &job;
        alone_ = alone;
        answer_ = &answer;
        const Fit& fit = store.fit();
        exact_.prepare(kernels, fit.metric, row, fit.dim);
        view_.prepare(kernels, fit, exact_);
        coded_.prepare(fit, view_, store.largest(), job.soft);
        candidates_count_ = refreshed_ = promising_ = 0;
        compact_at_ = kCompactAt;
        seeds_.clear();
        finalists_.clear();
    }

    // Steps 1 and 2.
    void scan(const Tile& tile) {
        make_room(tile.entries);
        if (answer_->results.missing() != 0) {
            seed_from_scratch(tile);
            return;
        }
        const double slack = scan_slack(tile.norms);
        const std::int32_t cut = coded_.cut(threshold(), slack);
        std::int32_t skipped = kDone;
        const std::uint8_t* nearby = nullptr;
        if (alone_ && store_->fit().stage_bytes(0) == kStageBytes) {
            nearby = tile.chunk.stage_codes[0].data() + tile.first * kStageBytes;
        }
        const std::size_t added = kernels_->scan_u8i8(
            major_codes(tile), tile.entries, coded_.scan(), cut, tile.position, nearby,
            candidates_.data() + candidates_count_, &skipped);
        if (skipped != kDone) skip(coded_.major_bound(skipped) + proved_slack(tile.norms));
        candidates_count_ += added;
        if (added != 0) refresh(candidates_count_ - added);
    }

    // Step 3.
    void sift() {
        compact();
        answer_->report.sifted = candidates_count_ + answer_->report.settled;
        next_ = 0;
    }

    // Step 4, for the candidates in a tile. Tiles come in order.
    void tighten(const Tile& tile) {
        if (next_ == candidates_count_) return;
        const std::uint32_t end = tile.position + static_cast<std::uint32_t>(tile.entries);
        const double slack = coded_.coded_slack(tile.norms) + coded_.minor_slack(tile.norms);
        for (; next_ < candidates_count_ && candidates_[next_].position < end; ++next_) {
            const std::size_t ahead = next_ + kPrefetchAhead;
            if (ahead < candidates_count_) prefetch(candidates_[ahead].position);
            tighten(tile, candidates_[next_], slack);
        }
    }

    // Step 5: best bound first, until no bound reaches the threshold.
    void settle() {
        std::sort(finalists_.begin(), finalists_.end(), [](const Finalist& a, const Finalist& b) {
            return a.bound > b.bound || (a.bound == b.bound && a.position < b.position);
        });
        answer_->report.tightened = finalists_.size() + answer_->report.settled;
        for (const Finalist& finalist : finalists_) {
            if (finalist.bound < threshold()) {
                skip(finalist.bound);
                break;
            }
            settle(finalist.position);
        }
    }

   private:
    double threshold() const { return answer_->results.threshold(); }
    void skip(double bound) {
        answer_->report.skipped_bound = std::max(answer_->report.skipped_bound, bound);
    }
    void settle(std::uint32_t position) {
        answer_->results.offer({exact_.score(store_->row(position)), store_->id(position)});
        ++answer_->report.settled;
    }
    const std::uint8_t* major_codes(const Tile& tile) const {
        return tile.chunk.major_codes.data() + tile.first * store_->fit().slots();
    }

    // The slack that proves, and the one that skips: smaller in soft mode.
    double proved_slack(const TileNorms& norms) const {
        return coded_.coded_slack(norms) + coded_.tail_slack(norms);
    }
    double scan_slack(const TileNorms& norms) const {
        const double tail = coded_.tail_slack(norms);
        return coded_.coded_slack(norms) + (job_->soft ? std::min(tail, job_->beta) : tail);
    }

    void make_room(std::size_t entries) {
        if (candidates_count_ > compact_at_) {
            compact();
            compact_at_ = std::max(kCompactAt, 2 * candidates_count_);
        }
        if (candidates_.size() < candidates_count_ + entries) {
            candidates_.resize(std::max(candidates_count_ + entries, 2 * candidates_.size()));
        }
    }

    // Step 2 while fewer than k entries are settled: the best majors of the tile are settled at
    // once; the others become candidates if the threshold they give allows it.
    void seed_from_scratch(const Tile& tile) {
        scores_.resize((tile.entries + kBlockEntries - 1) / kBlockEntries * kBlockEntries);
        kernels_->score_u8i8(major_codes(tile), tile.entries, coded_.scan(), scores_.data());
        const std::size_t wanted = std::min(answer_->results.missing(), tile.entries);
        const std::int32_t bar = nth_largest(wanted, tile.entries);
        for (std::size_t i = 0; i < tile.entries && answer_->results.missing() != 0; ++i) {
            if (scores_[i] < bar) continue;
            settle_seed(tile.position + static_cast<std::uint32_t>(i), scores_[i]);
            scores_[i] = kDone;
        }
        if (wanted == tile.entries) return;
        std::int32_t skipped = kDone;
        const std::size_t added = kernels_->select_i32(
            scores_.data(), tile.entries, coded_.cut(threshold(), scan_slack(tile.norms)),
            tile.position, candidates_.data() + candidates_count_, &skipped);
        if (skipped != kDone) skip(coded_.major_bound(skipped) + proved_slack(tile.norms));
        candidates_count_ += added;
        if (added != 0) refresh(candidates_count_ - added);
    }

    std::int32_t nth_largest(std::size_t n, std::size_t entries) {
        if (n == 1) return *std::max_element(scores_.begin(), scores_.begin() + static_cast<std::ptrdiff_t>(entries));
        ranked_.assign(scores_.begin(), scores_.begin() + static_cast<std::ptrdiff_t>(entries));
        const auto nth = ranked_.begin() + static_cast<std::ptrdiff_t>(n - 1);
        std::nth_element(ranked_.begin(), nth, ranked_.end(), std::greater<>());
        return *nth;
    }

    // seeds_ holds the k best major scores settled so far, the least at the front.
    void settle_seed(std::uint32_t position, std::int32_t score) {
        settle(position);
        if (seeds_.size() == answer_->results.wanted()) {
            if (score <= seeds_.front()) return;
            std::pop_heap(seeds_.begin(), seeds_.end(), std::greater<>());
            seeds_.back() = score;
        } else {
            seeds_.push_back(score);
        }
        std::push_heap(seeds_.begin(), seeds_.end(), std::greater<>());
    }

    // Step 2 later on: settles candidates with better majors than all seeds once there are enough
    // of them to be worth it.
    void refresh(std::size_t first_new) {
        if (!answer_->results.wants_best()) return;
        for (std::size_t i = first_new; i < candidates_count_; ++i) {
            promising_ += candidates_[i].score > seeds_.front();
        }
        if (promising_ < (answer_->results.wanted() + 1) / 2) return;
        for (; refreshed_ < candidates_count_; ++refreshed_) {
            Candidate& candidate = candidates_[refreshed_];
            if (candidate.score <= seeds_.front()) continue;
            settle_seed(candidate.position, candidate.score);
            candidate.score = kDone;
        }
        promising_ = 0;
    }

    // Drops candidates that the present threshold rules out.
    void compact() {
        std::size_t kept = 0;
        std::size_t tile_index = ~std::size_t{0};
        std::int32_t cut = 0;
        double slack = 0.0;
        std::int32_t skipped = kDone;
        for (std::size_t i = 0; i < candidates_count_; ++i) {
            const Candidate candidate = candidates_[i];
            if (candidate.position / kTileEntries != tile_index) {
                if (skipped != kDone) skip(coded_.major_bound(skipped) + slack);
                tile_index = candidate.position / kTileEntries;
                const TileNorms& norms = norms_at(candidate.position);
                slack = proved_slack(norms);
                cut = coded_.cut(threshold(), scan_slack(norms));
                skipped = kDone;
            }
            if (candidate.score > cut) {
                candidates_[kept++] = candidate;
            } else {
                skipped = std::max(skipped, candidate.score);
            }
        }
        if (skipped != kDone) skip(coded_.major_bound(skipped) + slack);
        candidates_count_ = kept;
        refreshed_ = kept;
        promising_ = 0;
    }

    const TileNorms& norms_at(std::uint32_t position) const {
        return store_->chunk(position / kChunkEntries).tiles[position % kChunkEntries / kTileEntries];
    }

    void prefetch(std::uint32_t position) const {
        const Chunk& chunk = store_->chunk(position / kChunkEntries);
        const std::size_t bytes = store_->fit().stage_bytes(0);
        prefetch_line(chunk.stage_codes[0].data() + position % kChunkEntries * bytes);
    }
    static void prefetch_line(const std::uint8_t* address) {
#if defined(__GNUC__)
        __builtin_prefetch(address);
#else
        (void)address;
#endif
    }

    void tighten(const Tile& tile, const Candidate& candidate, double slack) {
        const Fit& fit = store_->fit();
        const std::size_t entry = candidate.position % kChunkEntries;
        const std::uint8_t* major = tile.chunk.major_codes.data() +
                                    entry / kBlockEntries * kBlockEntries * fit.slots() +
                                    entry % kBlockEntries * kGroupSlots;
        const double base = coded_.major_bound(candidate.score - coded_.tail_score(fit, major)) + slack;
        std::int64_t minor = 0;
        double bound = 0.0;
        for (std::size_t stage = 0;; ++stage) {
            const std::size_t bytes = fit.stage_bytes(stage);
            const std::uint8_t* codes = tile.chunk.stage_codes[stage].data() + entry * bytes;
            minor += kernels_->dot_u8i8(codes, coded_.stage_codes(stage), bytes) -
                     coded_.stage_correction(stage);
            bound = base + coded_.minor_scale() * static_cast<double>(minor);
            if (stage + 1 == fit.stages()) break;
            bound += coded_.stage_tail(stage) * codes[Fit::kStageDims];
            if (bound < threshold()) break;
        }
        if (bound < threshold()) {
            skip(bound);
        } else {
            finalists_.push_back({candidate.position, bound});
        }
    }

    const Store* store_ = nullptr;
    const Kernels* kernels_ = nullptr;
    const Job* job_ = nullptr;
    Answer* answer_ = nullptr;
    bool alone_ = false;
    ExactQuery exact_;
    QueryView view_;
    CodedQuery coded_;
    std::vector<Candidate> candidates_;
    std::size_t candidates_count_ = 0;
    std::size_t compact_at_ = 0;
    std::size_t refreshed_ = 0;   // candidates before this one have been looked at by refresh()
    std::size_t promising_ = 0;   // candidates behind it that beat the seeds
    std::size_t next_ = 0;        // of tighten()
    std::vector<std::int32_t> seeds_;
    std::vector<std::int32_t> scores_;
    std::vector<std::int32_t> ranked_;
    std::vector<Finalist> finalists_;
};

template <class Use>
void for_each_tile(const Store& store, Use use) {
    for (std::size_t c = 0; c < store.chunks(); ++c) {
        const Chunk& chunk = store.chunk(c);
        const std::size_t entries = store.chunk_entries(c);
        for (std::size_t first = 0; first < entries; first += kTileEntries) {
            use(Tile{chunk, chunk.tiles[first / kTileEntries], first,
                     std::min(kTileEntries, entries - first),
                     static_cast<std::uint32_t>(c * kChunkEntries + first)});
        }
    }
}

}  // namespace

void search_cascade(const Store& store, const Kernels& kernels, const Job& job,
                    const float* queries, std::span<Answer> answers) {
    // A single query reuses the thread's buffers; a group's are too large to keep.
    thread_local Passage single;
    std::vector<Passage> many(answers.size() == 1 ? 0 : answers.size());
    const std::span<Passage> group = answers.size() == 1 ? std::span(&single, 1) : std::span(many);
    for (std::size_t i = 0; i < group.size(); ++i) {
        group[i].begin(store, kernels, job, group.size() == 1, queries + i * store.dim(), answers[i]);
    }
    for_each_tile(store, [&](const Tile& tile) {
        for (Passage& passage : group) passage.scan(tile);
    });
    for (Passage& passage : group) passage.sift();
    for_each_tile(store, [&](const Tile& tile) {
        for (Passage& passage : group) passage.tighten(tile);
    });
    for (Passage& passage : group) passage.settle();
}

}  // namespace hiernorm
