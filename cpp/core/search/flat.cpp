// The flat scan: float32 scores of all rows, then canonical scores of the few that can be hits.
//
// For vectors that no rotation orders, where the cascade would read most rows after their codes. A
// group of queries shares each load of a row. With u = 2^-24, L = ceil(dim / 16) and the sums of
// score_rows_f32, whose longest path has L + 4 additions,
//
//   ip       |s - q.x| <= (L + 5) u |q| |x|                a product and L + 4 additions round
//   l2       |s - D| <= (L + 7) u D, D = |q - x|^2         differences, squares: none negative
//   cosine   |s / n - q.x / |x|| <= ((L + 5) + (L + 7) / 2 + 3) u |q|,   n = |x| in float32
//
// up to a factor of 1 / (1 - (L + 7) u); what underflows adds at most 2^-126 a dimension. kCare is
// more than that factor and the rounding of canonical scores. Where a sum could overflow, or a norm
// is too small for these bounds, rows get their canonical scores at once.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "encode/exact_query.hpp"
#include "interrupt.hpp"
#include "per_thread.hpp"
#include "search/engines.hpp"

namespace hiernorm {
namespace {

constexpr double kUnit = 0x1p-24;
constexpr double kCare = 1.02;
constexpr double kUnderflow = 0x1p-126;  // of a dimension, with or without subnormal numbers
constexpr double kLargest = 0x1p120;     // of |q| |x|: no partial sum overflows
constexpr double kMostDims = 0x1p20;     // (L + 7) u stays below 0.005
// Of |x|^2 and |q|^2 for cosine: what underflows is far less than an ulp of the product.
constexpr double kLeastSquare = 0x1p-80;
constexpr double kMostSquare = 0x1p100;
constexpr std::size_t kStripValues = 1 << 15;  // rows that stay in the cache for all queries
constexpr std::size_t kQueriesAtOnce = 128;    // whose scores of a strip are held

// No sum within the bounds is NaN, and NaN is above no cut.
constexpr float kSettled = std::numeric_limits<float>::quiet_NaN();

// Entries of a strip: whole words of a mask, within one tile.
std::size_t strip_entries(std::size_t dim) {
    return std::bit_floor(std::clamp<std::size_t>(kStripValues / dim, 64, 512));
}

float rounded_down(double value) {
    const auto near = static_cast<float>(value);
    return static_cast<double>(near) > value
               ? std::nextafter(near, -std::numeric_limits<float>::infinity())
               : near;
}

// Consecutive rows of a chunk.
struct Strip {
    const float* rows;
    const std::int64_t* ids;
    std::size_t first;  // position of the first entry in the store
    std::size_t entries;
    double largest_norm;  // of its tile; infinite if it was not measured
};

// One query: its bounds, and its answer so far.
class FlatQuery {
   public:
    void begin(const Kernels& kernels, Metric metric, const float* row, std::size_t dim,
               const Mask& mask, Answer& answer) {
        exact_.prepare(kernels, metric, row, dim);
        metric_ = metric;
        dim_ = dim;
        mask_ = mask;
        answer_ = &answer;
        settled_ = 0;
    }

    // `scores` are those of the strip's rows, whole blocks of them; `smallest` and `largest` bound
    // their squared norms (ip, cosine).
    void read(const Strip& strip, float* scores, double smallest, double largest) {
        answer_->stats.scanned += mask_.count(strip.first, strip.entries);
        const double slack = slack_of(smallest, largest);
        if (!(slack < kInfinity)) {
            mask_.for_each(strip.first, strip.entries,
                           [&](std::size_t entry) { settle(strip, entry); });
            return;
        }
        if (answer_->results.missing() != 0) seed(strip, scores);
        if (answer_->results.missing() != 0) return;
        sift(strip, scores, slack);
    }

    void finish() {
        SearchStats& stats = answer_->stats;
        stats.sifted = stats.tightened = stats.settled = settled_;
        // What was skipped scores below the threshold of its time, which only rises.
        if (settled_ < stats.scanned) {
            stats.skipped_bound = std::nextafter(answer_->results.threshold(), -kInfinity);
        }
    }

