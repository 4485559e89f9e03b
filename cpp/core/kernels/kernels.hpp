// What a kernel family provides, and the choice of one at run time.
//
// Codes lie in blocks of 16 entries (layout.hpp). The score of an entry is
//     score = sum_j codes[j] * query[j] - correction      (exact in int32)
// Integer arithmetic is exact, so all families give the same scores. `dot_f32` is the canonical
// score and follows hiernorm/reference: 16 lanes, products exact in float64, halving tree. A
// kernel's name says the step or the operation, then the types. README.md tells the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "layout.hpp"

namespace hiernorm {

struct Candidate {
    std::uint32_t position;
    std::int32_t score;
};

// A candidate whose minor is being read, and the sum of its products so far.
struct Contender {
    std::uint32_t position;
    std::int32_t major;
    std::int32_t minor;
    double bound;
};

// One stage of the minor, for candidates of one tile. An entry's bound after the stage is
//     base + major_scale * major + minor_scale * (minor - correction) + tail_scale * tail
// with minor = its sum so far plus sum_j rows[entry][j] * query[j], and tail = rows[entry][63].
// kStageBytes bytes are read from the start of each row: rows may be shorter (`row_bytes` apart),
// query is zero behind their end and obeys kPairLimit.
struct StageArguments {
    const std::uint8_t* rows = nullptr;  // row of the entry at `first_position`
    std::size_t row_bytes = 0;
    std::uint32_t first_position = 0;
    const std::int8_t* query = nullptr;
    double base = 0.0;
    double major_scale = 0.0;
    double minor_scale = 0.0;
    std::int32_t correction = 0;
    double tail_scale = 0.0;  // 0 for the last stage
};

// The query's side of the major scan. `half_corrections` holds, per burst of 8 groups, the share of
// the correction that falls to slots 0-1 and to slots 2-3, reduced modulo 2^16.
struct ScanQuery {
    const std::int8_t* codes;
    std::size_t groups;
    const std::int16_t* half_corrections;
    std::int32_t correction;
    std::int32_t code_sum;
};

// Queries that a search gives to scan_shared_u8i8 at a time.
inline constexpr std::size_t kSharedQueries = 4;

// Rows of a panel (panels.hpp), transposed. A score is scale * (row . query) + offset.
inline constexpr std::size_t kPanelRows = 32;
inline constexpr std::size_t kPanelQueries = 12;
inline constexpr std::size_t kFewQueries = 4;  // of a group that is not whole
struct PanelRows {
    const float* values;  // kPanelRows of each dimension
    std::size_t dim;
    const float* scales;  // one for each row
    const float* offsets;
};

// The best scores so far of queries and of the rows of a panel, in 16 lanes each: the best, the
// second and the third scores of the lanes, the places of the best and of the second.
inline constexpr std::size_t kRanked = 3;
inline constexpr std::size_t kPlaced = 2;
struct PanelRanks {
    bool second;                // whether the place of the second best is wanted
    std::size_t entries;        // rows of the panel that are not padding
    std::size_t blocks;         // of 16 rows that hold one
    std::uint32_t first_block;  // the place that a query notes for the first block
    std::uint32_t first_query;  // the place that a row notes for the first query
    const float* query_scales;  // scores are scaled once more, and offset
    const float* query_offsets;
    float* of_queries;
    std::uint32_t* query_places;
    float* of_rows;  // null where only queries are ranked
    std::uint32_t* row_places;
};

// A row of a panel that reaches the cut of a query (sift_panels.hpp).
struct SiftedPair {
    std::uint16_t query, row;
};

struct Kernels {
    std::string_view name;

    // The step seed: scores[i] for `entries` entries; writes whole blocks, so `scores` has room for
    // them. Returns the largest.
    std::int32_t (*score_u8i8)(const std::uint8_t* blocks, std::size_t entries,
                               const ScanQuery& query, std::int32_t* scores);

