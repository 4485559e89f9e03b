// The one order of results: score descending, then id ascending; and the set of best hits under it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace hiernorm {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Hit {
    double score;
    std::int64_t id;
};

// An object, not a function: heaps and sorts take it inline.
inline constexpr auto ranks_before = [](const Hit& a, const Hit& b) {
    return a.score > b.score || (a.score == b.score && a.id < b.id);
};

// The hits of one query so far: the k best, in memory of the caller, or all from a given score up.
class Results {
   public:
    void want_best(std::span<Hit> room) {
        room_ = room;
        best_ = 0;
        found_.clear();
        range_ = false;
        fixed_threshold_ = -kInfinity;
    }
    void want_from(double threshold) {
        found_.clear();
        range_ = true;
        fixed_threshold_ = threshold;
    }

    void offer(const Hit& hit) {
        if (range_) {
            if (hit.score >= fixed_threshold_) found_.push_back(hit);
        } else if (best_ < room_.size()) {
            room_[best_++] = hit;
            std::push_heap(room_.begin(), heap_end(), ranks_before);
        } else if (best_ != 0 && ranks_before(hit, room_.front())) {
            std::pop_heap(room_.begin(), heap_end(), ranks_before);
            room_[best_ - 1] = hit;
            std::push_heap(room_.begin(), heap_end(), ranks_before);
        }
    }

    bool wants_best() const { return !range_; }
    std::size_t best_wanted() const { return range_ ? 0 : room_.size(); }
    std::size_t size() const { return range_ ? found_.size() : best_; }

    // Entries needed before threshold() says anything.
    std::size_t missing() const { return range_ ? 0 : room_.size() - best_; }

    // An entry whose score is below this is no hit. The worst of k hits is at the front (a heap).
    double threshold() const {
        return !range_ && best_ != 0 && best_ == room_.size() ? room_.front().score
                                                              : fixed_threshold_;
    }

    // In any order.
    std::span<const Hit> hits() const {
        return range_ ? std::span<const Hit>(found_) : std::span<const Hit>(room_.first(best_));
    }

    // Best first; nothing can be offered after it.
    std::span<const Hit> sorted() {
        const std::span<Hit> hits = range_ ? std::span(found_) : room_.first(best_);
        std::sort(hits.begin(), hits.end(), ranks_before);
        return hits;
    }

   private:
    std::span<Hit>::iterator heap_end() {
        return room_.begin() + static_cast<std::ptrdiff_t>(best_);
    }

    bool range_ = false;
    double fixed_threshold_ = -kInfinity;
    std::span<Hit> room_;   // for the k best
    std::size_t best_ = 0;  // of them, so far
    std::vector<Hit> found_;
};

}  // namespace hiernorm