   private:
    double lanes() const { return static_cast<double>(divide_up(dim_, kLanes)); }

    // What a score can differ by, as far as it does not depend on the threshold; infinite where the
    // bounds do not hold.
    double slack_of(double smallest, double largest) const {
        const double unit = kCare * kUnit;
        const double underflow = kUnderflow * static_cast<double>(dim_);
        const double norm = exact_.norm();
        const double square = norm * norm;
        if (static_cast<double>(dim_) > kMostDims) return kInfinity;
        switch (metric_) {
            case Metric::kL2: return underflow;
            case Metric::kInnerProduct: {
                const double both = norm * std::sqrt(largest);
                return both < kLargest ? (lanes() + 5) * unit * both + underflow : kInfinity;
            }
            case Metric::kCosine: {
                const bool fits = smallest >= kLeastSquare && largest <= kMostSquare &&
                                  square >= kLeastSquare && square <= kMostSquare;
                return fits ? (lanes() + 5 + (lanes() + 7) / 2 + 4) * unit * norm : kInfinity;
            }
        }
        return kInfinity;
    }

    // An entry whose float32 score is below this scores below the threshold.
    float cut(double slack) const {
        const double threshold = answer_->results.threshold();
        switch (metric_) {
            case Metric::kL2: {
                const double farthest = std::max(0.0, 0.0 - threshold);
                return rounded_down(0.0 - farthest * (1 + (lanes() + 7) * kCare * kUnit) - slack);
            }
            case Metric::kInnerProduct: return rounded_down(threshold - slack);
            case Metric::kCosine: return rounded_down(threshold * exact_.norm() - slack);
        }
        return -std::numeric_limits<float>::infinity();
    }

    void settle(const Strip& strip, std::size_t entry) {
        answer_->results.offer({exact_.score(strip.rows + entry * dim_), strip.ids[entry]});
        ++settled_;
    }

    // The best float32 scores first: they give the first threshold.
    void seed(const Strip& strip, float* scores) {
        ranked_.clear();
        mask_.for_each(strip.first, strip.entries, [&](std::size_t entry) {
            ranked_.push_back(static_cast<std::uint32_t>(entry));
        });
        const std::size_t wanted = std::min(answer_->results.missing(), ranked_.size());
        const auto end = ranked_.begin() + static_cast<std::ptrdiff_t>(wanted);
        if (end != ranked_.end()) {
            std::nth_element(ranked_.begin(), end, ranked_.end(),
                             [&](std::uint32_t a, std::uint32_t b) {
                                 return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
                             });
        }
        for (auto entry = ranked_.begin(); entry != end; ++entry) {
            settle(strip, *entry);
            scores[*entry] = kSettled;
        }
    }

    // Blocks in which every score is below the cut are passed over.
    void sift(const Strip& strip, const float* scores, double slack) {
        float bar = cut(slack);
        for (std::size_t first = 0; first < strip.entries; first += kBlockEntries) {
            const float* block = scores + first;
            int above = 0;
            for (std::size_t i = 0; i < kBlockEntries; ++i) above |= block[i] >= bar ? 1 : 0;
            if (above == 0) continue;
            const std::size_t entries = std::min(kBlockEntries, strip.entries - first);
            for (std::size_t i = 0; i < entries; ++i) {
                if (!(block[i] >= bar) || !mask_.allows(strip.first + first + i)) continue;
                settle(strip, first + i);
                bar = cut(slack);
            }
        }
    }

