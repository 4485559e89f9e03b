// Float32 scores of whole rows, for searches that read them all: several rows and several queries
// share each load.
//
// Sums run in the 16 lanes and the halving tree of dot_f32, in float32, every operation rounded
// apart: all families give the same bits, and with them the same counts.
#pragma once

#include <cstring>

#include "kernels/instruction_set.hpp"
#include "kernels/lanes.hpp"
#include "kernels/prefetch.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kRowsAhead = 4096;  // floats that are fetched ahead of a single query

struct Products {
    template <class Isa>
    static typename Isa::FloatLanes add(typename Isa::FloatLanes sums,
                                        typename Isa::FloatLanes query,
                                        typename Isa::FloatLanes row) {
        return Isa::add_floats(sums, Isa::multiply_floats(query, row));
    }
    static float score(float sum) { return sum; }
};

struct Distances {
    template <class Isa>
    static typename Isa::FloatLanes add(typename Isa::FloatLanes sums,
                                        typename Isa::FloatLanes query,
                                        typename Isa::FloatLanes row) {
        const typename Isa::FloatLanes difference = Isa::subtract_floats(query, row);
        return Isa::add_floats(sums, Isa::multiply_floats(difference, difference));
    }
    static float score(float sum) { return 0.0f - sum; }
};

// `Rows` rows from `rows` on under `Queries` queries: as many sums as an instruction set folds at
// once, or fewer.
template <class Isa, class Step, std::size_t Rows, std::size_t Queries>
void score_row_block(const float* rows, std::size_t dim, const float* queries,
                     std::size_t query_stride, float* scores, std::size_t stride) {
    using Lanes = typename Isa::FloatLanes;
    static_assert(Rows * Queries <= Isa::kFloatSums);
    Lanes sums[Isa::kFloatSums];
    repeat<Isa::kFloatSums>([&](auto i) { sums[i] = Isa::zero_floats(); });
    // A single query is bound by memory: rows are read in the order of their addresses, which the
    // processor then reads ahead.
    constexpr std::size_t kTogether = Queries == 1 ? 1 : Rows;
    repeat<Rows / kTogether>([&](auto group) {
        constexpr std::size_t kFirst = group * kTogether;
        const auto step = [&](std::size_t j, const auto& load) {
            Lanes query[Queries];
            repeat<Queries>(
                [&](auto q) { query[q] = Isa::load_floats(queries + q * query_stride + j); });
            repeat<kTogether>([&](auto r) {
                if constexpr (Queries == 1) prefetch(rows + (kFirst + r) * dim + j + kRowsAhead);
                const Lanes row = load(rows + (kFirst + r) * dim + j);
                repeat<Queries>([&](auto q) {
                    constexpr std::size_t kSum = q * Rows + kFirst + r;
                    sums[kSum] = Step::template add<Isa>(sums[kSum], query[q], row);
                });
            });
        };
        std::size_t j = 0;
        for (; j + kLanes <= dim; j += kLanes) {
            step(j, [](const float* at) { return Isa::load_floats(at); });
        }
        if (j < dim) {
            step(j, [&](const float* at) { return Isa::load_first_floats(at, dim - j); });
        }
    });
    float folded[Isa::kFloatSums];
    Isa::fold_floats(sums, folded);
    for (std::size_t q = 0; q < Queries; ++q) {
        for (std::size_t r = 0; r < Rows; ++r) {
            scores[q * stride + r] = Step::score(folded[q * Rows + r]);
        }
    }
}

template <class Isa, class Step, std::size_t Rows, std::size_t Queries>
void score_rows_of(const float* rows, std::size_t entries, std::size_t dim, const float* queries,
                   std::size_t query_stride, float* scores, std::size_t stride) {
    if (entries < Rows) {
        for (std::size_t i = 0; i < entries; ++i) {
            score_row_block<Isa, Step, 1, Queries>(rows + i * dim, dim, queries, query_stride,
                                                   scores + i, stride);
        }
        return;
    }
    std::size_t i = 0;
    for (; i + Rows <= entries; i += Rows) {
        score_row_block<Isa, Step, Rows, Queries>(rows + i * dim, dim, queries, query_stride,
                                                  scores + i, stride);
    }
    if (i < entries) {  // once more, to the same bits, for some of the rows before
        i = entries - Rows;
        score_row_block<Isa, Step, Rows, Queries>(rows + i * dim, dim, queries, query_stride,
                                                  scores + i, stride);
    }
}

template <class Isa, class Step>
void score_rows(const float* rows, std::size_t entries, std::size_t dim, const float* queries,
                std::size_t count, float* scores, std::size_t stride) {
    constexpr std::size_t kSide = Isa::kFloatSums == 16 ? 4 : 2;
    static_assert(kSide * kSide == Isa::kFloatSums);
    const std::size_t query_stride = (dim + kLanes - 1) / kLanes * kLanes;
    std::size_t q = 0;
    for (; q + kSide <= count; q += kSide) {
        score_rows_of<Isa, Step, kSide, kSide>(rows, entries, dim, queries + q * query_stride,
                                               query_stride, scores + q * stride, stride);
    }
    for (; q < count; ++q) {
        score_rows_of<Isa, Step, Isa::kFloatSums, 1>(rows, entries, dim, queries + q * query_stride,
                                                     query_stride, scores + q * stride, stride);
    }
}

