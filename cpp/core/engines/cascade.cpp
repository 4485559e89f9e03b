// The cascade: five steps from all entries to the answer, each reading more of fewer entries.
//
//   step        reads per entry                     rules out by
//   1 scan      the major's codes                   integer score <= cut
//   2 seed      the rows of the best majors         (raises the threshold that makes the cut)
//   3 sift      nothing: the scores of step 1       the threshold reached by steps 1 and 2
//   4 tighten   the minor's codes, 64 bytes a time  the far tighter bound of major and minor codes
//   5 settle    the float32 row                     the canonical score
//
// A group of queries goes through the steps together. Steps 1 and 2 take tile by tile, and each
// tile's codes serve all queries while they are in the cache; what passes is appended to one log,
// so that steps 3 and 4 find the candidates of a tile together as well. Whatever is ruled out
// leaves its certified bound in Report::skipped_bound.
#include <algorithm>
#include <vector>

#include "engines/engine.hpp"
#include "engines/passage.hpp"
#include "prefetch.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kLogLimit = std::size_t{1} << 21;  // candidates; 16 MiB
constexpr std::size_t kRunsAhead = 4;

// Candidates of one query in one chunk, neighbours in the log.
struct Run {
    std::uint32_t query;
    std::uint32_t chunk;
    std::size_t first;
    std::size_t count;
};

class Group {
   public:
    void search(const Store& store, const Kernels& kernels, const Job& job, const float* queries,
                std::span<Answer> answers) {
        store_ = &store;
        kernels_ = &kernels;
        if (passages_.size() < answers.size()) passages_.resize(answers.size());
        count_ = answers.size();
        for (std::size_t i = 0; i < count_; ++i) {
            passages_[i].begin(store, kernels, job, queries + i * store.dim(), answers[i]);
        }
        for (std::size_t c = 0; c < store.chunks(); ++c) scan_chunk(c);
        flush();
        for (std::size_t i = 0; i < count_; ++i) passages_[i].settle();
    }

    // Large buffers are not kept from one call to the next.
    void shrink() {
        if (passages_.size() > 1) std::vector<Passage>().swap(passages_);
    }

   private:
    // Steps 1 and 2.
    void scan_chunk(std::size_t c) {
        const Chunk& chunk = store_->chunk(c);
        const std::size_t entries = store_->chunk_entries(c);
        for (std::size_t first = 0; first < entries; first += kTileEntries) {
            const Tile tile{chunk, chunk.tiles[first / kTileEntries], first,
                            std::min(kTileEntries, entries - first),
                            static_cast<std::uint32_t>(c * kChunkEntries + first)};
            for (std::uint32_t query = 0; query < count_; ++query) scan_tile(tile, query, c);
        }
    }

    void scan_tile(const Tile& tile, std::uint32_t query, std::size_t chunk) {
        if (log_.size() < logged_ + tile.entries) {
            if (logged_ + tile.entries > kLogLimit) flush();
            log_.resize(std::max(logged_ + tile.entries, std::min(2 * log_.size(), kLogLimit)));
        }
        const std::size_t added = passages_[query].scan(tile, count_ == 1, log_.data() + logged_);
        if (added == 0) return;
        if (!runs_.empty() && runs_.back().query == query && runs_.back().chunk == chunk) {
            runs_.back().count += added;
        } else {
            runs_.push_back({query, static_cast<std::uint32_t>(chunk), logged_, added});
        }
        logged_ += added;
    }

    // Steps 3 and 4 for all that is in the log.
    void flush() {
        for (std::size_t r = 0; r < runs_.size(); ++r) {
            if (count_ > 1 && r + kRunsAhead < runs_.size()) prefetch_codes(runs_[r + kRunsAhead]);
            const Run& run = runs_[r];
            passages_[run.query].sift(store_->chunk(run.chunk), log_.data() + run.first, run.count);
            passages_[run.query].tighten(store_->chunk(run.chunk), run.chunk * kChunkEntries);
        }
        runs_.clear();
        logged_ = 0;
    }

    void prefetch_codes(const Run& run) const {
        const std::uint8_t* codes = store_->chunk(run.chunk).stage_codes[0].data();
        const std::size_t bytes = store_->fit().stages[0].bytes;
        for (std::size_t i = run.first; i < run.first + run.count; ++i) {
            prefetch(codes + log_[i].position % kChunkEntries * bytes);
        }
    }

    const Store* store_ = nullptr;
    const Kernels* kernels_ = nullptr;
    std::size_t count_ = 0;
    std::vector<Passage> passages_;
    std::vector<Candidate> log_;
    std::size_t logged_ = 0;
    std::vector<Run> runs_;
};

}  // namespace

void search_cascade(const Store& store, const Kernels& kernels, const Job& job,
                    const float* queries, std::span<Answer> answers) {
    thread_local Group group;  // its buffers serve the next call
    group.search(store, kernels, job, queries, answers);
    group.shrink();
}

}  // namespace hiernorm
