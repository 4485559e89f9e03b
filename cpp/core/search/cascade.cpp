// The cascade: from all entries to the answer in steps that each read more of fewer entries. It
// reads like reference.cascade_search, which gives the same answers and the same counts.
//
//   step         reads per entry                     rules out by
//   skip cells   nothing: cones of many entries      the angle between query and cone
//   scan         the major's codes                   integer score <= cut
//   seed         the rows of the first best majors   (gives the threshold that makes the cut)
//   sift         nothing: the scores of the scan     the threshold reached since
//   tighten      the minor's codes, 64 bytes a time  the far tighter bound of major and minor codes
//   weigh        the row's major                     its exact product instead of that of the codes
//   settle       the float32 row                     the canonical score
//
// A group of queries goes through the steps together, a few tiles at a time: the codes of a tile
// serve all queries while they are in the cache. What passes the scan is logged, and the steps
// behind it read the log when the minor codes asked for meanwhile have arrived. Every step raises
// the threshold for the tiles that follow. Whatever is ruled out leaves its certified bound in
// SearchStats::skipped_bound.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "interrupt.hpp"
#include "search/cell_skipper.hpp"
#include "search/engines.hpp"
#include "search/prepared_query.hpp"
#include "search/refinement.hpp"
#include "search/seeding.hpp"
#include "search/threads.hpp"
#include "search/tile_scan.hpp"

namespace hiernorm {
namespace {

// Tiles between one reading of the log and the next: long enough for the codes asked for to
// arrive, short enough for the threshold to be up to date.
constexpr std::size_t kTilesLogged = 4;
static_assert(kRangeEntries % (kTilesLogged * kTileEntries) == 0);

constexpr std::size_t kQueriesKept = 512;  // with their buffers, for the next group

// One query and the steps that it takes.
class CascadeQuery {
   public:
    // Takes a query; its view is prepared before it begins.
    PreparedQuery* take(const Store& store, const Kernels& kernels, const SearchRequest& request,
                        const float* row, Answer& answer, Workspace& workspace) {
        query_.begin(store, kernels, request, row, answer, workspace);
        return &query_;
    }

    void begin(const SearchRequest& request, bool in_group) {
        prepare(request, in_group);
        if (uses_cells_ && query_.missing() != 0) seeding_.seed_from_cells(query_, cells_);
    }

    // A part of the search that `whole` has begun; `answer` has the hits of `whole`.
    void begin_part(const CascadeQuery& whole, const SearchRequest& request, const float* row,
                    Answer& answer, Workspace& workspace) {
        PreparedQuery* const query =
            take(whole.query_.store(), whole.query_.kernels(), request, row, answer, workspace);
        PreparedQuery::prepare_views({&query, 1});
        prepare(request, false);
        seeding_.take_seeds(whole.seeding_);
    }

    // Among the kRangeEntries of a chunk from `first` on.
    void skip_cells(std::size_t chunk, std::size_t first) {
        const bool skipped = uses_cells_ && query_.missing() == 0 &&
                             cells_.skip(chunk, first, query_.threshold(), query_.stats());
        scan_.choose_blocks(query_, skipped);
    }

    std::size_t seed_or_scan(const Tile& tile, Candidate* out) {
        if (query_.missing() != 0) return seeding_.seed_from_tile(query_, tile, out);
        if (query_.soft()) return scan_.scan_soft(query_, cells_, seeding_, tile, out);
        return scan_.scan(query_, cells_, tile, out);
    }

    // The query, if it may scan tiles together with others.
    PreparedQuery* shares_tiles() {
        return query_.missing() == 0 && scan_.shares_tiles(query_) ? &query_ : nullptr;
    }

    double threshold() const { return query_.threshold(); }

    // `scanned_at`: the threshold when the candidates were found.
    void refine(const Tile& tile, double scanned_at, std::span<Candidate> candidates) {
        candidates = refinement_.sift(query_, tile.chunk, tile.norms, scanned_at, candidates);
        if (candidates.empty()) return;
        refinement_.tighten(query_, tile.chunk, tile.norms, candidates);
        refinement_.weigh(query_, seeding_, tile.chunk, tile.norms);
    }

    void settle() { refinement_.settle(query_, seeding_); }

    std::uint64_t seeded() const { return seeding_.seeded(); }

