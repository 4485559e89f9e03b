// The flat scan: scores of all rows that may be off a little, then canonical scores of the few that
// can be hits.
//
// For vectors that no rotation orders, where the cascade would read most rows after their codes. A
// group of queries shares the panels that a strip of rows is packed into (flat_panels.hpp). Few
// queries read the rows as they are (flat_query.hpp).
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "interrupt.hpp"
#include "per_thread.hpp"
#include "search/engines.hpp"
#include "search/flat_panels.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kStripValues = 1 << 15;  // rows that stay in the cache for all queries
constexpr std::size_t kLeastEntries = 64;      // of a strip: a word of a mask
constexpr std::size_t kMostEntries = 512;      // of rows read as they are; a part of a tile
constexpr std::size_t kMostPanelEntries = 2048;
constexpr std::size_t kQueriesAtOnce = 1024;
constexpr std::size_t kQueryValues = 1 << 19;  // of those, whose codes stay in the cache too
constexpr std::size_t kLeastPanelQueries = 8;  // for which packing pays

std::size_t strip_entries(std::size_t dim, std::size_t most) {
    return std::bit_floor(std::clamp(kStripValues / dim, kLeastEntries, most));
}

std::size_t queries_at_once(std::size_t dim) {
    return std::clamp<std::size_t>(kQueryValues / dim / kPanelQueries * kPanelQueries,
                                   8 * kPanelQueries, kQueriesAtOnce);
}

class FlatScan {
   public:
    void search(const Store& store, const Kernels& kernels, Metric metric,
                const SearchRequest& request, const float* rows, std::span<Answer> answers) {
        metric_ = metric;
        dim_ = store.dim();
        const bool panels = answers.size() >= kLeastPanelQueries;
        begin(kernels, request.mask, rows, answers);
        if (panels) panels_.begin(store, kernels, metric, rows, {queries_.data(), answers.size()});
        const std::size_t most = strip_entries(dim_, panels ? kMostPanelEntries : kMostEntries);
        // The first strips are short: a threshold is found in the first, and soon rises.
        std::size_t wanted = panels ? kLeastEntries : most;
        for (std::size_t c = 0; c < store.chunks(); ++c) {
            const Chunk& chunk = store.chunk(c);
            const std::size_t entries = store.chunk_entries(c);
            for (std::size_t first = 0, count = 0; first < entries; first += count) {
                poll_interrupt();
                count = std::min(wanted, entries - first);
                wanted = std::min(2 * wanted, most);
                store.require_entries(c * kChunkEntries + first, count);
                const std::size_t tile = first / kTileEntries;
                const Strip strip{.rows = chunk.rows.data() + first * dim_,
                                  .ids = chunk.ids.data() + first,
                                  .first = c * kChunkEntries + first,
                                  .entries = count,
                                  .largest_norm = tile < chunk.tiles.size() ? chunk.tiles[tile].norm
                                                                            : kInfinity};
                if (!panels || !panels_.read(strip)) read(kernels, answers.size(), strip);
            }
        }
        for (std::size_t i = 0; i < answers.size(); ++i) queries_[i].finish();
    }

    // Large buffers are not kept from one call to the next.
    void shrink() {
        if (queries_.size() > 1) *this = FlatScan();
    }

   private:
    // The queries, padded with zeros, and one of zeros alone.
    void begin(const Kernels& kernels, const Mask& mask, const float* rows,
               std::span<Answer> answers) {
        const std::size_t padded = round_up(dim_, kLanes);
        values_.assign((answers.size() + 1) * padded, 0.0f);
        if (queries_.size() < answers.size()) queries_.resize(answers.size());
        for (std::size_t i = 0; i < answers.size(); ++i) {
            std::copy_n(rows + i * dim_, dim_, values_.data() + i * padded);
            queries_[i].begin(kernels, metric_, rows + i * dim_, dim_, mask, answers[i]);
        }
        zeros_ = values_.data() + answers.size() * padded;
    }

    // Rows as they are; at most kMostEntries at a time.
    void read(const Kernels& kernels, std::size_t count, Strip strip) {
        const std::size_t end = strip.first + strip.entries;
        while (strip.first < end) {
            strip.entries = std::min(kMostEntries, end - strip.first);
            read_part(kernels, count, strip);
            strip.rows += strip.entries * dim_;
            strip.ids += strip.entries;
            strip.first += strip.entries;
        }
    }

    void read_part(const Kernels& kernels, std::size_t count, const Strip& strip) {
        scores_.resize((count + 1) * kMostEntries);
        float* scores = scores_.data();
        if (metric_ == Metric::kL2) {
            kernels.distance_rows_f32(strip.rows, strip.entries, dim_, values_.data(), count,
                                      scores, kMostEntries);
        } else {
            kernels.score_rows_f32(strip.rows, strip.entries, dim_, values_.data(), count, scores,
                                   kMostEntries);
            if (metric_ == Metric::kInnerProduct && strip.largest_norm < kInfinity) {
                largest_ = strip.largest_norm * strip.largest_norm;
            } else {
                measure(kernels, strip, scores + count * kMostEntries);
            }
            if (metric_ == Metric::kCosine) divide(count, strip.entries);
        }
        for (std::size_t i = 0; i < count; ++i) {
            queries_[i].read(strip, scores + i * kMostEntries, smallest_, largest_);
        }
    }

    // The squared norms of the rows: their distances from zero.
    void measure(const Kernels& kernels, const Strip& strip, float* squares) {
        kernels.distance_rows_f32(strip.rows, strip.entries, dim_, zeros_, 1, squares,
                                  kMostEntries);
        float smallest = std::numeric_limits<float>::infinity();
        float largest = 0.0f;
        for (std::size_t i = 0; i < strip.entries; ++i) {
            squares[i] = 0.0f - squares[i];
            smallest = std::min(smallest, squares[i]);
            largest = std::max(largest, squares[i]);
        }
        smallest_ = static_cast<double>(smallest);
        largest_ =
            1.01 * static_cast<double>(largest) + flat::kUnderflow * static_cast<double>(dim_);
    }

    void divide(std::size_t count, std::size_t entries) {
        float* inverses = scores_.data() + count * kMostEntries;
        for (std::size_t i = 0; i < entries; ++i) inverses[i] = 1.0f / std::sqrt(inverses[i]);
        for (std::size_t q = 0; q < count; ++q) {
            float* scores = scores_.data() + q * kMostEntries;
            for (std::size_t i = 0; i < entries; ++i) scores[i] *= inverses[i];
        }
    }

    Metric metric_ = Metric::kInnerProduct;
    std::size_t dim_ = 0;
    double smallest_ = 0.0;
    double largest_ = 0.0;
    const float* zeros_ = nullptr;
    std::vector<float> values_;
    std::vector<float> scores_;
    std::vector<FlatQuery> queries_;
    FlatPanels panels_;
};

}  // namespace

void search_flat(const Store& store, const Kernels& kernels, Metric metric,
                 const SearchRequest& request, const float* queries, std::span<Answer> answers) {
    FlatScan& scan = kept_by_thread<FlatScan>();  // its buffers serve the next call
    const std::size_t at_once = queries_at_once(store.dim());
    for (std::size_t first = 0; first < answers.size(); first += at_once) {
        const std::size_t count = std::min(at_once, answers.size() - first);
        scan.search(store, kernels, metric, request, queries + first * store.dim(),
                    answers.subspan(first, count));
    }
    scan.shrink();
}

}  // namespace hiernorm
