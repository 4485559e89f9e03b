// Tries cones on paper before entries are moved.
#include "cell_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cone.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kMostProbes = 32;
constexpr std::size_t kLeastProbes = 8;
constexpr std::size_t kComparisons = std::size_t{1} << 22;  // of all probes with all entries
constexpr std::size_t kBlocks = 1024;                       // sampled
constexpr std::size_t kRounds = 20;
constexpr std::size_t kNeighbours = 4;  // by their cones' vectors, among which the nearest is

double product(const float* a, const float* b, std::size_t count) {
    double sum = 0.0;
    for (std::size_t j = 0; j < count; ++j) sum += double{a[j]} * double{b[j]};
    return sum;
}

class Trial {
   public:
    Trial(const Grouping& grouping, const ConeVectors& vectors, const GroupingData& data)
        : vectors_(vectors), data_(data), layout_{vectors.dims} {
        for (std::size_t i = 0; i < data.count; ++i) {
            norm_ = std::max(norm_, vectors.norms[i]);
            tail_ = std::max(tail_, tail_of(i));
        }
        const std::size_t blocks = (data.count - grouping.lead) / kBlockEntries;
        const std::size_t sampled = std::min(blocks, kBlocks);
        std::vector<float> members(kBlockEntries * vectors.dims);
        cones_.resize(sampled * layout_.slots());
        for (std::size_t b = 0; b < sampled; ++b) {
            const std::size_t first = grouping.lead + b * blocks / sampled * kBlockEntries;
            for (std::size_t i = 0; i < kBlockEntries; ++i) {
                const float* unit =
                    vectors_.units.data() + grouping.order[first + i] * layout_.dims;
                for (std::size_t j = 0; j < layout_.dims; ++j) {
                    members[j * kBlockEntries + i] = unit[j];
                }
            }
            enclose(layout_, members.data(), 1, kRounds, cones_.data() + b * layout_.slots());
        }
    }

    // The share of the blocks whose cone can hold the probe's neighbour.
    double read_share(std::size_t probe) {
        const double tail = data_.entry_tails ? 0.0 : tail_of(probe) * tail_;
        const double most = vectors_.norms[probe] * norm_;
        const double need = most > 0.0 ? (neighbour_score(probe) - tail) / most : 0.0;
        if (!(need > 0.0)) return 1.0;
        const double cosine = std::min(need, 1.0);
        const double sine = std::sqrt(1.0 - cosine * cosine);
        const float* unit = vectors_.units.data() + probe * layout_.dims;
        std::size_t read = 0, cones = 0;
        for (auto cone = cones_.begin(); cone != cones_.end(); ++cones) {
            double score = -cosine * cone[layout_.cosine_slot()] + sine * cone[layout_.sine_slot()];
            for (std::size_t j = 0; j < layout_.dims; ++j) score += double{unit[j]} * cone[j];
            read += score >= 0.0 ? 1 : 0;
            cone += static_cast<std::ptrdiff_t>(layout_.slots());
        }
        return cones == 0 ? 1.0 : static_cast<double>(read) / static_cast<double>(cones);
    }

   private:
    const float* row(std::size_t i) const { return data_.rows + i * data_.dim; }

    double scale(std::size_t i) const {
        return data_.cosine ? 1.0 / std::sqrt(product(row(i), row(i), data_.dim)) : 1.0;
    }

    double tail_of(std::size_t i) const {
        if (data_.entry_tails) return 0.0;
        const double squares = data_.cosine ? 1.0 : product(row(i), row(i), data_.dim);
        return std::sqrt(std::max(0.0, squares - vectors_.norms[i] * vectors_.norms[i]));
    }

    double neighbour_score(std::size_t probe) {
        const float* unit = vectors_.units.data() + probe * layout_.dims;
        nearest_.clear();
        for (std::size_t i = 0; i < data_.count; ++i) {
            if (i == probe) continue;
            const double score =
                product(unit, vectors_.units.data() + i * layout_.dims, layout_.dims) *
                vectors_.norms[i];
            if (nearest_.size() == kNeighbours && score <= nearest_.back().score) continue;
            if (nearest_.size() == kNeighbours) nearest_.pop_back();
            auto place = nearest_.end();
            while (place != nearest_.begin() && (place - 1)->score < score) --place;
            nearest_.insert(place, {score, i});
        }
        double best = -HUGE_VAL;
        for (const Near& near : nearest_) {
            best = std::max(best, product(row(probe), row(near.entry), data_.dim) *
                                      scale(near.entry) * scale(probe));
        }
        return best;
    }

    struct Near {
        double score;
        std::size_t entry;
    };

    const ConeVectors& vectors_;
    const GroupingData& data_;
    ConeLayout layout_;
    double norm_ = 0.0;
    double tail_ = 0.0;
    std::vector<std::int8_t> cones_;
    std::vector<Near> nearest_;
};

}  // namespace

double estimate_read_share(const Grouping& grouping, const ConeVectors& vectors,
                           const GroupingData& data) {
    Trial trial(grouping, vectors, data);
    const std::size_t probes =
        std::min(data.count, std::clamp(kComparisons / data.count, kLeastProbes, kMostProbes));
    double share = 0.0;
    for (std::size_t p = 0; p < probes; ++p) share += trial.read_share(p * data.count / probes);
    return probes == 0 ? 0.0 : share / static_cast<double>(probes);
}

}  // namespace hiernorm
