// Algorithm 1 of the paper, step by step as in reference.algorithm_1: float32 majors in SoA layout,
// stored scores, index order.
//
//   paper       here
//   s_i         scores_[i], float32
//   b           the best majors (k of them; the paper has k = 1)
//   s_best      the threshold of the results: the k-th best canonical score so far
//   alpha       `share`: the nominal alpha or the measured product of minor norms, whichever is
//               larger, plus the rounding of s_i; beta in soft mode
//
// Three things differ from the printed algorithm, for the sake of exact answers:
// - A full score is the canonical one, from the float32 row. The paper adds the minor's product to
//   the stored s_i, which saves K of d products; but s_i is a float32 sum, rounded in its own
//   order, and the total would not have the bits that every engine promises.
// - Ties are settled by id, so an entry is skipped only if its bound is *below* s_best.
// - Entries that the request's mask leaves out are neither b nor evaluated.
//
// The stored scores are compared in vector code, a tile at a time (Kernels::sift_f32). Thresholds
// only rise, so what a tile's first threshold skips is skipped in index order too.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "encode/exact_query.hpp"
#include "encode/query_view.hpp"
#include "interrupt.hpp"
#include "kernels/prefetch.hpp"
#include "search/engines.hpp"

namespace hiernorm {
namespace {

constexpr double kFloatEpsilon = 0x1p-24;
constexpr float kLowestScore = -std::numeric_limits<float>::infinity();
constexpr std::size_t kRowsAhead = 4;

// A score below this is skipped: with `share` it stays below the threshold, as rounded sums keep
// their order. What is not below it is tested one by one.
float cut_of(double threshold, double share) {
    const auto cut = static_cast<float>(threshold - share);
    const float below = std::nextafter(cut, kLowestScore);
    return below + share < threshold ? cut : kLowestScore;
}

class PaperSearch {
   public:
    PaperSearch(const Store& store, const Kernels& kernels, double alpha,
                const SearchRequest& request)
        : store_(store),
          kernels_(kernels),
          alpha_(alpha),
          request_(request),
          scores_(round_up(store.size(), kBlockEntries)),
          left_(kTileEntries) {}

    void search(const float* row, Answer& answer) {
        const Encoding& encoding = store_.encoding();
        exact_.prepare(kernels_, encoding.metric, row, encoding.dim);
        view_.prepare(kernels_, encoding, exact_);
        // Step 1, phase 1: compute and store the major scores; b is their argmax, ties by index.
        score_majors(answer.results.missing());
        // Step 2: one full score (k of them).
        for (const std::size_t position : best_) evaluate(position, answer);
        // Step 3, phase 2: all others in index order.
        evaluate_others(answer);
        // Step 4: the answer holds best_idx, and how many entries were fully evaluated.
        answer.stats.tightened = answer.stats.sifted = answer.stats.settled;
        answer.stats.scanned = store_.size();
    }

   private:
    void score_majors(std::size_t wanted) {
        const std::size_t major = store_.encoding().major;
        query_.assign(view_.values.begin(),
                      view_.values.begin() + static_cast<std::ptrdiff_t>(major));
        best_.clear();
        wanted = std::min(wanted, store_.size());
        for (std::size_t first = 0; first < store_.size(); first += kTileEntries) {
            const std::size_t entries = std::min(kTileEntries, store_.size() - first);
            const float* majors = store_.chunk(first / kChunkEntries).float_majors.data() +
                                  first % kChunkEntries * major;
            kernels_.score_f32(majors, entries, query_.data(), major, scores_.data() + first);
            request_.mask.hide(scores_.data() + first, first, entries, kLowestScore);
            if (wanted != 0) find_best(first, entries, wanted);
        }
        std::sort(best_.begin(), best_.end());
    }

