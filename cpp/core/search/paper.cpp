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
#include <algorithm>
#include <vector>

#include "encode/exact_query.hpp"
#include "encode/query_view.hpp"
#include "interrupt.hpp"
#include "search/engines.hpp"

namespace hiernorm {
namespace {

constexpr double kFloatEpsilon = 0x1p-24;

class PaperSearch {
   public:
    PaperSearch(const Store& store, const Kernels& kernels, double alpha,
                const SearchRequest& request)
        : store_(store), kernels_(kernels), alpha_(alpha), request_(request) {}

    void search(const float* row, Answer& answer) {
        const Encoding& encoding = store_.encoding();
        exact_.prepare(kernels_, encoding.metric, row, encoding.dim);
        view_.prepare(kernels_, encoding, exact_);
        // Step 1, phase 1: compute and store the major scores; b is their argmax, ties by index.
        score_majors();
        const std::vector<std::size_t> best = best_majors(answer.results.missing());
        // Step 2: one full score (k of them).
        for (const std::size_t position : best) evaluate(position, answer);
        // Step 3, phase 2: all others in index order.
        evaluate_others(best, answer);
        // Step 4: the answer holds best_idx, and how many entries were fully evaluated.
        answer.stats.tightened = answer.stats.sifted = answer.stats.settled;
        answer.stats.scanned = store_.size();
    }

   private:
    void score_majors() {
        const std::size_t major = store_.encoding().major;
        const std::vector<float> query(view_.values.begin(),
                                       view_.values.begin() + static_cast<std::ptrdiff_t>(major));
        scores_.resize(round_up(store_.size(), kBlockEntries));
        for (std::size_t c = 0; c < store_.chunks(); ++c) {
            kernels_.score_f32(store_.chunk(c).float_majors.data(), store_.chunk_entries(c),
                               query.data(), major, scores_.data() + c * kChunkEntries);
        }
    }

    // The positions of the `count` best majors among the entries that may be returned, in order.
    std::vector<std::size_t> best_majors(std::size_t count) const {
        count = std::min(count, store_.size());
        const auto before = [this](std::size_t a, std::size_t b) {
            return scores_[a] > scores_[b] || (scores_[a] == scores_[b] && a < b);
        };
        std::vector<std::size_t> best;
        for (std::size_t i = 0; i < store_.size() && count != 0; ++i) {
            if (best.size() == count && !before(i, best.front())) continue;
            if (!request_.mask.allows(i)) continue;
            if (best.size() == count) {
                std::pop_heap(best.begin(), best.end(), before);
                best.pop_back();
            }
            best.push_back(i);
            std::push_heap(best.begin(), best.end(), before);
        }
        std::sort(best.begin(), best.end());
        return best;
    }

    void evaluate_others(const std::vector<std::size_t>& best, Answer& answer) {
        auto next_best = best.begin();
        for (std::size_t first = 0; first < store_.size(); first += kTileEntries) {
            const TileNorms& tile =
                store_.chunk(first / kChunkEntries).tiles[first % kChunkEntries / kTileEntries];
            const double rounding = rounding_of_scores(tile);
            const double proved = view_.minor_norm * tile.tail + rounding;
            const double share = request_.soft ? std::min(proved, request_.beta + rounding)
                                               : std::max(proved, alpha_ + rounding);
            const auto visit = [&](std::size_t i) {
                if (next_best != best.end() && *next_best == i) {
                    ++next_best;
                } else if (scores_[i] + share < answer.results.threshold()) {
                    answer.stats.skipped_bound =
                        std::max(answer.stats.skipped_bound, scores_[i] + proved);
                } else {
                    evaluate(i, answer);
                }
            };
            const std::size_t last = std::min(first + kTileEntries, store_.size());
            if (request_.mask.all()) {
                for (std::size_t i = first; i < last; ++i) visit(i);
            } else {
                request_.mask.for_each(first, last - first,
                                       [&](std::size_t i) { visit(first + i); });
            }
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

    const Store& store_;
    const Kernels& kernels_;
    double alpha_;
    const SearchRequest& request_;
    ExactQuery exact_;
    QueryView view_;
    std::vector<float> scores_;
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
