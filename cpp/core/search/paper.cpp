// Algorithm 1 of the paper, to the letter: float32 SoA majors, stored scores, index order.
//
//   paper       here
//   s_i         scores[i], float32
//   b           the best majors (k of them; the paper has k = 1)
//   s_best      results.threshold(), a canonical score
//   alpha       `share`: the nominal alpha or the measured product of minor norms, whichever is
//               larger, plus the rounding of s_i; beta in soft mode
// Ties are settled by id, so an entry is skipped only if its bound is below s_best.
#include <algorithm>

#include "search/engines.hpp"
#include "encode/query.hpp"

namespace hiernorm {
namespace {

constexpr double kFloatEpsilon = 0x1p-24;

class PaperSearch {
   public:
    PaperSearch(const Store& store, const Kernels& kernels, double alpha, const Job& job)
        : store_(store), kernels_(kernels), alpha_(alpha), job_(job) {}

    void run(const float* row, Answer& answer) {
        const Fit& fit = store_.fit();
        exact_.prepare(kernels_, fit.metric, row, fit.dim);
        view_.prepare(kernels_, fit, exact_);
        phase_1();
        const std::vector<std::size_t> best = best_majors(answer.results.missing());
        for (const std::size_t position : best) settle(position, answer);
        phase_2(best, answer);
        answer.report.tightened = answer.report.sifted = answer.report.settled;
        answer.report.scanned = store_.size();
    }

   private:
    // Step 1: compute and store s_i for all i.
    void phase_1() {
        const Fit& fit = store_.fit();
        const std::vector<float> query(view_.values.begin(), view_.values.begin() + fit.major);
        scores_.resize((store_.size() + kBlockEntries - 1) / kBlockEntries * kBlockEntries);
        for (std::size_t c = 0; c < store_.chunks(); ++c) {
            kernels_.score_f32(store_.chunk(c).float_majors.data(), store_.chunk_entries(c),
                               query.data(), fit.major, scores_.data() + c * kChunkEntries);
        }
    }

    // Step 1, end: b, ties by index; for k > 1 the k best majors.
    std::vector<std::size_t> best_majors(std::size_t count) const {
        count = std::min(count, store_.size());
        const auto before = [this](std::size_t a, std::size_t b) {
            return scores_[a] > scores_[b] || (scores_[a] == scores_[b] && a < b);
        };
        std::vector<std::size_t> best;
        for (std::size_t i = 0; i < store_.size() && count != 0; ++i) {
            if (best.size() == count && !before(i, best.front())) continue;
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

    // Step 3: every other entry in index order, skipped if s_i + alpha < s_best.
    void phase_2(const std::vector<std::size_t>& best, Answer& answer) {
        auto next_best = best.begin();
        for (std::size_t first = 0; first < store_.size(); first += kTileEntries) {
            const TileNorms& tile =
                store_.chunk(first / kChunkEntries).tiles[first % kChunkEntries / kTileEntries];
            const double rounding = rounding_of_scores(tile);
            const double proved = view_.minor_norm * tile.tail + rounding;
            const double share = job_.soft ? std::min(proved, job_.beta + rounding)
                                           : std::max(proved, alpha_ + rounding);
            const std::size_t last = std::min(first + kTileEntries, store_.size());
            for (std::size_t i = first; i < last; ++i) {
                if (next_best != best.end() && *next_best == i) {
                    ++next_best;
                } else if (scores_[i] + share < answer.results.threshold()) {
                    answer.report.skipped_bound =
                        std::max(answer.report.skipped_bound, scores_[i] + proved);
                } else {
                    settle(i, answer);
                }
            }
        }
    }

    // float32 products and sums over K dimensions, and the rounding of the inputs to float32.
    double rounding_of_scores(const TileNorms& tile) const {
        const double steps = static_cast<double>(store_.fit().major) + 4.0;
        const double tiny = steps * 0x1p-149;                       // products that underflow
        if (view_.major_norm * tile.norm > 1e37) return kInfinity;  // sums that may overflow
        return 1.01 * steps * kFloatEpsilon * view_.major_norm * tile.norm + tiny +
               view_.margin * tile.norm;
    }

    void settle(std::size_t position, Answer& answer) {
        answer.results.offer({exact_.score(store_.row(position)), store_.id(position)});
        ++answer.report.settled;
    }

    const Store& store_;
    const Kernels& kernels_;
    double alpha_;
    const Job& job_;
    ExactQuery exact_;
    QueryView view_;
    std::vector<float> scores_;
};

}  // namespace

void search_paper(const Store& store, const Kernels& kernels, double alpha, const Job& job,
                  const float* queries, std::span<Answer> answers) {
    PaperSearch search(store, kernels, alpha, job);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        search.run(queries + i * store.dim(), answers[i]);
    }
}

}  // namespace hiernorm
