// Tries cells on paper before entries are moved.
#include "cell_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hiernorm {
namespace {

constexpr std::size_t kProbes = 32;
constexpr std::size_t kNeighbours = 4;  // by the major, among which the nearest is sought

double product(const float* a, const float* b, std::size_t count) {
    double sum = 0.0;
    for (std::size_t j = 0; j < count; ++j) sum += double{a[j]} * double{b[j]};
    return sum;
}

struct Norms {
    double scale;  // 1 / |x| for the cosine, else 1
    double major;
    double tail;
};

struct Cap {
    double cosine = 1.0;
    double norm = 0.0;
    double tail = 0.0;
};

class Trial {
   public:
    Trial(const Grouping& grouping, const GroupingData& data)
        : grouping_(grouping), data_(data), norms_(data.count) {
        for (std::size_t i = 0; i < data.count; ++i) norms_[i] = norms_of(i);
        std::size_t place = 0;
        for (std::size_t c = 0; c < grouping.sizes.size(); ++c) {
            const std::size_t end = place + grouping.sizes[c];
            caps_.push_back(cap_of(c, place, end));
            place = end;
        }
    }

    // The share of the entries in cells whose bound reaches the probe's neighbour.
    double read_share(std::size_t probe) {
        const double threshold = neighbour_score(probe);
        const Norms& norms = norms_[probe];
        std::size_t read = 0;
        for (std::size_t c = 0; c < caps_.size(); ++c) {
            const Cap& cap = caps_[c];
            double cosine = 0.0;
            if (norms.major > 0.0) {
                cosine =
                    product(direction(c), major(probe), data_.major) * norms.scale / norms.major;
            }
            cosine = std::clamp(cosine, -1.0, 1.0);
            double within = 1.0;
            if (cosine < cap.cosine) {
                within = std::max(
                    0.0, cosine * cap.cosine +
                             std::sqrt((1.0 - cosine * cosine) * (1.0 - cap.cosine * cap.cosine)));
            }
            if (norms.major * cap.norm * within + norms.tail * cap.tail >= threshold) {
                read += grouping_.sizes[c];
            }
        }
        return static_cast<double>(read) / static_cast<double>(data_.count);
    }

   private:
    const float* major(std::size_t i) const { return data_.majors + i * data_.stride; }
    const float* row(std::size_t i) const { return data_.rows + i * data_.dim; }
    const float* direction(std::size_t cell) const {
        return grouping_.directions.data() + cell * data_.major;
    }

    Norms norms_of(std::size_t i) const {
        const double squares = product(row(i), row(i), data_.dim);
        const double major_squares = product(major(i), major(i), data_.major);
        const double scale = data_.cosine && squares > 0.0 ? 1.0 / std::sqrt(squares) : 1.0;
        return {scale, scale * std::sqrt(major_squares),
                scale * std::sqrt(std::max(0.0, squares - major_squares))};
    }

    Cap cap_of(std::size_t cell, std::size_t first, std::size_t end) const {
        Cap cap;
        for (std::size_t place = first; place < end; ++place) {
            const std::size_t i = grouping_.order[place];
            const Norms& norms = norms_[i];
            cap.norm = std::max(cap.norm, norms.major);
            cap.tail = std::max(cap.tail, norms.tail);
            if (norms.major > 0.0) {
                cap.cosine = std::min(cap.cosine, product(direction(cell), major(i), data_.major) *
                                                      norms.scale / norms.major);
            }
        }
        return cap;
    }

    double neighbour_score(std::size_t probe) {
        nearest_.clear();
        for (std::size_t i = 0; i < data_.count; ++i) {
            if (i == probe) continue;
            const double score = product(major(probe), major(i), data_.major) * norms_[i].scale;
            if (nearest_.size() == kNeighbours && score <= nearest_.back().score) continue;
            if (nearest_.size() == kNeighbours) nearest_.pop_back();
            auto place = nearest_.end();
            while (place != nearest_.begin() && (place - 1)->score < score) --place;
            nearest_.insert(place, {score, i});
        }
        double best = -HUGE_VAL;
        for (const Near& near : nearest_) {
            best = std::max(best, product(row(probe), row(near.entry), data_.dim) *
                                      norms_[near.entry].scale * norms_[probe].scale);
        }
        return best;
    }

    struct Near {
        double score;
        std::size_t entry;
    };

    const Grouping& grouping_;
    const GroupingData& data_;
    std::vector<Norms> norms_;
    std::vector<Cap> caps_;
    std::vector<Near> nearest_;
};

}  // namespace

double estimate_read_share(const Grouping& grouping, const GroupingData& data) {
    Trial trial(grouping, data);
    const std::size_t probes = std::min(kProbes, data.count);
    double share = 0.0;
    for (std::size_t p = 0; p < probes; ++p) share += trial.read_share(p * data.count / probes);
    return probes == 0 ? 0.0 : share / static_cast<double>(probes);
}

}  // namespace hiernorm
