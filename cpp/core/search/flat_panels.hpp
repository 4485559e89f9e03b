// The flat scan of a group of queries, by panels of bytes or of floats.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/flat_query.hpp"
#include "store/store.hpp"

namespace hiernorm {

class FlatPanels {
   public:
    // `rows` are the values of the queries.
    void begin(const Store& store, const Kernels& kernels, Metric metric, const float* rows,
               std::span<FlatQuery> queries);

    // Settles the entries of a strip that can be hits; false, and nothing is done, where the bounds
    // do not hold.
    bool read(const Strip& strip);

   private:
    // A query's side of the bounds.
    struct Side {
        double norm = 0.0;      // of its values, shifted
        double residual = 0.0;  // of their codes
        double start = 0.0;     // of its products: q . centre (ip), -|q - centre|^2 / 2 (l2)
        std::int32_t code_sum = 0;
    };
    // What bounds the rows of a strip.
    struct Extent {
        double norm = 0.0;      // the largest, shifted
        double residual = 0.0;  // of their codes
        float largest = 0.0f;   // magnitude of a value
    };

    void choose_centre(const Store& store);
    void prepare_queries(const float* rows);
    void code_queries(const std::vector<float>& shifted, float largest);
    bool pack(const Strip& strip);
    double wanted(const FlatQuery& query, const Side& side) const;
    double rounding(const Side& side) const;
    bool fits_bytes() const;
    void sift_floats(const Strip& strip);
    void sift_bytes(const Strip& strip);
    void settle(const Strip& strip, std::size_t first, std::size_t found);

    const Kernels* kernels_ = nullptr;
    Metric metric_ = Metric::kInnerProduct;
    std::size_t dim_ = 0;
    std::span<FlatQuery> queries_;
    bool bounded_ = false;
    bool bytes_ = false;
    double centre_norm_ = 0.0;
    float query_step_ = 0.0f;
    std::uint64_t read_ = 0;     // pairs
    std::uint64_t unclear_ = 0;  // of those, settled though they were no hits of their time
    std::uint64_t most_unclear_ = 0;
    Extent extent_;
    std::vector<Side> sides_;
    std::vector<float> centre_, packed_, panels_, squares_, float_offsets_, float_cuts_;
    std::vector<std::int8_t> packed_codes_;
    std::vector<std::uint8_t> codes_;
    std::vector<std::int32_t> offsets_, cuts_;
    std::vector<SiftedPair> pairs_;
};

}  // namespace hiernorm
