// Sets of byte vectors, and their matches.
#include <memory>
#include <stdexcept>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "matching/match_bytes.hpp"

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

}  // namespace

void bind_matching(nb::module_& m) {
    m.attr("CODE_SLOTS") = kSlots;
    nb::class_<ByteSet>(m, "ByteSet")
        .def("__init__", &make_byte_set, "rows"_a, "codes"_a, "shift"_a)
        .def("__len__", &ByteSet::size)
        .def_prop_ro("nbytes", &ByteSet::nbytes);
    m.def("match_bytes", &match, "a"_a, "b"_a, "limits"_a, "least"_a, "cross_check"_a,
          "threads"_a);
}

}  // namespace hiernorm
