// What an instruction set supplies: the few operations that differ between families. The templates
// of scan.hpp, stages.hpp and floats.hpp are the algorithm.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kernels/kernels.hpp"

namespace hiernorm {
namespace {

// Sums and bounds of the candidates that a stage takes at once.
template <std::size_t Count>
struct Bounds {
    std::int32_t minors[Count];
    double bounds[Count];
};

// `Scores` are the 16 scores of a block, in registers.
template <class Isa>
concept ScoresBlocks =
    requires(typename Isa::Scores block, std::int32_t cut, std::int32_t* out,
             const std::int32_t* scores, std::uint32_t position, Candidate* candidates, bool few,
             std::uint16_t first, std::uint16_t* numbers) {
        { Isa::splat(cut) } -> std::same_as<typename Isa::Scores>;
        { Isa::load(scores) } -> std::same_as<typename Isa::Scores>;
        { Isa::store(out, block) } -> std::same_as<void>;
        // A bit per score above the cut; whether there is one.
        { Isa::above(block, cut) } -> std::same_as<std::uint32_t>;
        { Isa::any_above(block, cut) } -> std::same_as<bool>;
        // Writes the scores above the cut as candidates, in order; a whole block may be written.
        // `few`: more than half of them are rare.
        { Isa::append(block, cut, position, candidates, few) } -> std::same_as<std::size_t>;
        // Writes the numbers of the scores above the cut, in order; 16 numbers may be written.
        { Isa::append_numbers(block, cut, first, numbers) } -> std::same_as<std::size_t>;
        { Isa::maximum(block, block) } -> std::same_as<typename Isa::Scores>;
        // The maximum of the first and those scores of the second that are not above the cut.
        { Isa::maximum_below(block, block, cut) } -> std::same_as<typename Isa::Scores>;
        { Isa::horizontal_maximum(block) } -> std::same_as<std::int32_t>;
        // Sixteen scores in descending order and another: the sixteen best, in order.
        { Isa::insert(block, cut) } -> std::same_as<typename Isa::Scores>;
    };

// A query laid out in registers: the scores of the block that begins at an aligned line.
template <class Query, class Isa>
concept ScansBlocks =
    requires(const Query query, const ScanQuery& codes, const std::uint8_t* block) {
        Query(codes);
        { query.score(block) } -> std::same_as<typename Isa::Scores>;
    };

// Several queries over several blocks at once, all of the same length: scores[q * Blocks + b] of
// query q and block b. The shapes are those whose sums fit the registers: `kLongBlocks` blocks for
// one query, `kSharedBlocks` for `kSharedQueries` (1: they share nothing).
template <class Isa>
concept ScansShared =
    requires(const ScanQuery* queries, const std::uint8_t* blocks, typename Isa::Scores* scores) {
        { Isa::kLongBlocks } -> std::convertible_to<std::size_t>;
        { Isa::kSharedQueries } -> std::convertible_to<std::size_t>;
        { Isa::kSharedBlocks } -> std::convertible_to<std::size_t>;
        { Isa::template score_shared<1, 1>(queries, blocks, scores) } -> std::same_as<void>;
    };

// A stage's query in registers: the product with one row, the bounds of `kAtOnce` candidates.
template <class Query>
concept ScansRows = requires(const Query query, const std::int8_t* codes, const std::uint8_t* row,
                             const StageArguments& stage, const Candidate* candidates,
                             double threshold, Bounds<Query::kAtOnce>& found, double* largest) {
    Query(codes);
    { query.dot(row) } -> std::same_as<std::int32_t>;
    // A bit per bound that is not below the threshold; the others raise `largest`, lane by lane.
    { query.bound(stage, candidates, threshold, found, largest) } -> std::same_as<std::uint32_t>;
};

// `Lanes` are the 16 lanes of a canonical sum, of which the registers hold `kLaneSums`;
// `CodingLanes` are the 8 of a sum of squares.
template <class Isa>
concept SumsInLanes =
    requires(typename Isa::Lanes lanes, typename Isa::CodingLanes squares, const double* values,
             const float* row, double step, std::int8_t* codes, const float* block, float* scores) {
        { Isa::kLaneSums } -> std::convertible_to<std::size_t>;
        { Isa::zero_lanes() } -> std::same_as<typename Isa::Lanes>;
        { Isa::add_lanes(lanes, values, row) } -> std::same_as<typename Isa::Lanes>;
        { Isa::fold(lanes) } -> std::same_as<double>;
        { Isa::zero_coding_lanes() } -> std::same_as<typename Isa::CodingLanes>;
        {
            Isa::code_lanes(squares, values, step, step, codes)
        } -> std::same_as<typename Isa::CodingLanes>;
        { Isa::square_lanes(squares, values) } -> std::same_as<typename Isa::CodingLanes>;
        { Isa::fold_coding_lanes(squares) } -> std::same_as<double>;
        { Isa::score_block_f32(block, row, std::size_t{}, scores) } -> std::same_as<void>;
    };

// `FloatLanes` are the same 16 lanes in float32; `kFloatSums` of them (16 or 4) are folded at once.
// Tiles of a panel are `kPanelLanes` wide and hold `kPanelSums` sums.
template <class Isa>
concept SumsFloats = requires(typename Isa::FloatLanes lanes, const typename Isa::FloatLanes* sums,
                              const float* values, float cut, float* folded) {
    { Isa::kFloatSums } -> std::convertible_to<std::size_t>;
    { Isa::zero_floats() } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::load_floats(values) } -> std::same_as<typename Isa::FloatLanes>;
    // The first 1 to 15 of them, then zeros; nothing behind them is read.
    { Isa::load_first_floats(values, std::size_t{}) } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::add_floats(lanes, lanes) } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::subtract_floats(lanes, lanes) } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::multiply_floats(lanes, lanes) } -> std::same_as<typename Isa::FloatLanes>;
    // The first plus the product of the others, fused or not: bits differ between families.
    { Isa::multiply_add_floats(lanes, lanes, lanes) } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::maximum_floats(lanes, lanes) } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::fold_floats(sums, folded) } -> std::same_as<void>;
    // A bit per lane below the cut; the maximum of the first and those lanes of the second.
    { Isa::floats_below(lanes, cut) } -> std::same_as<std::uint32_t>;
    { Isa::maximum_floats_below(lanes, lanes, cut) } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::kPanelLanes } -> std::convertible_to<std::size_t>;
    { Isa::kPanelSums } -> std::convertible_to<std::size_t>;
    { Isa::splat_floats(float{}) } -> std::same_as<typename Isa::FloatLanes>;
    { Isa::store_floats(folded, lanes) } -> std::same_as<void>;
    // A bit per lane of the first that is at least that of the second.
    { Isa::not_below(lanes, lanes) } -> std::same_as<std::uint32_t>;
    // 16 values of 16 rows.
    { Isa::transpose_floats(values, std::size_t{}, folded, std::size_t{}) } -> std::same_as<void>;
};