    ExactQuery exact_;
    Metric metric_ = Metric::kInnerProduct;
    std::size_t dim_ = 0;
    Mask mask_;
    Answer* answer_ = nullptr;
    std::uint64_t settled_ = 0;
    std::vector<std::uint32_t> ranked_;
};

class FlatScan {
   public:
    void search(const Store& store, const Kernels& kernels, Metric metric,
                const SearchRequest& request, const float* rows, std::span<Answer> answers) {
        metric_ = metric;
        dim_ = store.dim();
        stride_ = strip_entries(dim_);
        begin(kernels, request.mask, rows, answers);
        for (std::size_t c = 0; c < store.chunks(); ++c) {
            const Chunk& chunk = store.chunk(c);
            const std::size_t entries = store.chunk_entries(c);
            for (std::size_t first = 0; first < entries; first += stride_) {
                poll_interrupt();
                store.require_entries(c * kChunkEntries + first, std::min(stride_, entries - first));
                const std::size_t tile = first / kTileEntries;
                read(kernels, answers.size(),
                     {.rows = chunk.rows.data() + first * dim_,
                      .ids = chunk.ids.data() + first,
                      .first = c * kChunkEntries + first,
                      .entries = std::min(stride_, entries - first),
                      .largest_norm =
                          tile < chunk.tiles.size() ? chunk.tiles[tile].norm : kInfinity});
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
        scores_.resize((answers.size() + 1) * stride_);
        if (queries_.size() < answers.size()) queries_.resize(answers.size());
        for (std::size_t i = 0; i < answers.size(); ++i) {
            std::copy_n(rows + i * dim_, dim_, values_.data() + i * padded);
            queries_[i].begin(kernels, metric_, rows + i * dim_, dim_, mask, answers[i]);
        }
        zeros_ = values_.data() + answers.size() * padded;
    }

    void read(const Kernels& kernels, std::size_t count, const Strip& strip) {
        float* scores = scores_.data();
        if (metric_ == Metric::kL2) {
            kernels.distance_rows_f32(strip.rows, strip.entries, dim_, values_.data(), count,
                                      scores, stride_);
        } else {
            kernels.score_rows_f32(strip.rows, strip.entries, dim_, values_.data(), count, scores,
                                   stride_);
            if (metric_ == Metric::kInnerProduct && strip.largest_norm < kInfinity) {
                largest_ = strip.largest_norm * strip.largest_norm;
            } else {
                measure(kernels, strip, scores + count * stride_);
            }
            if (metric_ == Metric::kCosine) divide(count, strip.entries);
        }
        for (std::size_t i = 0; i < count; ++i) {
            queries_[i].read(strip, scores + i * stride_, smallest_, largest_);
        }
    }

    // The squared norms of the rows: their distances from zero.
    void measure(const Kernels& kernels, const Strip& strip, float* squares) {
        kernels.distance_rows_f32(strip.rows, strip.entries, dim_, zeros_, 1, squares, stride_);
        float smallest = std::numeric_limits<float>::infinity();
        float largest = 0.0f;
        for (std::size_t i = 0; i < strip.entries; ++i) {
            squares[i] = 0.0f - squares[i];
            smallest = std::min(smallest, squares[i]);
            largest = std::max(largest, squares[i]);
        }
        smallest_ = static_cast<double>(smallest);
        largest_ = 1.01 * static_cast<double>(largest) + kUnderflow * static_cast<double>(dim_);
    }

    void divide(std::size_t count, std::size_t entries) {
        float* inverses = scores_.data() + count * stride_;
        for (std::size_t i = 0; i < entries; ++i) inverses[i] = 1.0f / std::sqrt(inverses[i]);
        for (std::size_t q = 0; q < count; ++q) {
            float* scores = scores_.data() + q * stride_;
            for (std::size_t i = 0; i < entries; ++i) scores[i] *= inverses[i];
        }
    }

    Metric metric_ = Metric::kInnerProduct;
    std::size_t dim_ = 0;
    std::size_t stride_ = 0;
    double smallest_ = 0.0;
    double largest_ = 0.0;
    const float* zeros_ = nullptr;
    std::vector<float> values_;
    std::vector<float> scores_;
    std::vector<FlatQuery> queries_;
};

}  // namespace

void search_flat(const Store& store, const Kernels& kernels, Metric metric,
                  const SearchRequest& request, const float* queries, std::span<Answer> answers) {
    FlatScan& scan = kept_by_thread<FlatScan>();  // its buffers serve the next call
    for (std::size_t first = 0; first < answers.size(); first += kQueriesAtOnce) {
        const std::size_t count = std::min(kQueriesAtOnce, answers.size() - first);
        scan.search(store, kernels, metric, request, queries + first * store.dim(),
                    answers.subspan(first, count));
    }
    scan.shrink();
}

}  // namespace hiernorm
