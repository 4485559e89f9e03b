// Bounds of one query of a flat scan that reads rows one by one, and what it settles.
//
// With u = 2^-24, L = ceil(dim / 16) and the sums of score_rows_f32, whose longest path has L + 4
// additions,
//
//   ip       |s - q.x| <= (L + 5) u |q| |x|                a product and L + 4 additions round
//   l2       |s - D| <= (L + 7) u D, D = |q - x|^2         differences, squares: none negative
//   cosine   |s / n - q.x / |x|| <= ((L + 5) + (L + 7) / 2 + 3) u |q|,   n = |x| in float32
//
// up to a factor of 1 / (1 - (L + 7) u); what underflows adds at most 2^-126 a dimension. kCare is
// more than that factor and the rounding of canonical scores. Where a sum could overflow, or a norm
// is too small for these bounds, rows get their canonical scores at once.
#include "search/flat_query.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hiernorm {
namespace flat {

float rounded_down(double value) {
    const auto near = static_cast<float>(value);
    return static_cast<double>(near) > value
               ? std::nextafter(near, -std::numeric_limits<float>::infinity())
               : near;
}

}  // namespace flat

namespace {

using namespace flat;

constexpr double kLargest = 0x1p120;  // of |q| |x|: no partial sum overflows
constexpr double kMostDims = 0x1p20;  // (L + 7) u stays below 0.005
constexpr std::size_t kReachedKept = 1024;

// No sum within the bounds is NaN, and NaN is above no cut.
constexpr float kSettled = std::numeric_limits<float>::quiet_NaN();

}  // namespace

void FlatQuery::begin(const Kernels& kernels, Metric metric, const float* row, std::size_t dim,
                      const Mask& mask, Answer& answer) {
    exact_.prepare(kernels, metric, row, dim);
    kernels_ = &kernels;
    metric_ = metric;
    dim_ = dim;
    mask_ = mask;
    answer_ = &answer;
    reached_.clear();
    most_reached_ = kReachedKept;
}

void FlatQuery::read(const Strip& strip, float* scores, double smallest, double largest) {
    count(strip);
    const double slack = slack_of(smallest, largest);
    if (!(slack < kInfinity)) {
        mask_.for_each(strip.first, strip.entries,
                       [&](std::size_t entry) { settle(strip, entry); });
        return;
    }
    if (!has_threshold()) seed(strip, scores);
    if (!has_threshold()) return;
    sift(strip, scores, slack);
}

void FlatQuery::finish() {
    forget_below_threshold();
    SearchStats& stats = answer_->stats;
    stats.sifted = stats.tightened = stats.settled = reached_.size();
    // What was skipped scores below the threshold of its time, which only rises.
    if (reached_.size() < stats.scanned) {
        stats.skipped_bound = std::nextafter(threshold(), -kInfinity);
    }
}

// What a score can differ by, as far as it does not depend on the threshold; infinite where the
// bounds do not hold.
double FlatQuery::slack_of(double smallest, double largest) const {
    const double unit = kCare * kUnit;
    const double underflow = kUnderflow * static_cast<double>(dim_);
    const double square = norm() * norm();
    if (static_cast<double>(dim_) > kMostDims) return kInfinity;
    switch (metric_) {
        case Metric::kL2: return underflow;
        case Metric::kInnerProduct: {
            const double both = norm() * std::sqrt(largest);
            return both < kLargest ? (lanes() + 5) * unit * both + underflow : kInfinity;
        }
        case Metric::kCosine: {
            const bool fits = smallest >= kLeastSquare && largest <= kMostSquare &&
                              square >= kLeastSquare && square <= kMostSquare;
            return fits ? (lanes() + 5 + (lanes() + 7) / 2 + 4) * unit * norm() : kInfinity;
        }
    }
    return kInfinity;
}

// An entry whose float32 score is below this scores below the threshold.
float FlatQuery::cut(double slack) const {
    switch (metric_) {
        case Metric::kL2: {
            const double farthest = std::max(0.0, 0.0 - threshold());
            return rounded_down(0.0 - farthest * (1 + (lanes() + 7) * kCare * kUnit) - slack);
        }
        case Metric::kInnerProduct: return rounded_down(threshold() - slack);
        case Metric::kCosine: return rounded_down(threshold() * norm() - slack);
    }
    return -std::numeric_limits<float>::infinity();
}

bool FlatQuery::settle(const Strip& strip, std::size_t entry) {
    const double score = exact_.score(strip.rows + entry * dim_);
    if (score < threshold()) return false;
    answer_->results.offer({score, strip.ids[entry]});
    if (reached_.size() >= most_reached_) {
        forget_below_threshold();
        most_reached_ = 2 * reached_.size() + kReachedKept;
    }
    reached_.push_back(score);
    return true;
}

void FlatQuery::forget_below_threshold() {
    const double least = threshold();
    std::erase_if(reached_, [&](double score) { return score < least; });
}

// The best float32 scores first: they give the first threshold.
void FlatQuery::seed(const Strip& strip, float* scores) {
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

void FlatQuery::sift(const Strip& strip, const float* scores, double slack) {
    float bar = cut(slack);
    ranked_.resize(strip.entries);
    const std::size_t found = kernels_->select_f32(scores, strip.entries, bar, ranked_.data());
    for (std::size_t i = 0; i < found; ++i) {
        const std::size_t entry = ranked_[i];
        if (!(scores[entry] >= bar)) continue;
        consider(strip, entry);
        bar = cut(slack);
    }
}

}  // namespace hiernorm
