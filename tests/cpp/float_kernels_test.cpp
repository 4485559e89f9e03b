// The floating-point kernels: the canonical product and the paper's scores, bit for bit.
#include <cfloat>
#include <limits>

#include "check.hpp"
#include "expectations.hpp"
#include "float_bits.hpp"
#include "kernels/kernels.hpp"
#include "random.hpp"

namespace hiernorm::testing {
namespace {

// Values of a kind; kind 0 mixes all others, so that sums cancel and absorb.
float value_of(Random& random, int kind) {
    const float sign = random.coin() ? 1.0f : -1.0f;
    switch (kind == 0 ? random.between(1, 6) : kind) {
        case 1: return static_cast<float>(random.normal());
        case 2:
            return sign * std::numeric_limits<float>::denorm_min() *
                   static_cast<float>(random.between(1, 1000));
        case 3: return sign * FLT_MAX;
        case 4: return sign * 0.0f;
        case 5: return sign * FLT_MIN;
        default:
            return sign * std::ldexp(1.0f + static_cast<float>(random.uniform()),
                                     random.between(-140, 120));
    }
}

TEST(dot_f32_has_the_bits_of_the_canonical_product) {
    Random random(5);
    std::vector<std::size_t> dims{128, 1536};
    for (std::size_t dim = 1; dim <= 70; ++dim) dims.push_back(dim);
    for (const std::size_t dim : dims) {
        for (int kind = 0; kind <= 6; ++kind) {
            for (int repeat = 0; repeat < 4; ++repeat) {
                std::vector<float> query(dim), row(dim);  // no room behind the row
                for (float& value : query) value = value_of(random, repeat < 2 ? kind : 1);
                for (float& value : row) value = value_of(random, kind);
                std::vector<double> padded((dim + kLanes - 1) / kLanes * kLanes);
                std::copy(query.begin(), query.end(), padded.begin());
                const double expected = plain_dot(query.data(), row.data(), dim);
                for (const Kernels* kernels : available_kernels()) {
                    const Context context(kernels->name, ", dim ", dim, ", kind ", kind);
                    const double got = kernels->dot_f32(padded.data(), row.data(), dim);
                    if (!same_bits(got, expected)) CHECK_EQUAL(got, expected);
                    CHECK(same_bits(got, expected));
                }
            }
        }
    }
}

TEST(dot_rows_f32_has_the_bits_of_the_canonical_product) {
    Random random(6);
    for (const std::size_t dim : {1, 16, 31, 48, 384}) {
        for (const std::size_t rows : {1, 2, 3, 8, 13}) {
            for (const std::size_t count : {1, 2, 3, 4, 5, 9}) {
                const std::size_t padded = (dim + kLanes - 1) / kLanes * kLanes;
                std::vector<float> matrix(rows * dim), query(count * dim);
                for (float& value : matrix) value = value_of(random, 0);
                for (float& value : query) value = value_of(random, 1);
                std::vector<double> queries(count * padded);
                std::vector<const double*> from;
                for (std::size_t q = 0; q < count; ++q) {
                    const float* values = query.data() + q * dim;
                    std::copy(values, values + dim,
                              queries.begin() + static_cast<long>(q * padded));
                    from.push_back(queries.data() + q * padded);
                }
                for (const Kernels* kernels : available_kernels()) {
                    const Context context(kernels->name, ", dim ", dim, ", queries ", count);
                    std::vector<double> products(count * rows);
                    std::vector<double*> to;
                    for (std::size_t q = 0; q < count; ++q) to.push_back(&products[q * rows]);
                    kernels->dot_rows_f32(from.data(), count, matrix.data(), rows, dim, to.data());
                    for (std::size_t i = 0; i < products.size(); ++i) {
                        CHECK(
                            same_bits(products[i], plain_dot(query.data() + i / rows * dim,
                                                             matrix.data() + i % rows * dim, dim)));
                    }
                }
            }
        }
    }
}

TEST(sift_f32_keeps_what_is_not_below_the_cut) {
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    Random random(8);
    for (const std::size_t entries : {1, 15, 16, 17, 100, 1000}) {
        for (const int kind : {0, 1, 4}) {
            std::vector<float> scores(entries);
            for (float& score : scores) score = value_of(random, kind);
            if (entries > 20) {
                scores[3] = std::numeric_limits<float>::quiet_NaN();
                scores[17] = kInfinite;
                scores[18] = -kInfinite;
            }
            for (const float cut : {-kInfinite, -1.0f, -0.0f, 0.0f, 0.5f, scores[0], kInfinite}) {
                for (const float before : {-kInfinite, 0.25f}) {
                    std::vector<std::uint32_t> expected;
                    float largest = before;
                    for (std::size_t i = 0; i < entries; ++i) {
                        if (scores[i] < cut) {
                            largest = std::max(largest, scores[i]);
                        } else {
                            expected.push_back(70u + static_cast<std::uint32_t>(i));
                        }
                    }
                    for (const Kernels* kernels : available_kernels()) {
                        const Context context(kernels->name, ", cut ", cut, ", kind ", kind);
                        std::vector<std::uint32_t> out(entries);
                        float skipped = before;
                        out.resize(kernels->sift_f32(scores.data(), entries, cut, 70u, out.data(),
                                                     &skipped));
                        CHECK(out == expected);
                        CHECK_EQUAL(skipped, largest);
                    }
                }
            }
        }
    }
}

TEST(dot_f32_does_not_care_how_a_row_is_aligned) {
    Random random(6);
    constexpr std::size_t kDim = 53;
    std::vector<double> query((kDim + kLanes - 1) / kLanes * kLanes);
    std::vector<float> narrow(kDim), rows(kDim + 16);
    for (std::size_t j = 0; j < kDim; ++j) query[j] = narrow[j] = value_of(random, 1);
    for (float& value : rows) value = value_of(random, 1);
    for (const Kernels* kernels : available_kernels()) {
        for (std::size_t shift = 0; shift < 16; ++shift) {
            const Context context(kernels->name, ", shift ", shift);
            CHECK(same_bits(kernels->dot_f32(query.data(), rows.data() + shift, kDim),
                            plain_dot(narrow.data(), rows.data() + shift, kDim)));
        }
    }
}

// Sums of squares run in 8 lanes.
struct PlainSquares {
    double lanes[8] = {};
    void add(std::size_t j, double value) { lanes[j % 8] += value * value; }
    double total() const {
        return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
               ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    }
};

TEST(squares_f64_has_the_same_bits_in_every_family) {
    Random random(8);
    for (std::size_t count = 0; count <= 70; ++count) {
        for (int kind = 0; kind <= 6; ++kind) {
            std::vector<double> values(count);
            PlainSquares expected;
            for (std::size_t j = 0; j < count; ++j) {
                values[j] = random.uniform() * value_of(random, kind);
                expected.add(j, values[j]);
            }
            for (const Kernels* kernels : available_kernels()) {
                const Context context(kernels->name, ", count ", count, ", kind ", kind);
                CHECK(same_bits(kernels->squares_f64(values.data(), count), expected.total()));
            }
        }
    }
}

TEST(code_f64_rounds_to_the_nearest_even_code_in_every_family) {
    Random random(9);
    for (std::size_t count = 0; count <= 70; ++count) {
        for (const double step : {1.0, 0.1, 0x1p-160, 1e38, 3e-44}) {
            for (const bool halfway : {false, true}) {
                std::vector<double> values(count);
                std::vector<std::int8_t> expected(count), codes(count);
                PlainSquares squares;
                std::int32_t sum = 0;
                for (std::size_t j = 0; j < count; ++j) {
                    values[j] = halfway ? step * (random.between(-127, 126) + 0.5)
                                        : step * 127.0 * (2.0 * random.uniform() - 1.0);
                    const double code = std::nearbyint(values[j] * (1.0 / step));
                    expected[j] = static_cast<std::int8_t>(code);
                    squares.add(j, values[j] - code * step);
                    sum += expected[j];
                }
                for (const Kernels* kernels : available_kernels()) {
                    const Context context(kernels->name, ", count ", count, ", step ", step);
                    std::int32_t code_sum = -1;
                    const double got =
                        kernels->code_f64(values.data(), count, step, codes.data(), &code_sum);
                    CHECK(codes == expected);
                    CHECK_EQUAL(code_sum, sum);
                    CHECK(same_bits(got, squares.total()));
                }
            }
        }
    }
}

TEST(score_f32_rounds_products_and_sums_apart_in_dimension_order) {
    Random random(7);
    for (const std::size_t dims : {1, 2, 3, 7, 8, 15, 16, 31, 128}) {
        for (const std::size_t entries : {1, 15, 16, 17, 100}) {
            for (int kind = 0; kind <= 6; ++kind) {
                const std::size_t room =
                    (entries + kBlockEntries - 1) / kBlockEntries * kBlockEntries;
                std::vector<float> blocks(room * dims), query(dims);
                for (float& value : blocks) value = value_of(random, kind);
                for (float& value : query) value = value_of(random, kind);
                for (const Kernels* kernels : available_kernels()) {
                    const Context context(kernels->name, ", dims ", dims, ", entries ", entries,
                                          ", kind ", kind);
                    std::vector<float> scores(room);
                    kernels->score_f32(blocks.data(), entries, query.data(), dims, scores.data());
                    for (std::size_t i = 0; i < entries; ++i) {
                        float expected = 0.0f;
                        for (std::size_t j = 0; j < dims; ++j) {
                            const float* block =
                                blocks.data() + i / kBlockEntries * kBlockEntries * dims;
                            const float product =
                                query[j] * block[j * kBlockEntries + i % kBlockEntries];
                            expected += product;
                        }
                        CHECK(same_bits_or_nan(scores[i], expected));
                    }
                }
            }
        }
    }
}

TEST(kernels_are_chosen_by_name) {
    for (const Kernels* kernels : available_kernels()) {
        use_kernels(kernels->name);
        CHECK(&active_kernels() == kernels);
    }
    CHECK(available_kernels().front()->name == "scalar");
    CHECK(&active_kernels() == available_kernels().back());
    check_throws<std::exception>([] { use_kernels("abacus"); },
                                 "instruction set 'abacus' cannot run here; available: scalar");
    CHECK(&active_kernels() == available_kernels().back());
}

}  // namespace
}  // namespace hiernorm::testing
