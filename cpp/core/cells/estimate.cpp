// Tries cones on paper before entries are moved.
#include "cells/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cells/cone.hpp"
#include "cells/sphere_kmeans.hpp"
#include "encode/lift.hpp"
#include "interrupt.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kMostProbes = 32;
constexpr std::size_t kLeastProbes = 8;
constexpr std::size_t kComparisons = std::size_t{1} << 22;  // of all probes with all entries
constexpr std::size_t kBlocks = 1024;                       // sampled
constexpr std::size_t kRounds = 20;
constexpr std::size_t kNeighbours = 4;  // by their cones' vectors, among which the nearest is

template <class T>
double product(const T* a, const float* b, std::size_t count) {
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
            tail_ = std::max(tail_, vectors.tails[i]);
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
        const double size = ask(probe);
        const double tail = doubled() * vectors_.tails[probe] * tail_;
        const double most = size * norm_;
        const double need = most > 0.0 ? (neighbour_score(probe) - tail) / most : 0.0;
        if (!(need > 0.0)) return 1.0;
        const double cosine = std::min(need, 1.0);
        const double sine = std::sqrt(1.0 - cosine * cosine);
        std::size_t read = 0, cones = 0;
        for (auto cone = cones_.begin(); cone != cones_.end(); ++cones) {
            double score = -cosine * cone[layout_.cosine_slot()] + sine * cone[layout_.sine_slot()];
            for (std::size_t j = 0; j < layout_.dims; ++j) score += query_[j] * cone[j];
            read += score >= 0.0 ? 1 : 0;
            cone += static_cast<std::ptrdiff_t>(layout_.slots());
        }
        return cones == 0 ? 1.0 : static_cast<double>(read) / static_cast<double>(cones);
    }

   private:
    const float* row(std::size_t i) const { return data_.rows + i * data_.encoding.row_dim(); }
    double doubled() const { return data_.encoding.lift_dims() != 0 ? 2.0 : 1.0; }

    // Makes the probe the query, as a unit vector, and returns its norm; see lift.hpp.
    double ask(std::size_t probe) {
        query_.resize(layout_.dims);
        for (std::size_t j = 0; j < layout_.dims; ++j) {
            query_[j] = doubled() * vectors_.norms[probe] *
                        double{vectors_.units[probe * layout_.dims + j]};
        }
        if (data_.encoding.lift_dims() != 0)
            query_[data_.encoding.major - 1] = data_.encoding.weight;
        double squares = 0.0;
        for (const double value : query_) squares += value * value;
        make_unit(query_.data(), layout_.dims);
        return std::sqrt(squares);
    }

    // In the units of bounds.
    double score_of(std::size_t probe, std::size_t entry) const {
        const std::size_t dim = data_.encoding.row_dim();
        const double score = product(row(probe), row(entry), dim);
        const double squares = product(row(entry), row(entry), dim);
        switch (data_.encoding.metric) {
            case Metric::kCosine:
                return score / std::sqrt(squares * product(row(probe), row(probe), dim));
            case Metric::kL2:
                return 2.0 * score + data_.encoding.weight * lift_of(data_.encoding, squares);
            default: return score;
        }
    }

    double neighbour_score(std::size_t probe) {
        nearest_.clear();
        for (std::size_t i = 0; i < data_.count; ++i) {
            if (i == probe) continue;
            const double score =
                product(query_.data(), vectors_.units.data() + i * layout_.dims, layout_.dims) *
                vectors_.norms[i];
            if (nearest_.size() == kNeighbours && score <= nearest_.back().score) continue;
            if (nearest_.size() == kNeighbours) nearest_.pop_back();
            auto place = nearest_.end();
            while (place != nearest_.begin() && (place - 1)->score < score) --place;
            nearest_.insert(place, {score, i});
        }
        double best = -HUGE_VAL;
        for (const Near& near : nearest_) best = std::max(best, score_of(probe, near.entry));
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
    std::vector<double> query_;
    std::vector<Near> nearest_;
};

}  // namespace

double estimate_read_share(const Grouping& grouping, const ConeVectors& vectors,
                           const GroupingData& data) {
    Trial trial(grouping, vectors, data);
    const std::size_t probes =
        std::min(data.count, std::clamp(kComparisons / data.count, kLeastProbes, kMostProbes));
    double share = 0.0;
    for (std::size_t p = 0; p < probes; ++p) {
        poll_interrupt();
        share += trial.read_share(p * data.count / probes);
    }
    return probes == 0 ? 0.0 : share / static_cast<double>(probes);
}

}  // namespace hiernorm