   private:
    void prepare(const SearchRequest& request, bool in_group) {
        const Store& store = query_.store();
        query_.finish();
        seeding_.begin();
        refinement_.begin();
        uses_cells_ = request.use_cells && store.cells().grouped_entries() != 0;
        if (!uses_cells_) return;
        cells_.begin(store, query_.kernels(), query_.view(), in_group, query_.workspace());
    }

    PreparedQuery query_;
    bool uses_cells_ = false;
    CellSkipper cells_;
    Seeding seeding_;
    TileScan scan_;
    Refinement refinement_;
};

// Every so many-th range of entries, from one on.
struct Part {
    std::size_t number = 0;
    std::size_t parts = 1;

    bool has(std::size_t chunk, std::size_t first) const {
        return (chunk * (kChunkEntries / kRangeEntries) + first / kRangeEntries) % parts == number;
    }
};

class Cascade {
   public:
    void search(const Store& store, const Kernels& kernels, const SearchRequest& request,
                const float* rows, std::span<Answer> answers) {
        const std::span<CascadeQuery> queries = queries_for(answers.size());
        for (std::size_t first = 0; first < queries.size(); first += kSharedQueries) {
            PreparedQuery* together[kSharedQueries];
            const std::size_t count = std::min(kSharedQueries, queries.size() - first);
            for (std::size_t i = 0; i < count; ++i) {
                together[i] = queries[first + i].take(store, kernels, request,
                                                      rows + (first + i) * store.dim(),
                                                      answers[first + i], workspace_);
            }
            PreparedQuery::prepare_views({together, count});
            for (CascadeQuery& query : queries.subspan(first, count)) {
                query.begin(request, queries.size() > 1);
            }
        }
        run(store, queries, {});
    }

    CascadeQuery& begin(const Store& store, const Kernels& kernels, const SearchRequest& request,
                        const float* row, Answer& answer) {
        CascadeQuery& query = queries_for(1)[0];
        PreparedQuery* const taken = query.take(store, kernels, request, row, answer, workspace_);
        PreparedQuery::prepare_views({&taken, 1});
        query.begin(request, /*in_group=*/false);
        return query;
    }

    void search_part(const CascadeQuery& whole, const Store& store, const SearchRequest& request,
                     const float* row, const Part& part, Answer& answer) {
        const std::span<CascadeQuery> query = queries_for(1);
        query[0].begin_part(whole, request, row, answer, workspace_);
        run(store, query, part);
    }

    // What only a very large group needs is not kept.
    void shrink() {
        if (queries_.size() > kQueriesKept) queries_.resize(kQueriesKept);
        if (log_.capacity() > kQueriesKept * kTileEntries) log_ = {};
    }

   private:
    std::span<CascadeQuery> queries_for(std::size_t count) {
        if (queries_.size() < count) queries_.resize(count);
        return {queries_.data(), count};
    }

    void run(const Store& store, std::span<CascadeQuery> queries, const Part& part) {
        const std::size_t stride = (queries.size() == 1 ? kTilesLogged : 1) * kTileEntries;
        for (std::size_t c = 0; c < store.chunks(); ++c) {
            const std::size_t entries = store.chunk_entries(c);
            for (std::size_t first = 0; first < entries; first += stride) {
                if (!part.has(c, first)) continue;
                if (first == 0 || queries.size() > 1) poll_interrupt();
                if (first % kRangeEntries == 0) {
                    for (CascadeQuery& query : queries) query.skip_cells(c, first);
                }
                scan_tiles(store, c, first, std::min(first + stride, entries), queries);
                for (const Logged& found : logged_) {
                    found.query->refine(found.tile, found.threshold,
                                        {log_.data() + found.first, found.count});
                }
            }
        }
        for (CascadeQuery& query : queries) query.settle();
    }

    // Candidates of one query in one tile, neighbours in the log.
    struct Logged {
        CascadeQuery* query;
        Tile tile;
        double threshold;  // of the query then
        std::size_t first;
        std::size_t count;
    };

