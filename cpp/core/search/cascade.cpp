// The cascade: five steps from all entries to the answer, each reading more of fewer entries.
//
//   step        reads per entry                     rules out by
//   1 scan      the major's codes                   integer score <= cut
//   2 seed      the rows of the first best majors   (gives the threshold that makes the cut)
//   3 sift      nothing: the scores of step 1       the threshold reached since
//   4 tighten   the minor's codes, 64 bytes a time  the far tighter bound of major and minor codes
//   5 settle    the float32 row                     the canonical score
//
// Where entries lie in cells, a step 0 before them bounds whole blocks by cones, and the scan reads
// those only that can reach the threshold.
//
// A group of queries goes through steps 1 to 4 together, a few tiles at a time: the codes of a tile
// serve all queries while they are in the cache.
// What passes the scan is appended to a log, and steps 3 and 4 read it when the minor codes asked
// for meanwhile have arrived. Every step raises the threshold for the tiles that follow. Whatever
// is ruled out leaves its certified bound in Report::skipped_bound.
#include <algorithm>
#include <vector>

#include "search/engines.hpp"
#include "search/passage.hpp"

namespace hiernorm {
namespace {

// Tiles between one reading of the log and the next: long enough for the codes asked for to
// arrive, short enough for the threshold to be up to date.
constexpr std::size_t kTilesLogged = 4;
static_assert(kRangeEntries % (kTilesLogged * kTileEntries) == 0);

// Candidates of one query in one tile, neighbours in the log.
struct Run {
    Passage* passage;
    std::size_t first;
    std::size_t count;
};

class Group {
   public:
    void search(const Store& store, const Kernels& kernels, const Job& job, const float* queries,
                std::span<Answer> answers) {
        store_ = &store;
        if (passages_.size() < answers.size()) passages_.resize(answers.size());
        sharing_.clear();
        for (std::size_t i = 0; i < answers.size(); ++i) {
            passages_[i].begin(store, kernels, job, queries + i * store.dim(), answers[i]);
            sharing_.push_back(&passages_[i]);
        }
        for (std::size_t c = 0; c < store.chunks(); ++c) search_chunk(c, sharing_);
        for (Passage* const passage : sharing_) passage->settle();
    }

    // Large buffers are not kept from one call to the next.
    void shrink() {
        if (passages_.size() > 1) std::vector<Passage>().swap(passages_);
    }

   private:
    // Steps 1 to 4.
    void search_chunk(std::size_t c, std::span<Passage* const> passages) {
        const Chunk& chunk = store_->chunk(c);
        const std::size_t entries = store_->chunk_entries(c);
        const std::size_t stride = (passages.size() == 1 ? kTilesLogged : 1) * kTileEntries;
        for (std::size_t first = 0; first < entries; first += stride) {
            if (first % kRangeEntries == 0) {
                for (Passage* const passage : passages) passage->enter_range(c, first);
            }
            logged_ = 0;
            runs_.clear();
            const std::size_t last = std::min(first + stride, entries);
            for (std::size_t tile = first; tile < last; tile += kTileEntries) {
                scan_tile({chunk, chunk.tiles[tile / kTileEntries], tile,
                           std::min(kTileEntries, last - tile),
                           static_cast<std::uint32_t>(c * kChunkEntries + tile)},
                          passages);
            }
            for (const Run& run : runs_) {
                run.passage->refine(chunk, log_.data() + run.first, run.count);
            }
        }
    }

    void scan_tile(const Tile& tile, std::span<Passage* const> passages) {
        for (Passage* const passage : passages) {
            const std::size_t room = logged_ + tile.entries + kBlockEntries;
            if (log_.size() < room) log_.resize(room + passages.size() * kTileEntries);
            const std::size_t added = passage->scan(tile, log_.data() + logged_);
            if (added != 0) runs_.push_back({passage, logged_, added});
            logged_ += added;
        }
    }

    const Store* store_ = nullptr;
    std::vector<Passage> passages_;
    std::vector<Passage*> sharing_;
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