// Families that multiply bytes faster than floats (sift_panels.hpp).
template <class Isa>
concept SiftsBytes =
    requires(typename Isa::ProductSums sums, typename Isa::FloatLanes squares,
             const float* const* four, float step, std::uint8_t* codes, const std::uint8_t* line,
             const std::int8_t* query, const std::int32_t* offsets, std::int32_t cut) {
        { Isa::start_products(offsets, cut) } -> std::same_as<typename Isa::ProductSums>;
        { Isa::load_fours(line) } -> std::same_as<typename Isa::ProductSums>;
        { Isa::splat_four(query) } -> std::same_as<typename Isa::ProductSums>;
        // Adds to each sum the products of four unsigned bytes and four signed ones.
        { Isa::add_products(sums, sums, sums) } -> std::same_as<typename Isa::ProductSums>;
        { Isa::scores_of(sums) } -> std::same_as<typename Isa::Scores>;
        // Codes of four values of 16 rows; adds the squares of what they leave.
        {
            Isa::code_four(four, step, step, codes, squares)
        } -> std::same_as<typename Isa::FloatLanes>;
    };

template <class Isa>
concept InstructionSet =
    ScoresBlocks<Isa> && ScansBlocks<typename Isa::template FixedQuery<1>, Isa> &&
    ScansBlocks<typename Isa::template FixedQuery<kBurstGroups>, Isa> && ScansShared<Isa> &&
    ScansRows<typename Isa::StageQuery> && SumsInLanes<Isa> && SumsFloats<Isa>;

}  // namespace
}  // namespace hiernorm
