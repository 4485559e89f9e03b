// The kernels on float32 and float64 as templates over one instruction set: every sum in one order.
#pragma once

#include <math.h>

#include <cstring>

#include "kernels/instruction_set.hpp"
#include "kernels/lanes.hpp"

namespace hiernorm {
namespace {

template <InstructionSet Isa>
double dot_f32(const double* query, const float* row, std::size_t dim) {
    typename Isa::Lanes lanes = Isa::zero_lanes();
    std::size_t j = 0;
    for (; j + kLanes <= dim; j += kLanes) lanes = Isa::add_lanes(lanes, query + j, row + j);
    if (j < dim) {
        float rest[kLanes] = {};
        std::memcpy(rest, row + j, (dim - j) * sizeof(float));
        lanes = Isa::add_lanes(lanes, query + j, rest);
    }
    return Isa::fold(lanes);
}

// The products of `Queries` queries with `Rows` rows from there on; dim is a multiple of kLanes.
template <InstructionSet Isa, std::size_t Queries, std::size_t Rows>
void dot_block(const double* const* queries, const float* matrix, std::size_t dim,
               double* const* out, std::size_t row) {
    typename Isa::Lanes lanes[Queries * Rows];
    repeat<Queries * Rows>([&](auto i) { lanes[i] = Isa::zero_lanes(); });
    const float* const first = matrix + row * dim;
    for (std::size_t j = 0; j < dim; j += kLanes) {
        repeat<Queries * Rows>([&](auto i) {
            lanes[i] = Isa::add_lanes(lanes[i], queries[i / Rows] + j, first + i % Rows * dim + j);
        });
    }
    repeat<Queries * Rows>([&](auto i) { out[i / Rows][row + i % Rows] = Isa::fold(lanes[i]); });
}

template <InstructionSet Isa, std::size_t Queries, std::size_t Rows>
void dot_queries(const double* const* queries, const float* matrix, std::size_t rows,
                 std::size_t dim, double* const* out) {
    std::size_t row = 0;
    for (; row + Rows <= rows; row += Rows) {
        dot_block<Isa, Queries, Rows>(queries, matrix, dim, out, row);
    }
    for (; row < rows; ++row) dot_block<Isa, Queries, 1>(queries, matrix, dim, out, row);
}

template <InstructionSet Isa>
void dot_rows_f32(const double* const* queries, std::size_t count, const float* matrix,
                  std::size_t rows, std::size_t dim, double* const* out) {
    constexpr std::size_t kQueries =
        Isa::kLaneSums < kSharedQueries ? Isa::kLaneSums : kSharedQueries;
    std::size_t q = 0;
    if (dim % kLanes != 0) {
        for (; q < count; ++q) {
            for (std::size_t row = 0; row < rows; ++row) {
                out[q][row] = dot_f32<Isa>(queries[q], matrix + row * dim, dim);
            }
        }
    }
    for (; q + kQueries <= count; q += kQueries) {
        dot_queries<Isa, kQueries, Isa::kLaneSums / kQueries>(queries + q, matrix, rows, dim,
                                                              out + q);
    }
    for (; q < count; ++q) {
        dot_queries<Isa, 1, Isa::kLaneSums>(queries + q, matrix, rows, dim, out + q);
    }
}

// Sums of the next two run in 8 lanes and are folded in one order, so their bits are fixed.
constexpr std::size_t kCodingLanes = 8;

template <InstructionSet Isa>
double code_f64(const double* values, std::size_t count, double step, std::int8_t* codes,
                std::int32_t* code_sum) {
    const double inverse = 1.0 / step;
    typename Isa::CodingLanes squares = Isa::zero_coding_lanes();
    std::size_t j = 0;
    for (; j + kCodingLanes <= count; j += kCodingLanes) {
        squares = Isa::code_lanes(squares, values + j, inverse, step, codes + j);
    }
    if (j < count) {
        double rest[kCodingLanes] = {};
        std::int8_t rest_codes[kCodingLanes];
        std::memcpy(rest, values + j, (count - j) * sizeof(double));
        squares = Isa::code_lanes(squares, rest, inverse, step, rest_codes);
        std::memcpy(codes + j, rest_codes, count - j);
    }
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += codes[i];
    *code_sum = sum;
    return Isa::fold_coding_lanes(squares);
}

template <InstructionSet Isa>
double squares_f64(const double* values, std::size_t count) {
    typename Isa::CodingLanes squares = Isa::zero_coding_lanes();
    std::size_t j = 0;
    for (; j + kCodingLanes <= count; j += kCodingLanes) {
        squares = Isa::square_lanes(squares, values + j);
    }
    if (j < count) {
        double rest[kCodingLanes] = {};
        std::memcpy(rest, values + j, (count - j) * sizeof(double));
        squares = Isa::square_lanes(squares, rest);
    }
    return Isa::fold_coding_lanes(squares);
}

// The coding lanes of families without instructions of their own for them.
struct PortableCoding {
    struct CodingLanes {
        double f64x8[kCodingLanes];
    };
    static CodingLanes zero_coding_lanes() { return {}; }
    static CodingLanes code_lanes(CodingLanes squares, const double* values, double inverse,
                                  double step, std::int8_t* codes) {
        constexpr double kNoFraction = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds
        for (std::size_t l = 0; l < kCodingLanes; ++l) {
            const double code = (values[l] * inverse + kNoFraction) - kNoFraction;
            const double error = values[l] - code * step;
            squares.f64x8[l] += error * error;
            codes[l] = static_cast<std::int8_t>(code);
        }
        return squares;
    }
    static CodingLanes square_lanes(CodingLanes squares, const double* values) {
        for (std::size_t l = 0; l < kCodingLanes; ++l) squares.f64x8[l] += values[l] * values[l];
        return squares;
    }
    static double fold_coding_lanes(const CodingLanes& squares) {
        const double* l = squares.f64x8;
        return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7]));
    }
};

template <InstructionSet Isa>
void score_f32(const float* blocks, std::size_t entries, const float* query, std::size_t dims,
               float* scores) {
    for (std::size_t entry = 0; entry < entries; entry += kBlockEntries) {
        Isa::score_block_f32(blocks, query, dims, scores + entry);
        blocks += dims * kBlockEntries;
    }
}

template <InstructionSet Isa>
std::size_t sift_f32(const float* scores, std::size_t entries, float cut, std::uint32_t position,
                     std::uint32_t* out, float* skipped) {
    static_assert(kLanes == kBlockEntries);
    constexpr std::uint32_t kAll = (1u << kLanes) - 1;
    std::uint32_t* const begin = out;
    typename Isa::FloatLanes best = Isa::splat_floats(*skipped);
    std::size_t entry = 0;
    for (; entry + kBlockEntries <= entries; entry += kBlockEntries) {
        const typename Isa::FloatLanes block = Isa::load_floats(scores + entry);
        best = Isa::maximum_floats_below(best, block, cut);
        for (std::uint32_t left = ~Isa::floats_below(block, cut) & kAll; left != 0;
             left &= left - 1) {
            *out++ = position + static_cast<std::uint32_t>(entry) + lowest_bit(left);
        }
    }
    float largest[kLanes];
    Isa::store_floats(largest, best);
    for (; entry < entries; ++entry) {
        if (scores[entry] < cut) {
            largest[0] = largest[0] > scores[entry] ? largest[0] : scores[entry];
        } else {
            *out++ = position + static_cast<std::uint32_t>(entry);
        }
    }
    for (const float value : largest) *skipped = *skipped > value ? *skipped : value;
    return static_cast<std::size_t>(out - begin);
}

}  // namespace
}  // namespace hiernorm