    // The step scan: appends the entries with score > cut to `out` (room for all and one block
    // more, which may be overwritten) and returns their number; raises *skipped to the largest
    // score among the others. `nearby`, if given, is an array of 64-byte rows, one per entry; the
    // rows of the candidates are prefetched.
    std::size_t (*scan_u8i8)(const std::uint8_t* blocks, std::size_t entries,
                             const ScanQuery& query, std::int32_t cut, std::uint32_t position,
                             const std::uint8_t* nearby, Candidate* out, std::int32_t* skipped);

    // The same for `count` queries of one length, which share the loads of the codes where the
    // registers have room for that: the candidates of query i go to outs[i], their number to
    // counts[i].
    void (*scan_shared_u8i8)(const std::uint8_t* blocks, std::size_t entries,
                             const ScanQuery* queries, std::size_t count, const std::int32_t* cuts,
                             std::uint32_t position, const std::uint8_t* nearby,
                             Candidate* const* outs, std::size_t* counts);

    // The same as scan_u8i8 for the first `count` blocks that `list` names, in ascending order.
    // Blocks are fetched ahead, those too that it names behind them, `listed` in all: they are
    // next.
    std::size_t (*scan_list_u8i8)(const std::uint8_t* blocks, const std::uint16_t* list,
                                  std::size_t count, std::size_t listed, const ScanQuery& query,
                                  std::int32_t cut, std::uint32_t position,
                                  const std::uint8_t* nearby, Candidate* out);

    // The step skip cells, for blocks of cones: the same, but writes the numbers of those above the
    // cut alone (below 2^16; room for one block more).
    std::size_t (*skip_cells_u8i8)(const std::uint8_t* blocks, const std::uint16_t* list,
                                   std::size_t count, const ScanQuery& query, std::int32_t cut,
                                   std::uint16_t* out);

    // scan_u8i8 on scores that are known already; whole blocks of them are readable. `skipped` may
    // be null in both.
    std::size_t (*sift_i32)(const std::int32_t* scores, std::size_t entries, std::int32_t cut,
                            std::uint32_t position, Candidate* out, std::int32_t* skipped);

    // The step seed: the n-th largest score, 1 <= n <= kBlockEntries; the lowest of all numbers
    // where there are fewer. Whole blocks are readable.
    std::int32_t (*nth_largest_i32)(const std::int32_t* scores, std::size_t entries, std::size_t n);

    // The step tighten, first stage: candidates whose bound after it is at least `threshold` become
    // contenders, in order (room for all); returns their number and raises *skipped to the largest
    // bound among the others.
    std::size_t (*tighten_first_u8i8)(const StageArguments& stage, double threshold,
                                      const Candidate* candidates, std::size_t count,
                                      Contender* contenders, double* skipped);

    // The stages after it: keeps the contenders whose bound is at least `threshold` still.
    std::size_t (*tighten_next_u8i8)(const StageArguments& stage, double threshold,
                                     Contender* contenders, std::size_t count, double* skipped);

    // The canonical inner product. `query` is padded with zeros to a multiple of kLanes.
    double (*dot_f32)(const double* query, const float* row, std::size_t dim);

    // The canonical inner products of `count` queries with all rows (`rows`, `dim` wide):
    // out[q][r]. Several of both share each load.
    void (*dot_rows_f32)(const double* const* queries, std::size_t count, const float* matrix,
                         std::size_t rows, std::size_t dim, double* const* out);

    // codes[j] = values[j] / step to the nearest integer (the caller sees to it that it fits), and
    // their sum; returns the squared norm of values - step * codes. Sums run in 8 lanes.
    double (*code_f64)(const double* values, std::size_t count, double step, std::int8_t* codes,
                       std::int32_t* code_sum);

    // The squared norm, in 8 lanes.
    double (*squares_f64)(const double* values, std::size_t count);

    // Algorithm 1, phase 1: float32 dots over `dims` dimensions, blocks[block][dim][entry],
    // in dimension order, multiplication and addition rounded apart. Writes whole blocks.
    void (*score_f32)(const float* blocks, std::size_t entries, const float* query,
                      std::size_t dims, float* scores);

