// Sets of byte vectors, and their matches.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "float_environment.hpp"
#include "matching/match_bytes.hpp"
#include "matching/match_rows.hpp"

using namespace nanobind::literals;

namespace hiernorm {
namespace {

void make_byte_set(ByteSet* self, const Matrix<std::uint8_t>& rows,
                   const Matrix<std::int16_t>& codes, int shift) {
    if (codes.shape(0) != rows.shape(0) || codes.shape(1) != kSlots) {
        throw std::invalid_argument("codes must have the shape (n, " + std::to_string(kSlots) +
                                    "), n the number of rows");
    }
    new (self) ByteSet(rows.data(), rows.shape(0), rows.shape(1), codes.data(), shift);
}

// pairs (m, 2), number of products.
nb::tuple match(const ByteSet& a, const ByteSet& b, const Vector<std::int32_t>& limits,
                std::int32_t least, bool cross_check, std::size_t threads) {
    if (limits.shape(0) == 0) throw std::invalid_argument("limits must not be empty");
    ByteMatches matches;
    {
        const LongWork work;
        matches = match_bytes(a, b, {{limits.data(), limits.shape(0)}, least, cross_check},
                              threads);
    }
    NewArray<std::int64_t, 2> pairs(matches.rows.size(), 2);
    for (std::size_t i = 0; i < matches.rows.size(); ++i) {
        pairs.data()[2 * i] = matches.rows[i];
        pairs.data()[2 * i + 1] = matches.columns[i];
    }
    return nb::make_tuple(pairs.to_python(), matches.products);
}

// ids (n, k), scores (n, k), proved (n,).
nb::tuple nearest_to_python(const NearestRows& nearest, std::size_t k) {
    const std::size_t rows = nearest.proved.size();
    NewArray<std::int64_t, 2> ids(rows, k);
    NewArray<double, 2> scores(rows, k);
    NewArray<bool, 1> proved(rows);
    std::copy(nearest.ids.begin(), nearest.ids.end(), ids.data());
    std::copy(nearest.scores.begin(), nearest.scores.end(), scores.data());
    for (std::size_t i = 0; i < rows; ++i) proved.data()[i] = nearest.proved[i] != 0;
    return nb::make_tuple(ids.to_python(), scores.to_python(), proved.to_python());
}

nb::tuple match_float_rows(const Matrix<float>& a, const Matrix<float>& b, const std::string& metric,
                           std::size_t k, bool both, std::size_t threads) {
    if (a.shape(1) != b.shape(1)) {
        throw std::invalid_argument("a has " + std::to_string(a.shape(1)) +
                                    " dimensions, b has " + std::to_string(b.shape(1)));
    }
    if (k < 1 || k > 2 || b.shape(0) < k || (both && a.shape(0) < k)) {
        throw std::invalid_argument("k must be 1 or 2, and at most the number of rows");
    }
    RowMatches matches;
    {
        const LongWork work;
        matches = match_rows(active_kernels(), metric_named(metric), {a.data(), a.shape(0)},
                             {b.data(), b.shape(0)}, a.shape(1), k, both, threads);
    }
    return nb::make_tuple(nearest_to_python(matches.of_a, k), nearest_to_python(matches.of_b, k));
}

// The canonical squared lengths of rows.
nb::object square_lengths(const Matrix<float>& rows) {
    NewArray<double, 1> squares(rows.shape(0));
    {
        const LongWork work;
        const DefaultFloatEnvironment environment;
        const Kernels& kernels = active_kernels();
        const std::size_t dim = rows.shape(1);
        std::vector<double> values(round_up(dim, kLanes));
        for (std::size_t i = 0; i < rows.shape(0); ++i) {
            const float* row = rows.data() + i * dim;
            std::copy(row, row + dim, values.begin());
            squares.data()[i] = kernels.dot_f32(values.data(), row, dim);
        }
    }
    return squares.to_python();
}

}  // namespace

void bind_matching(nb::module_& m) {
    m.attr("CODE_SLOTS") = kSlots;
    nb::class_<ByteSet>(m, "ByteSet")
        .def("__init__", &make_byte_set, "rows"_a, "codes"_a, "shift"_a)
        .def("__len__", &ByteSet::size)
        .def_prop_ro("nbytes", &ByteSet::nbytes);
    m.def("match_bytes", &match, "a"_a, "b"_a, "limits"_a, "least"_a, "cross_check"_a,
          "threads"_a);
    m.def("square_lengths", &square_lengths, "rows"_a);
    m.def("match_rows", &match_float_rows, "a"_a, "b"_a, "metric"_a, "k"_a, "both"_a,
          "threads"_a);
}

}  // namespace hiernorm
