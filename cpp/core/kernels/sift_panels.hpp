// The flat scan of a group of queries: which rows of a panel reach the cut of which query.
//
//     panel     kPanelRows rows, transposed: value j of row r at [j * kPanelRows + r]
//     codes     the same in bytes: values 4 g to 4 g + 3 of row r at [(g * kPanelRows + r) * 4]
//     queries   in groups of kPanelQueries, then of kFewQueries, transposed in the same way
//
// Sums start at offset - cut, so that a row reaches the cut if its sum is not negative: where all
// sums of a tile are negative, one test tells. Sums of floats may be fused and differ between
// families; whoever uses them allows for rounding, and settles what is found by canonical scores.
#pragma once

#include <cstring>

#include "kernels/instruction_set.hpp"
#include "kernels/lanes.hpp"

namespace hiernorm {
namespace {

// Appends the sums that are not negative, `Width` blocks of 16 rows for each query.
template <std::size_t Width, class Value>
SiftedPair* append_pairs(const Value* sums, std::size_t count, std::size_t first_query,
                         std::size_t first_row, SiftedPair* out) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t query = first_query + i / Width, row = first_row + i % Width * kLanes;
        std::uint32_t mask = 0;
        for (std::size_t l = 0; l < kLanes; ++l) {
            mask |= (sums[i * kLanes + l] >= 0 ? 1u : 0u) << l;
        }
        for (; mask != 0; mask &= mask - 1) {
            *out++ = {static_cast<std::uint16_t>(query),
                      static_cast<std::uint16_t>(row + lowest_bit(mask))};
        }
    }
    return out;
}

// The sums of a tile in floats.
template <class Isa>
struct FloatSift {
    using Lanes = typename Isa::FloatLanes;
    static Lanes start(const float* offsets, float cut) {
        return Isa::subtract_floats(Isa::load_floats(offsets), Isa::splat_floats(cut));
    }
    static Lanes load(const float* values) { return Isa::load_floats(values); }
    static Lanes splat(const float* query) { return Isa::splat_floats(*query); }
    static Lanes add(Lanes sums, Lanes query, Lanes row) {
        return Isa::multiply_add_floats(sums, query, row);
    }
    static Lanes larger(Lanes a, Lanes b) { return Isa::maximum_floats(a, b); }
    static Lanes first(Lanes sums) { return sums; }
    static bool reached(Lanes sums) { return Isa::not_below(sums, Isa::zero_floats()) != 0; }
    static void store(float* out, Lanes sums) { Isa::store_floats(out, sums); }
};

// The same in bytes: four values of a row at a time.
template <class Isa>
struct ByteSift {
    using Lanes = typename Isa::ProductSums;
    static Lanes start(const std::int32_t* offsets, std::int32_t cut) {
        return Isa::start_products(offsets, cut);
    }
    static Lanes load(const std::uint8_t* values) { return Isa::load_fours(values); }
    static Lanes splat(const std::int8_t* query) { return Isa::splat_four(query); }
    static Lanes add(Lanes sums, Lanes query, Lanes row) {
        return Isa::add_products(sums, row, query);
    }
    static auto larger(typename Isa::Scores a, Lanes b) {
        return Isa::maximum(a, Isa::scores_of(b));
    }
    static auto first(Lanes sums) { return Isa::scores_of(sums); }
    static bool reached(typename Isa::Scores sums) { return Isa::any_above(sums, -1); }
    static void store(std::int32_t* out, Lanes sums) { Isa::store(out, Isa::scores_of(sums)); }
};

// `steps` steps over 16 * `Width` rows from `first` on, under `Queries` queries of a group. A step
// takes `Step` values of each.
template <class Sift, std::size_t Width, std::size_t Queries, std::size_t Step, class Row,
          class Query, class Cut>
SiftedPair* sift_tile(const Row* rows, std::size_t steps, const Cut* offsets, std::size_t first,
                      const Query* queries, std::size_t group, const Cut* cuts,
                      std::size_t first_query, SiftedPair* out) {
    typename Sift::Lanes sums[Width * Queries];
    repeat<Width * Queries>([&](auto i) {
        sums[i] = Sift::start(offsets + first + i % Width * kLanes, cuts[i / Width]);
    });
    const Row* values = rows + first * Step;
    for (std::size_t j = 0; j < steps; ++j) {
        typename Sift::Lanes row[Width];
        repeat<Width>([&](auto l) { row[l] = Sift::load(values + l * kLanes * Step); });
        repeat<Queries>([&](auto q) {
            const typename Sift::Lanes query = Sift::splat(queries + q * Step);
            repeat<Width>([&](auto l) {
                sums[q * Width + l] = Sift::add(sums[q * Width + l], query, row[l]);
            });
        });
        values += kPanelRows * Step;
        queries += group * Step;
    }
    auto largest = Sift::first(sums[0]);
    repeat<Width * Queries>([&](auto i) { largest = Sift::larger(largest, sums[i]); });
    if (!Sift::reached(largest)) return out;
    // In memory only now, so that the sums stay in registers above.
    Cut stored[Width * Queries * kLanes];
    repeat<Width * Queries>([&](auto i) { Sift::store(stored + i * kLanes, sums[i]); });
    return append_pairs<Width>(stored, Width * Queries, first_query, first, out);
}

