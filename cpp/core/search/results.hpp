// The one order of results: score descending, then id ascending; and the set of best hits under it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hiernorm {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Hit {
    double score;
    std::int64_t id;
};

inline bool ranks_before(const Hit& a, const Hit& b) {
    return a.score > b.score || (a.score == b.score && a.id < b.id);
}

// The hits of one query so far: the k best, or all from a given score up.
class Results {
   public:
    void want_best(std::size_t k) {
        hits_.clear();
        k_ = k;
        fixed_threshold_ = -kInfinity;
    }
    void want_from(double threshold) {
        hits_.clear();
        k_ = std::numeric_limits<std::size_t>::max();
        fixed_threshold_ = threshold;
    }

    void offer(const Hit& hit) {
        if (hits_.size() < k_) {
            if (hit.score < fixed_threshold_) return;
            hits_.push_back(hit);
            if (wants_best()) std::push_heap(hits_.begin(), hits_.end(), ranks_before);
        } else if (ranks_before(hit, hits_.front())) {
            std::pop_heap(hits_.begin(), hits_.end(), ranks_before);
            hits_.back() = hit;
            std::push_heap(hits_.begin(), hits_.end(), ranks_before);
        }
    }

    bool wants_best() const { return k_ != std::numeric_limits<std::size_t>::max(); }
    std::size_t size() const { return hits_.size(); }

    // Entries needed before threshold() says anything.
    std::size_t missing() const { return wants_best() ? k_ - hits_.size() : 0; }

    // An entry whose score is below this is no hit. The worst of k hits is at the front (a heap).
    double threshold() const {
        return wants_best() && hits_.size() == k_ ? hits_.front().score : fixed_threshold_;
    }

    // Best first.
    const std::vector<Hit>& sorted() {
        std::sort(hits_.begin(), hits_.end(), ranks_before);
        return hits_;
    }

   private:
    std::size_t k_ = 0;
    double fixed_threshold_ = -kInfinity;
    std::vector<Hit> hits_;
};

}  // namespace hiernorm
