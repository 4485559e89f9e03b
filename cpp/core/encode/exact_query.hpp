// The canonical side of a query: its values in float64, padded for the kernels.
#pragma once

#include <cstddef>
#include <vector>

#include "encode/encoding.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

class ExactQuery {
   public:
    void prepare(const Kernels& kernels, Metric metric, const float* row, std::size_t dim);

    // The canonical score of an entry's row; `row_norm` is its canonical norm, for cosine only.
    double score(const float* row) const;
    double score(const float* row, double row_norm) const;

    // The canonical product of the first `major` dimensions (over both norms for cosine).
    double major_product(const float* row, std::size_t major, double row_norm) const;

    const std::vector<double>& values() const { return values_; }
    double norm() const { return norm_; }

   private:
    const Kernels* kernels_ = nullptr;
    Metric metric_ = Metric::kInnerProduct;
    std::size_t dim_ = 0;
    double norm_ = 0.0;
    std::vector<double> values_;
};

// The canonical norm of a row: the root of its canonical product with itself.
double canonical_norm(const Kernels& kernels, const float* row, std::size_t dim);

}  // namespace hiernorm