    // Keeps the positions of the `wanted` best majors so far, in a heap with the worst in front.
    // The first blocks of a tile raise the bar for the others.
    void find_best(std::size_t first, std::size_t entries, std::size_t wanted) {
        const auto before = [this](std::size_t a, std::size_t b) {
            return scores_[a] > scores_[b] || (scores_[a] == scores_[b] && a < b);
        };
        for (std::size_t done = 0, next; done < entries; done = next) {
            next = std::min(entries, std::max(kBlockEntries, 2 * (first + done)));
            const bool full = best_.size() == wanted;
            for (const std::uint32_t i :
                 not_below(first + done, next - done, full ? scores_[best_.front()] : kLowestScore,
                           unused_)) {
                if (best_.size() == wanted) {
                    if (!before(i, best_.front())) continue;
                    if (!request_.mask.allows(i)) continue;
                    std::pop_heap(best_.begin(), best_.end(), before);
                    best_.back() = i;
                } else {
                    if (!request_.mask.allows(i)) continue;
                    best_.push_back(i);
                }
                std::push_heap(best_.begin(), best_.end(), before);
            }
        }
    }

    // The entries of a part of a tile whose stored score is not below the cut.
    std::span<const std::uint32_t> not_below(std::size_t first, std::size_t entries, float cut,
                                             float& skipped) {
        const std::size_t count =
            kernels_.sift_f32(scores_.data() + first, entries, cut,
                              static_cast<std::uint32_t>(first), left_.data(), &skipped);
        return {left_.data(), count};
    }

    void evaluate_others(Answer& answer) {
        for (const std::size_t position : best_) scores_[position] = kLowestScore;
        auto next_best = best_.begin();
        for (std::size_t first = 0; first < store_.size(); first += kTileEntries) {
            const TileNorms& tile =
                store_.chunk(first / kChunkEntries).tiles[first % kChunkEntries / kTileEntries];
            const double rounding = rounding_of_scores(tile);
            const double proved = view_.minor_norm * tile.tail + rounding;
            const double share = request_.soft ? std::min(proved, request_.beta + rounding)
                                               : std::max(proved, alpha_ + rounding);
            float skipped = kLowestScore;
            const std::span<const std::uint32_t> left =
                not_below(first, std::min(kTileEntries, store_.size() - first),
                          cut_of(answer.results.threshold(), share), skipped);
            for (std::size_t n = 0; n < left.size(); ++n) {
                if (n + kRowsAhead < left.size()) prefetch_row(left[n + kRowsAhead]);
                const std::size_t i = left[n];
                while (next_best != best_.end() && *next_best < i) ++next_best;
                if (next_best != best_.end() && *next_best == i) continue;
                if (!request_.mask.allows(i)) continue;
                if (scores_[i] + share < answer.results.threshold()) {
                    skipped = std::max(skipped, scores_[i]);
                } else {
                    evaluate(i, answer);
                }
            }
            if (skipped == kLowestScore) continue;
            answer.stats.skipped_bound = std::max(answer.stats.skipped_bound, skipped + proved);
        }
    }

    // float32 products and sums over K dimensions, and the rounding of the inputs to float32.
    double rounding_of_scores(const TileNorms& tile) const {
        const double steps = static_cast<double>(store_.encoding().major) + 4.0;
        const double tiny = steps * 0x1p-149;                       // products that underflow
        if (view_.major_norm * tile.norm > 1e37) return kInfinity;  // sums that may overflow
        return 1.01 * steps * kFloatEpsilon * view_.major_norm * tile.norm + tiny +
               view_.margin * tile.norm;
    }

    // A full score.
    void evaluate(std::size_t position, Answer& answer) {
        answer.results.offer({exact_.score(store_.row(position)), store_.id(position)});
        ++answer.stats.settled;
    }

    void prefetch_row(std::size_t position) const {
        const float* row = store_.row(position);
        for (std::size_t j = 0; j < store_.dim(); j += kLanes) prefetch(row + j);
    }

    const Store& store_;
    const Kernels& kernels_;
    double alpha_;
    const SearchRequest& request_;
    ExactQuery exact_;
    QueryView view_;
    std::vector<float> query_;         // its major, in float32
    std::vector<float> scores_;        // s_i
    std::vector<std::size_t> best_;    // b
    std::vector<std::uint32_t> left_;  // of a tile, behind the test
    float unused_ = kLowestScore;
};

}  // namespace

void search_paper(const Store& store, const Kernels& kernels, double alpha,
                  const SearchRequest& request, const float* queries, std::span<Answer> answers) {
    PaperSearch search(store, kernels, alpha, request);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        poll_interrupt();
        search.search(queries + i * store.dim(), answers[i]);
    }
}

}  // namespace hiernorm