template <class Sift, std::size_t Width, std::size_t Group, std::size_t Queries, std::size_t Step,
          class Row, class Query, class Cut>
SiftedPair* sift_group(const Row* rows, std::size_t steps, const Cut* offsets,
                       const Query* queries, const Cut* cuts, std::size_t first_query,
                       SiftedPair* out) {
    static_assert(Group % Queries == 0);
    for (std::size_t first = 0; first < kPanelRows; first += Width * kLanes) {
        for (std::size_t q = 0; q < Group; q += Queries) {
            out = sift_tile<Sift, Width, Queries, Step>(rows, steps, offsets, first,
                                                        queries + q * Step, Group, cuts + q,
                                                        first_query + q, out);
        }
    }
    return out;
}

template <class Isa, class Sift, std::size_t Step, class Row, class Query, class Cut>
std::size_t sift_panel(const Row* rows, std::size_t steps, const Cut* offsets,
                       const Query* queries, std::size_t count, const Cut* cuts, SiftedPair* out) {
    constexpr std::size_t kAtOnce = Isa::kPanelSums / Isa::kPanelLanes;
    constexpr std::size_t kFewAtOnce = kAtOnce < kFewQueries ? kAtOnce : kFewQueries;
    SiftedPair* const begin = out;
    std::size_t q = 0;
    for (; q + kPanelQueries <= count; q += kPanelQueries) {
        out = sift_group<Sift, Isa::kPanelLanes, kPanelQueries, kAtOnce, Step>(
            rows, steps, offsets, queries + q * steps * Step, cuts + q, q, out);
    }
    for (; q < count; q += kFewQueries) {
        out = sift_group<Sift, Isa::kPanelLanes, kFewQueries, kFewAtOnce, Step>(
            rows, steps, offsets, queries + q * steps * Step, cuts + q, q, out);
    }
    return static_cast<std::size_t>(out - begin);
}

template <InstructionSet Isa>
std::size_t sift_panel_f32(const float* panel, std::size_t dim, const float* offsets,
                           const float* queries, std::size_t count, const float* cuts,
                           SiftedPair* out) {
    return sift_panel<Isa, FloatSift<Isa>, 1>(panel, dim, offsets, queries, count, cuts, out);
}

template <SiftsBytes Isa>
std::size_t sift_panel_u8i8(const std::uint8_t* codes, std::size_t groups,
                            const std::int32_t* offsets, const std::int8_t* queries,
                            std::size_t count, const std::int32_t* cuts, SiftedPair* out) {
    return sift_panel<Isa, ByteSift<Isa>, 4>(codes, groups, offsets, queries, count, cuts, out);
}

template <InstructionSet Isa>
float shift_panel_f32(float* panel, std::size_t dim, const float* scales, const float* centre,
                      float* squares) {
    constexpr std::size_t kWidth = kPanelRows / kLanes;
    typename Isa::FloatLanes sums[kWidth], factors[kWidth], largest = Isa::zero_floats();
    repeat<kWidth>([&](auto l) {
        sums[l] = Isa::zero_floats();
        factors[l] = Isa::load_floats(scales + l * kLanes);
    });
    for (std::size_t j = 0; j < dim; ++j) {
        const typename Isa::FloatLanes middle = Isa::splat_floats(centre[j]);
        repeat<kWidth>([&](auto l) {
            float* values = panel + j * kPanelRows + l * kLanes;
            const typename Isa::FloatLanes shifted = Isa::subtract_floats(
                Isa::multiply_floats(Isa::load_floats(values), factors[l]), middle);
            Isa::store_floats(values, shifted);
            sums[l] = Isa::multiply_add_floats(sums[l], shifted, shifted);
            largest = Isa::maximum_floats(
                largest, Isa::maximum_floats(
                             shifted, Isa::subtract_floats(Isa::zero_floats(), shifted)));
        });
    }
    repeat<kWidth>([&](auto l) { Isa::store_floats(squares + l * kLanes, sums[l]); });
    float lanes[kLanes];
    Isa::store_floats(lanes, largest);
    for (std::size_t l = 1; l < kLanes; ++l) lanes[0] = lanes[l] > lanes[0] ? lanes[l] : lanes[0];
    return lanes[0];
}

// Codes are values / step to the nearest integer, plus 128.
template <SiftsBytes Isa>
void code_panel_u8(const float* panel, std::size_t dim, float step, std::uint8_t* codes,
                   float* residuals) {
    const float inverse = 1.0f / step;
    const float zeros[kPanelRows] = {};
    for (std::size_t first = 0; first < kPanelRows; first += kLanes) {
        typename Isa::FloatLanes squares = Isa::zero_floats();
        for (std::size_t j = 0; j < dim; j += 4) {
            const float* four[4];
            for (std::size_t i = 0; i < 4; ++i) {
                four[i] = (j + i < dim ? panel + (j + i) * kPanelRows : zeros) + first;
            }
            squares = Isa::code_four(four, inverse, step, codes + (j / 4 * kPanelRows + first) * 4,
                                     squares);
        }
        Isa::store_floats(residuals + first, squares);
    }
}

}  // namespace
}  // namespace hiernorm