template <InstructionSet Isa>
void score_rows_f32(const float* rows, std::size_t entries, std::size_t dim, const float* queries,
                    std::size_t count, float* scores, std::size_t stride) {
    score_rows<Isa, Products>(rows, entries, dim, queries, count, scores, stride);
}

template <InstructionSet Isa>
void distance_rows_f32(const float* rows, std::size_t entries, std::size_t dim,
                       const float* queries, std::size_t count, float* scores, std::size_t stride) {
    score_rows<Isa, Distances>(rows, entries, dim, queries, count, scores, stride);
}

// The float lanes of families without instructions of their own for them.
struct PortableFloats {
    struct FloatLanes {
        float f32x16[kLanes];
    };
    static constexpr std::size_t kFloatSums = 4;
    static FloatLanes zero_floats() { return {}; }
    static FloatLanes load_floats(const float* values) {
        FloatLanes lanes;
        std::memcpy(lanes.f32x16, values, sizeof lanes.f32x16);
        return lanes;
    }
    static FloatLanes load_first_floats(const float* values, std::size_t count) {
        FloatLanes lanes = {};
        std::memcpy(lanes.f32x16, values, count * sizeof(float));
        return lanes;
    }
    static FloatLanes multiply_add_floats(const FloatLanes& sums, const FloatLanes& a,
                                          const FloatLanes& b) {
        return add_floats(sums, multiply_floats(a, b));
    }
    static FloatLanes maximum_floats(FloatLanes a, const FloatLanes& b) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            a.f32x16[l] = b.f32x16[l] > a.f32x16[l] ? b.f32x16[l] : a.f32x16[l];
        }
        return a;
    }
    static std::uint32_t floats_below(const FloatLanes& lanes, float cut) {
        std::uint32_t mask = 0;
        for (std::size_t l = 0; l < kLanes; ++l) mask |= (lanes.f32x16[l] < cut ? 1u : 0u) << l;
        return mask;
    }
    static FloatLanes maximum_floats_below(FloatLanes a, const FloatLanes& b, float cut) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            const bool raises = b.f32x16[l] < cut && b.f32x16[l] > a.f32x16[l];
            a.f32x16[l] = raises ? b.f32x16[l] : a.f32x16[l];
        }
        return a;
    }
    static FloatLanes add_floats(FloatLanes a, const FloatLanes& b) {
        for (std::size_t l = 0; l < kLanes; ++l) a.f32x16[l] += b.f32x16[l];
        return a;
    }
    static FloatLanes subtract_floats(FloatLanes a, const FloatLanes& b) {
        for (std::size_t l = 0; l < kLanes; ++l) a.f32x16[l] -= b.f32x16[l];
        return a;
    }
    static FloatLanes multiply_floats(FloatLanes a, const FloatLanes& b) {
        for (std::size_t l = 0; l < kLanes; ++l) a.f32x16[l] *= b.f32x16[l];
        return a;
    }
    static constexpr std::size_t kPanelLanes = 1;
    static constexpr std::size_t kPanelSums = 2;
    static FloatLanes splat_floats(float value) {
        FloatLanes lanes;
        for (std::size_t l = 0; l < kLanes; ++l) lanes.f32x16[l] = value;
        return lanes;
    }
    static void store_floats(float* out, const FloatLanes& lanes) {
        std::memcpy(out, lanes.f32x16, sizeof lanes.f32x16);
    }
    static std::uint32_t not_below(const FloatLanes& a, const FloatLanes& b) {
        std::uint32_t mask = 0;
        for (std::size_t l = 0; l < kLanes; ++l) {
            mask |= (a.f32x16[l] >= b.f32x16[l] ? 1u : 0u) << l;
        }
        return mask;
    }
    static void transpose_floats(const float* from, std::size_t from_stride, float* to,
                                 std::size_t to_stride) {
        for (std::size_t j = 0; j < kLanes; ++j) {
            for (std::size_t r = 0; r < kLanes; ++r) {
                to[j * to_stride + r] = from[r * from_stride + j];
            }
        }
    }
    static void fold_floats(const FloatLanes* sums, float* folded) {
        for (std::size_t i = 0; i < kFloatSums; ++i) {
            FloatLanes lanes = sums[i];
            for (std::size_t half = kLanes / 2; half != 0; half /= 2) {
                for (std::size_t l = 0; l < half; ++l) lanes.f32x16[l] += lanes.f32x16[l + half];
            }
            folded[i] = lanes.f32x16[0];
        }
    }
};

}  // namespace
}  // namespace hiernorm
