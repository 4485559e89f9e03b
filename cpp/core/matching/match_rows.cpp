// The pass over all pairs: tiles of `a` that stay in the cache, under panels of `b`.
#include "matching/match_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "encode/exact_query.hpp"
#include "float_environment.hpp"
#include "interrupt.hpp"
#include "kernels/pack_queries.hpp"
#include "per_thread.hpp"
#include "search/results.hpp"
#include "search/threads.hpp"

namespace hiernorm {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kCare = 1.02;
constexpr double kUnderflow = 0x1p-124;
constexpr double kMostDims = 0x1p16;      // 2 d u stays below 0.008
constexpr double kMostSquare = 0x1p100;   // no sum overflows
constexpr double kLeastSquare = 0x1p-80;  // for cosine: what underflows is far less than an ulp
constexpr std::size_t kTileValues = 1 << 17;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

std::size_t tile_rows(std::size_t dim) {
    return std::clamp<std::size_t>(kTileValues / dim, 96, 1920) / kPanelQueries * kPanelQueries;
}

// What scales and offsets a product to a score, for one side; and the norms that bound errors.
struct Side {
    std::vector<float> scales, offsets;
    std::vector<double> norms;
    double smallest = kInfinity, largest = 0.0;  // of the norms

    Side(const Kernels& kernels, Metric metric, const RowSet& set, std::size_t dim, float factor)
        : scales(round_up(set.count, kPanelRows), factor), offsets(scales.size()),
          norms(set.count) {
        std::vector<double> row(round_up(dim, kLanes));
        for (std::size_t i = 0; i < set.count; ++i) {
            std::copy_n(set.rows + i * dim, dim, row.begin());
            const double square = kernels.dot_f32(row.data(), set.rows + i * dim, dim);
            norms[i] = std::sqrt(square);
            smallest = std::min(smallest, norms[i]);
            largest = std::max(largest, norms[i]);
            if (metric == Metric::kL2) offsets[i] = static_cast<float>(0.0 - square);
            if (metric == Metric::kCosine) scales[i] = static_cast<float>(1.0 / norms[i]);
        }
    }
};

// The best k scores with their places, and the next score.
struct Best {
    float scores[kPlaced] = {kLowest, kLowest};
    std::uint32_t places[kPlaced] = {};
    float next = kLowest;

    void enter(std::size_t k, float score, std::uint32_t place) {
        for (std::size_t i = 0; i < k; ++i) {
            if (score <= scores[i]) continue;
            std::swap(score, scores[i]);
            std::swap(place, places[i]);
        }
        next = std::max(next, score);
    }
    void enter_next(float score) { next = std::max(next, score); }
};

struct Ranks {
    std::vector<float> scores;
    std::vector<std::uint32_t> places;

    explicit Ranks(std::size_t blocks)
        : scores(blocks * kRanked * kLanes, kLowest), places(blocks * kPlaced * kLanes) {}

    // Enters what lane `lane` of a block ranks; `place` tells what a place stands for.
    template <class Place>
    void enter(std::size_t block, std::size_t lane, std::size_t k, Place place, Best& best) const {
        const float* ranked = scores.data() + block * kRanked * kLanes + lane;
        const std::uint32_t* placed = places.data() + block * kPlaced * kLanes + lane;
        for (std::size_t i = 0; i < k; ++i) {
            best.enter(k, ranked[i * kLanes], place(placed[i * kLanes]));
        }
        best.enter_next(ranked[k * kLanes]);
    }
};

class Matcher {
   public:
    Matcher(const Kernels& kernels, Metric metric, const RowSet& a, const RowSet& b,
            std::size_t dim, std::size_t k, bool both)
        : kernels_(kernels), metric_(metric), a_(a), b_(b), dim_(dim), k_(k), both_(both),
          side_a_(kernels, metric, a, dim, 1.0f),
          side_b_(kernels, metric, b, dim, metric == Metric::kL2 ? 2.0f : 1.0f),
          tile_(tile_rows(dim)) {}

    RowMatches run(std::size_t threads) {
        RowMatches matches;
        begin(matches.of_a, a_.count);
        if (both_) begin(matches.of_b, b_.count);
        if (!bounded()) return matches;
        const std::size_t tiles = divide_up(a_.count, tile_);
        const std::size_t parts = std::clamp<std::size_t>(threads, 1, tiles);
        std::vector<Ranks> of_b(parts, Ranks(both_ ? divide_up(b_.count, kLanes) + 1 : 0));
        run_tasks(parts, threads, [&](std::size_t part) {
            for (std::size_t t = tiles * part / parts; t < tiles * (part + 1) / parts; ++t) {
                pass(t * tile_, std::min(tile_, a_.count - t * tile_), of_b[part], matches.of_a);
            }
        });
        if (both_) {
            run_tasks(parts, threads, [&](std::size_t part) {
                settle_columns(of_b, b_.count * part / parts, b_.count * (part + 1) / parts,
                               matches.of_b);
            });
        }
        return matches;
    }

   private:
    void begin(NearestRows& nearest, std::size_t count) const {
        nearest.ids.assign(count * k_, -1);
        nearest.scores.assign(count * k_, -kInfinity);
        nearest.proved.assign(count, 0);
    }

    // Whether the bounds on rounding hold at all.
    bool bounded() const {
        const double largest = std::max(side_a_.largest, side_b_.largest);
        const double smallest = std::min(side_a_.smallest, side_b_.smallest);
        return static_cast<double>(dim_) <= kMostDims && largest * largest < kMostSquare &&
               (metric_ != Metric::kCosine || smallest * smallest >= kLeastSquare);
    }

