// One query of a flat scan: what its float32 scores can be off by, and its answer so far.
#pragma once

#include <cstdint>
#include <vector>

#include "encode/exact_query.hpp"
#include "search/request.hpp"

namespace hiernorm {

namespace flat {
inline constexpr double kUnit = 0x1p-24;
inline constexpr double kCare = 1.02;
inline constexpr double kUnderflow = 0x1p-126;  // of a dimension, with or without subnormals
// Of |x|^2 and |q|^2 for cosine: what underflows is far less than an ulp of the product.
inline constexpr double kLeastSquare = 0x1p-80;
inline constexpr double kMostSquare = 0x1p100;

float rounded_down(double value);
}  // namespace flat

// Consecutive rows of a chunk.
struct Strip {
    const float* rows;
    const std::int64_t* ids;
    std::size_t first;  // position of the first entry in the store
    std::size_t entries;
    double largest_norm;  // of its tile; infinite if it was not measured
};

class FlatQuery {
   public:
    void begin(const Kernels& kernels, Metric metric, const float* row, std::size_t dim,
               const Mask& mask, Answer& answer);

    // `scores` are those of score_rows_f32 or distance_rows_f32 for the strip's rows, whole blocks
    // of them; `smallest` and `largest` bound their squared norms (ip, cosine).
    void read(const Strip& strip, float* scores, double smallest, double largest);

    // The canonical score of an entry that may be a hit, if the mask lets it through. Whether it
    // reached the threshold.
    bool consider(const Strip& strip, std::size_t entry) {
        return mask_.allows(strip.first + entry) && settle(strip, entry);
    }
    void count(const Strip& strip) {
        answer_->stats.scanned += mask_.count(strip.first, strip.entries);
    }

    // Writes the counts. They depend on canonical scores alone, and so on no batch.
    void finish();

    double norm() const { return exact_.norm(); }
    double threshold() const { return answer_->results.threshold(); }
    std::size_t hits_wanted() const { return answer_->results.best_wanted(); }
    bool has_threshold() const { return answer_->results.missing() == 0; }

   private:
    double lanes() const { return static_cast<double>(divide_up(dim_, kLanes)); }
    double slack_of(double smallest, double largest) const;
    float cut(double slack) const;
    bool settle(const Strip& strip, std::size_t entry);
    void seed(const Strip& strip, float* scores);
    void sift(const Strip& strip, const float* scores, double slack);
    void forget_below_threshold();

    ExactQuery exact_;
    const Kernels* kernels_ = nullptr;
    Metric metric_ = Metric::kInnerProduct;
    std::size_t dim_ = 0;
    Mask mask_;
    Answer* answer_ = nullptr;
    std::vector<double> reached_;  // scores that were not below the threshold of their time
    std::size_t most_reached_ = 0;
    std::vector<std::uint32_t> ranked_;
};

}  // namespace hiernorm