    void scan_tiles(const Store& store, std::size_t c, std::size_t first, std::size_t last,
                    std::span<CascadeQuery> queries) {
        const Chunk& chunk = store.chunk(c);
        std::size_t used = 0;
        logged_.clear();
        for (; first < last; first += kTileEntries) {
            const Tile tile{.chunk = chunk,
                            .norms = chunk.tiles[first / kTileEntries],
                            .first = first,
                            .entries = std::min(kTileEntries, last - first),
                            .position = static_cast<std::uint32_t>(c * kChunkEntries + first)};
            std::size_t waiting = 0;
            for (CascadeQuery& query : queries) {
                if (query.shares_tiles() == nullptr) {
                    log_.grow_geometrically(used + room_for(tile));
                    log(query, tile, used, query.seed_or_scan(tile, log_.data() + used), used);
                } else {
                    sharing_[waiting++] = &query;
                    if (waiting == kSharedQueries) scan_shared(tile, waiting, used);
                }
            }
            if (waiting != 0) scan_shared(tile, waiting, used);
        }
    }

    // Behind `used` in the log, room for the candidates of each query.
    static std::size_t room_for(const Tile& tile) { return tile.entries + kBlockEntries; }

    // Scans a tile for the queries that wait for it: they share the loads of its codes.
    void scan_shared(const Tile& tile, std::size_t& waiting, std::size_t& used) {
        PreparedQuery* prepared[kSharedQueries];
        Candidate* outs[kSharedQueries];
        std::size_t counts[kSharedQueries];
        const std::size_t first = used, count = std::exchange(waiting, 0);
        log_.grow_geometrically(used + count * room_for(tile));
        for (std::size_t i = 0; i < count; ++i) {
            prepared[i] = sharing_[i]->shares_tiles();
            outs[i] = log_.data() + first + i * room_for(tile);
        }
        if (count == 1) {
            counts[0] = sharing_[0]->seed_or_scan(tile, outs[0]);
        } else {
            scan_together({prepared, count}, tile, {outs, count}, counts);
        }
        for (std::size_t i = 0; i < count; ++i) {
            log(*sharing_[i], tile, first + i * room_for(tile), counts[i], used);
        }
    }

    // Logs the candidates of a query, which lie from `from` on, behind what is used.
    void log(CascadeQuery& query, const Tile& tile, std::size_t from, std::size_t count,
             std::size_t& used) {
        if (count == 0) return;
        if (from != used) std::copy_n(log_.data() + from, count, log_.data() + used);
        logged_.push_back({&query, tile, query.threshold(), used, count});
        used += count;
    }

    Workspace workspace_;
    std::vector<CascadeQuery> queries_;
    Buffer<Candidate> log_;
    std::vector<Logged> logged_;
    CascadeQuery* sharing_[kSharedQueries];  // that wait for a scan of the tile together
};

}  // namespace

void search_cascade(const Store& store, const Kernels& kernels, const SearchRequest& request,
                    const float* queries, std::span<Answer> answers) {
    Kept<Cascade> cascade;
    cascade->search(store, kernels, request, queries, answers);
    cascade->shrink();
}

// The parts begin with one threshold, that of the seeds, and raise it each for itself: the counts
// of the certificate do not depend on which thread was faster.
void search_cascade_parts(const Store& store, const Kernels& kernels, const SearchRequest& request,
                          const float* query, Answer& answer, std::size_t parts) {
    Kept<Cascade> cascade;
    const CascadeQuery* whole = nullptr;
    Answers found(request, parts);
    std::vector<std::int64_t> known_ids;
    const auto seed = [&] {
        whole = &cascade->begin(store, kernels, request, query, answer);
        if (!answer.results.wants_best()) return;
        for (const Hit& hit : answer.results.hits()) {
            known_ids.push_back(hit.id);
            for (Answer& part : found) part.results.offer(hit);
        }
        std::sort(known_ids.begin(), known_ids.end());
    };
    run_tasks_after(seed, parts, parts, [&](std::size_t number) {
        Kept<Cascade> helper;
        helper->search_part(*whole, store, request, query, {number, parts}, found[number]);
    });
    for (const Answer& part : found) {
        for (const Hit& hit : part.results.hits()) {
            const bool is_known = std::binary_search(known_ids.begin(), known_ids.end(), hit.id);
            if (!is_known) answer.results.offer(hit);
        }
        answer.stats.add(part.stats);
    }
    answer.stats.sifted =
        std::min<std::uint64_t>(answer.stats.sifted + whole->seeded(), store.size());
    answer.stats.tightened += whole->seeded();
}

}  // namespace hiernorm