    // What the float32 scores of a row of norm `norm` with rows of at most `largest` can be off by.
    double slack(double norm, double largest) const {
        const auto d = static_cast<double>(dim_);
        const double underflow = kUnderflow * d;
        switch (metric_) {
            case Metric::kInnerProduct:
                return kCare * (d + 1) * kUnit * norm * largest + underflow;
            case Metric::kL2:
                return kCare * (d + 4) * kUnit * (norm + largest) * (norm + largest) + underflow;
            case Metric::kCosine: return kCare * (2 * d + 9) * kUnit;
        }
        return kInfinity;
    }

    // Ranks the rows of a tile of `a` among all of `b`, and the other way round.
    void pass(std::size_t first, std::size_t count, Ranks& of_b, NearestRows& nearest) const {
        const std::vector<float> queries = packed(first, count);
        std::vector<float> panel(dim_ * kPanelRows), scores(round_up(kPanelQueries, kFewQueries) *
                                                            kPanelRows);
        float squares[kPanelRows];
        Ranks of_a(count);
        for (std::size_t row = 0; row < b_.count; row += kPanelRows) {
            poll_interrupt();
            const std::size_t entries = std::min(kPanelRows, b_.count - row);
            kernels_.pack_panel_f32(b_.rows + row * dim_, entries, dim_, panel.data(), squares);
            const PanelRows rows{.values = panel.data(),
                                 .dim = dim_,
                                 .scales = side_b_.scales.data() + row,
                                 .offsets = side_b_.offsets.data() + row};
            for (std::size_t q = 0; q < count; q += kPanelQueries) {
                const std::size_t group = std::min(kPanelQueries, count - q);
                kernels_.score_panel_f32(rows, queries.data() + q * dim_, group, scores.data(),
                                         kPanelRows);
                const std::size_t block = row / kLanes;
                kernels_.rank_panel_f32(
                    {.second = k_ == 2,
                     .entries = entries,
                     .blocks = divide_up(entries, kLanes),
                     .first_block = static_cast<std::uint32_t>(block),
                     .first_query = static_cast<std::uint32_t>(first + q),
                     .query_scales = side_a_.scales.data() + first + q,
                     .query_offsets = side_a_.offsets.data() + first + q,
                     .of_queries = of_a.scores.data() + q * kRanked * kLanes,
                     .query_places = of_a.places.data() + q * kPlaced * kLanes,
                     .of_rows = both_ ? of_b.scores.data() + block * kRanked * kLanes : nullptr,
                     .row_places = of_b.places.data() + (both_ ? block * kPlaced * kLanes : 0)},
                    scores.data(), group, kPanelRows);
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            Best best;
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                of_a.enter(i, lane, k_,
                           [&](std::uint32_t block) {
                               return block * static_cast<std::uint32_t>(kLanes) +
                                      static_cast<std::uint32_t>(lane);
                           },
                           best);
            }
            settle(a_, first + i, b_, slack(side_a_.norms[first + i], side_b_.largest), best,
                   nearest);
        }
    }

    // Queries of a tile in the groups of score_panel_f32.
    std::vector<float> packed(std::size_t first, std::size_t count) const {
        std::vector<float> queries(round_up(count, kFewQueries) * dim_);
        pack_panel_queries(a_.rows + first * dim_, count, dim_, 1, queries.data());
        return queries;
    }

    void settle_columns(const std::vector<Ranks>& of_b, std::size_t first, std::size_t last,
                        NearestRows& nearest) const {
        for (std::size_t i = first; i < last; ++i) {
            Best best;
            for (const Ranks& ranks : of_b) {
                ranks.enter(i / kLanes, i % kLanes, k_, [](std::uint32_t row) { return row; }, best);
            }
            settle(b_, i, a_, slack(side_b_.norms[i], side_a_.largest), best, nearest);
        }
    }

    // The canonical scores of the best, if they are proved to be the best.
    void settle(const RowSet& from, std::size_t i, const RowSet& to, double slack, const Best& best,
                NearestRows& nearest) const {
        if (!(double{best.scores[k_ - 1]} - double{best.next} > 2 * slack)) return;
        ExactQuery& query = kept_by_thread<ExactQuery, Matcher>();
        query.prepare(kernels_, metric_, from.rows + i * dim_, dim_);
        Hit hits[kPlaced];
        for (std::size_t j = 0; j < k_; ++j) {
            const std::size_t place = best.places[j];
            hits[j] = {query.score(to.rows + place * dim_), static_cast<std::int64_t>(place)};
        }
        if (k_ == 2 && ranks_before(hits[1], hits[0])) std::swap(hits[0], hits[1]);
        for (std::size_t j = 0; j < k_; ++j) {
            nearest.ids[i * k_ + j] = hits[j].id;
            nearest.scores[i * k_ + j] = hits[j].score;
        }
        nearest.proved[i] = 1;
    }

    const Kernels& kernels_;
    const Metric metric_;
    const RowSet a_, b_;
    const std::size_t dim_, k_;
    const bool both_;
    const Side side_a_, side_b_;
    const std::size_t tile_;
};

}  // namespace

RowMatches match_rows(const Kernels& kernels, Metric metric, const RowSet& a, const RowSet& b,
                      std::size_t dim, std::size_t k, bool both, std::size_t threads) {
    const DefaultFloatEnvironment environment;
    return Matcher(kernels, metric, a, b, dim, k, both).run(threads);
}

}  // namespace hiernorm
