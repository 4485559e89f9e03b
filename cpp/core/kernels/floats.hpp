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

}  // namespace
}  // namespace hiernorm
