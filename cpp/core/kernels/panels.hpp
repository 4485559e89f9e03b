// Float32 scores of many rows under many queries: rows in panels, so that no sum is folded.
//
//     panel     kPanelRows rows, transposed: value j of row r at [j * kPanelRows + r]
//     queries   in groups of kPanelQueries, then of kFewQueries, transposed in the same way
//
// A sum runs over the dimensions in order, product and addition rounded apart: all families give
// the same bits. A tile of sums stays in registers while its rows and queries are read once.
#pragma once

#include "kernels/instruction_set.hpp"
#include "kernels/lanes.hpp"

namespace hiernorm {
namespace {

constexpr float kLeastFloat = -std::numeric_limits<float>::infinity();

template <class Isa, std::size_t Lanes, std::size_t Queries>
void score_tile(const PanelRows& rows, std::size_t first, const float* queries,
                std::size_t query_stride, float* scores, std::size_t stride) {
    typename Isa::FloatLanes sums[Lanes * Queries];
    repeat<Lanes * Queries>([&](auto i) { sums[i] = Isa::zero_floats(); });
    const float* values = rows.values + first;
    for (std::size_t j = 0; j < rows.dim; ++j) {
        typename Isa::FloatLanes row[Lanes];
        repeat<Lanes>([&](auto l) { row[l] = Isa::load_floats(values + l * kLanes); });
        repeat<Queries>([&](auto q) {
            const typename Isa::FloatLanes query = Isa::splat_floats(queries[q]);
            repeat<Lanes>([&](auto l) {
                sums[q * Lanes + l] =
                    Isa::add_floats(sums[q * Lanes + l], Isa::multiply_floats(query, row[l]));
            });
        });
        values += kPanelRows;
        queries += query_stride;
    }
    repeat<Lanes>([&](auto l) {
        const typename Isa::FloatLanes scale = Isa::load_floats(rows.scales + first + l * kLanes);
        const typename Isa::FloatLanes offset = Isa::load_floats(rows.offsets + first + l * kLanes);
        repeat<Queries>([&](auto q) {
            Isa::store_floats(
                scores + q * stride + first + l * kLanes,
                Isa::add_floats(Isa::multiply_floats(sums[q * Lanes + l], scale), offset));
        });
    });
}

// A group of `Group` queries, `Queries` at a time.
template <class Isa, std::size_t Group, std::size_t Queries>
void score_query_group(const PanelRows& rows, const float* queries, float* scores,
                       std::size_t stride) {
    static_assert(Group % Queries == 0);
    constexpr std::size_t kStep = Isa::kPanelLanes * kLanes;
    for (std::size_t first = 0; first < kPanelRows; first += kStep) {
        for (std::size_t q = 0; q < Group; q += Queries) {
            score_tile<Isa, Isa::kPanelLanes, Queries>(rows, first, queries + q, Group,
                                                       scores + q * stride, stride);
        }
    }
}

template <InstructionSet Isa>
void score_panel_f32(const PanelRows& rows, const float* queries, std::size_t count, float* scores,
                     std::size_t stride) {
    constexpr std::size_t kAtOnce = Isa::kPanelSums / Isa::kPanelLanes;
    constexpr std::size_t kFewAtOnce = kAtOnce < kFewQueries ? kAtOnce : kFewQueries;
    std::size_t q = 0;
    for (; q + kPanelQueries <= count; q += kPanelQueries) {
        score_query_group<Isa, kPanelQueries, kAtOnce>(rows, queries + q * rows.dim,
                                                       scores + q * stride, stride);
    }
    for (; q < count; q += kFewQueries) {
        score_query_group<Isa, kFewQueries, kFewAtOnce>(rows, queries + q * rows.dim,
                                                        scores + q * stride, stride);
    }
}

// 16 columns of 16 rows are transposed in registers; so are fewer, but not very few.
constexpr std::size_t kLeastTransposed = 5;
template <InstructionSet Isa>
void pack_panel_f32(const float* rows, std::size_t entries, std::size_t dim, float* panel,
                    float* squares) {
    for (std::size_t first = 0; first < kPanelRows; first += kLanes) {
        const float* from = rows + first * dim;
        const std::size_t rest = entries > first ? entries - first : 0;
        std::size_t j = 0;
        if (rest >= kLanes) {
            for (; j + kLanes <= dim; j += kLanes) {
                Isa::transpose_floats(from + j, dim, panel + j * kPanelRows + first, kPanelRows);
            }
            if (dim - j >= kLeastTransposed) {
                float values[kLanes * kLanes], columns[kLanes * kLanes];
                for (std::size_t r = 0; r < kLanes; ++r) {
                    Isa::store_floats(values + r * kLanes,
                                      Isa::load_first_floats(from + r * dim + j, dim - j));
                }
                Isa::transpose_floats(values, kLanes, columns, kLanes);
                for (std::size_t i = 0; j < dim; ++j, ++i) {
                    Isa::store_floats(panel + j * kPanelRows + first,
                                      Isa::load_floats(columns + i * kLanes));
                }
            }
        }
        for (; j < dim; ++j) {
            float* to = panel + j * kPanelRows + first;
            for (std::size_t r = 0; r < kLanes; ++r) to[r] = r < rest ? from[r * dim + j] : 0.0f;
        }
        typename Isa::FloatLanes sums = Isa::zero_floats();
        for (j = 0; j < dim; ++j) {
            const typename Isa::FloatLanes row = Isa::load_floats(panel + j * kPanelRows + first);
            sums = Isa::add_floats(sums, Isa::multiply_floats(row, row));
        }
        Isa::store_floats(squares + first, sums);
    }
}

// The places of the scores from `least` up, whole blocks of 16 of them; returns their number.
template <InstructionSet Isa>
std::size_t select_f32(const float* scores, std::size_t count, float least,
                       std::uint32_t* places) {
    std::size_t found = 0;
    for (std::size_t first = 0; first < count; first += kLanes) {
        std::uint32_t mask = Isa::not_below(Isa::load_floats(scores + first), Isa::splat_floats(least));
        for (; mask != 0; mask &= mask - 1) {
            const std::size_t place = first + lowest_bit(mask);
            if (place < count) places[found++] = static_cast<std::uint32_t>(place);
        }
    }
    return found;
}

// The best scores of one vector with others, and where they are: each of 16 lanes ranks every 16th.
// `Second` says whether the second best is wanted with its place; a score more is always kept.
template <bool Second>
void rank_lanes(const float* scores, std::uint32_t at, float* ranked, std::uint32_t* places) {
    float* first = ranked;
    float* second = ranked + kLanes;
    float* third = ranked + 2 * kLanes;
    std::uint32_t* first_at = places;
    std::uint32_t* second_at = places + kLanes;
    for (std::size_t l = 0; l < kLanes; ++l) {
        const float score = scores[l];
        const bool leads = score > first[l];
        if constexpr (Second) {
            const bool counts = score > second[l];
            const float last = counts ? second[l] : score;
            third[l] = last > third[l] ? last : third[l];
            second_at[l] = leads ? first_at[l] : counts ? at : second_at[l];
            second[l] = leads ? first[l] : counts ? score : second[l];
        } else {
            const float last = leads ? first[l] : score;
            second[l] = last > second[l] ? last : second[l];
        }
        first_at[l] = leads ? at : first_at[l];
        first[l] = leads ? score : first[l];
    }
}

template <class Isa, bool Second>
void rank_panel(const PanelRanks& ranks, float* scores, std::size_t count, std::size_t stride) {
    constexpr std::size_t kLast = (Second ? 2 : 1) * kLanes;  // what a score must exceed to count
    for (std::size_t q = 0; q < count; ++q, scores += stride) {
        const typename Isa::FloatLanes scale = Isa::splat_floats(ranks.query_scales[q]);
        const typename Isa::FloatLanes offset = Isa::splat_floats(ranks.query_offsets[q]);
        float* of_query = ranks.of_queries + q * kRanked * kLanes;
        std::uint32_t* query_places = ranks.query_places + q * kPlaced * kLanes;
        for (std::size_t block = 0; block < kPanelRows / kLanes; ++block) {
            const typename Isa::FloatLanes lanes = Isa::add_floats(
                Isa::multiply_floats(Isa::load_floats(scores + block * kLanes), scale), offset);
            const bool ranks_query =
                block < ranks.blocks &&
                Isa::not_below(lanes, Isa::load_floats(of_query + kLast)) != 0;
            float* of_rows = ranks.of_rows + block * kRanked * kLanes;
            const bool ranks_row = ranks.of_rows != nullptr &&
                                   Isa::not_below(lanes, Isa::load_floats(of_rows + kLast)) != 0;
            if (!ranks_query && !ranks_row) continue;
            float scaled[kLanes];
            Isa::store_floats(scaled, lanes);
            if (ranks_query) {
                // Padding of the last block is below everything.
                for (std::size_t l = ranks.entries - block * kLanes; l < kLanes; ++l) {
                    scaled[l] = kLeastFloat;
                }
                rank_lanes<Second>(scaled, ranks.first_block + static_cast<std::uint32_t>(block),
                                   of_query, query_places);
            }
            if (ranks_row) {
                rank_lanes<Second>(scaled, ranks.first_query + static_cast<std::uint32_t>(q),
                                   of_rows, ranks.row_places + block * kPlaced * kLanes);
            }
        }
    }
}

template <InstructionSet Isa>
void rank_panel_f32(const PanelRanks& ranks, float* scores, std::size_t count, std::size_t stride) {
    if (ranks.second) {
        rank_panel<Isa, true>(ranks, scores, count, stride);
    } else {
        rank_panel<Isa, false>(ranks, scores, count, stride);
    }
}

}  // namespace
}  // namespace hiernorm