    // Algorithm 1, the search for b and the skip test: appends the positions of the scores that are
    // not below the cut (a NaN is not) to `out` (room for all) and returns their number; raises
    // *skipped to the largest among the others.
    std::size_t (*sift_f32)(const float* scores, std::size_t entries, float cut,
                            std::uint32_t position, std::uint32_t* out, float* skipped);

    // The canonical squared distance: lanes and tree of dot_f32, differences and squares rounded.
    double (*distance_f32)(const double* query, const float* row, std::size_t dim);

    // The flat scan: scores[query * stride + entry] of `entries` rows under `count` queries, one
    // after the other and each padded with zeros to a multiple of kLanes. Lanes and tree of
    // dot_f32, every operation rounded to float32.
    void (*score_rows_f32)(const float* rows, std::size_t entries, std::size_t dim,
                           const float* queries, std::size_t count, float* scores,
                           std::size_t stride);

    // The same for minus the squared distance.
    void (*distance_rows_f32)(const float* rows, std::size_t entries, std::size_t dim,
                              const float* queries, std::size_t count, float* scores,
                              std::size_t stride);

    // Transposes `entries` rows, at most kPanelRows, and sums their squares; the others are zeros.
    void (*pack_panel_f32)(const float* rows, std::size_t entries, std::size_t dim, float* panel,
                           float* squares);

    // scores[query * stride + row] of a panel, for `count` queries in groups: whole groups of
    // kFewQueries are read and written. A sum runs over the dimensions in order.
    void (*score_panel_f32)(const PanelRows& rows, const float* queries, std::size_t count,
                            float* scores, std::size_t stride);

    // Ranks these scores, among those of each query and among those of each row.
    void (*rank_panel_f32)(const PanelRanks& ranks, float* scores, std::size_t count,
                           std::size_t stride);

    // The places of the scores from `least` up; returns their number. Whole blocks are read.
    std::size_t (*select_f32)(const float* scores, std::size_t count, float least,
                              std::uint32_t* places);

    // Replaces the values of a panel by value * scales[row] - centre[dimension] and sums their
    // squares; returns the largest magnitude.
    float (*shift_panel_f32)(float* panel, std::size_t dim, const float* scales,
                             const float* centre, float* squares);

    // Appends the pairs with offsets[row] + row . query >= cuts[query] (room for all) and returns
    // their number. Whole groups of kFewQueries are read, and their cuts. Float sums round.
    std::size_t (*sift_panel_f32)(const float* panel, std::size_t dim, const float* offsets,
                                  const float* queries, std::size_t count, const float* cuts,
                                  SiftedPair* out);

    // The same in bytes, `groups` of four for a row, exactly; null where floats are as fast. No sum
    // may overflow.
    std::size_t (*sift_panel_u8i8)(const std::uint8_t* codes, std::size_t groups,
                                   const std::int32_t* offsets, const std::int8_t* queries,
                                   std::size_t count, const std::int32_t* cuts,
                                   SiftedPair* out) = nullptr;

    // The codes of a panel for it: value / step to the nearest integer, plus 128; and the squared
    // norms of what they leave. No code may leave its byte.
    void (*code_panel_u8)(const float* panel, std::size_t dim, float step, std::uint8_t* codes,
                          float* residuals) = nullptr;

    // CRC-32C of `count` bytes, continued from that of the bytes before them (0: there are none).
    std::uint32_t (*crc32c)(std::uint32_t crc, const std::byte* data, std::size_t count);
};

// The families this processor can run, slowest first; scalar is always among them.
std::span<const Kernels* const> available_kernels();

// The family in use: HIERNORM_ISA if set (an error if it cannot run here), else the fastest.
const Kernels& active_kernels();

// Selects a family by name for the whole process; throws std::invalid_argument if it cannot run.
void use_kernels(std::string_view name);

}  // namespace hiernorm
