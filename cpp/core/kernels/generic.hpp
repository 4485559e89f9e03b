// The kernels as templates over one instruction set. `Isa` supplies the few operations that differ;
// this file is the algorithm and, with ScalarIsa, the portable family.
#pragma once

#include <math.h>

#include <cstring>
#include <limits>

#include "kernels/kernels.hpp"
#include "prefetch.hpp"

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define HIERNORM_APART __restrict
#else
#define HIERNORM_APART __restrict__
#endif

// Internal linkage, and no function templates of the standard library: code compiled with one
// family's flags must never be the copy that the linker keeps for the others.
namespace hiernorm {
namespace {

constexpr std::size_t kScanAhead = 2048;  // bytes of codes that are fetched ahead of the scan
constexpr std::size_t kBlocksAhead = 4;   // the same for listed blocks
constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();

inline std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

inline std::uint32_t lowest_bit(std::uint32_t mask) {
#if defined(_MSC_VER) && !defined(__clang__)
    unsigned long index;
    _BitScanForward(&index, mask);
    return static_cast<std::uint32_t>(index);
#else
    return static_cast<std::uint32_t>(__builtin_ctz(mask));
#endif
}

// Appends candidates among 16 known scores; `mask` has a bit per score above the cut.
inline std::size_t append_candidates(const std::int32_t* scores, std::uint32_t mask,
                                     std::uint32_t position, Candidate* out) {
    std::size_t count = 0;
    while (mask != 0) {
        const std::uint32_t entry = lowest_bit(mask);
        out[count++] = {position + entry, scores[entry]};
        mask &= mask - 1;
    }
    return count;
}

// Appends the entries with score > cut; `block_at(entry)` gives the scores of the block there and
// `position_at(entry)` its position.
// Where candidates are frequent, testing each block for one mispredicts too often: such strips
// append without a test. `out` has room for all entries and one block more. The largest score among
// the others is only looked for if Track.
template <class Isa, bool Track, class BlockAt, class PositionAt>
std::size_t sieve(const BlockAt& block_at, std::size_t entries, std::int32_t cut,
                  const PositionAt& position_at, Candidate* out, std::int32_t* skipped) {
    constexpr std::size_t kStripEntries = 8 * kBlockEntries;
    constexpr std::ptrdiff_t kFrequent = 2;  // candidates in a strip
    Candidate* const begin = out;
    const std::size_t whole = entries / kBlockEntries * kBlockEntries;
    typename Isa::Scores best = Isa::splat(kLowest);
    bool frequent = false;
    for (std::size_t entry = 0; entry < whole;) {
        const std::size_t stop = whole - entry < kStripEntries ? whole : entry + kStripEntries;
        const Candidate* const strip = out;
        for (; entry < stop; entry += kBlockEntries) {
            const typename Isa::Scores block = block_at(entry);
            if (!frequent && !Isa::any_above(block, cut)) {
                if constexpr (Track) best = Isa::maximum(best, block);
                continue;
            }
            if constexpr (Track) best = Isa::maximum_below(best, block, cut);
            out += Isa::append(block, cut, position_at(entry), out);
        }
        frequent = out - strip >= kFrequent;
    }
    std::int32_t largest = Isa::horizontal_maximum(best);
    if (whole < entries) {
        alignas(64) std::int32_t scores[kBlockEntries];
        Isa::store(scores, block_at(whole));
        for (std::size_t i = 0; i < entries - whole; ++i) {
            if (scores[i] > cut) {
                *out++ = {position_at(whole) + static_cast<std::uint32_t>(i), scores[i]};
            } else {
                largest = larger(largest, scores[i]);
            }
        }
    }
    if constexpr (Track) *skipped = larger(*skipped, largest);
    return static_cast<std::size_t>(out - begin);
}

template <class Isa, class BlockAt, class PositionAt>
std::size_t sieve(const BlockAt& block_at, std::size_t entries, std::int32_t cut,
                  const PositionAt& position_at, Candidate* out, std::int32_t* skipped) {
    return skipped != nullptr
               ? sieve<Isa, true>(block_at, entries, cut, position_at, out, skipped)
               : sieve<Isa, false>(block_at, entries, cut, position_at, out, nullptr);
}

// Entries one after the other from `first` on.
struct PositionsFrom {
    std::uint32_t first;
    std::uint32_t operator()(std::size_t entry) const {
        return first + static_cast<std::uint32_t>(entry);
    }
};

template <class Isa>
std::size_t select_i32(const std::int32_t* scores, std::size_t entries, std::int32_t cut,
                       std::uint32_t position, Candidate* out, std::int32_t* skipped) {
    return sieve<Isa>([scores](std::size_t entry) { return Isa::load(scores + entry); }, entries,
                      cut, PositionsFrom{position}, out, skipped);
}

template <class Isa, class Query>
std::int32_t score_blocks(const Query& query, const std::uint8_t* blocks, std::size_t entries,
                          std::size_t block_bytes, std::int32_t* scores) {
    typename Isa::Scores best = Isa::splat(kLowest);
    std::size_t entry = 0;
    for (; entry + kBlockEntries <= entries; entry += kBlockEntries) {
        const typename Isa::Scores block = query.score(blocks);
        Isa::store(scores + entry, block);
        best = Isa::maximum(best, block);
        blocks += block_bytes;
    }
    std::int32_t largest = Isa::horizontal_maximum(best);
    if (entry < entries) Isa::store(scores + entry, query.score(blocks));
    for (; entry < entries; ++entry) largest = larger(largest, scores[entry]);
    return largest;
}

// Calls `use(query)` with the query's registers laid out for its number of groups: fixed sizes up
// to kRunGroups keep them in registers, longer ones loop over runs.
template <class Isa, class Use>
auto with_query(const ScanQuery& query, Use use) {
    switch (query.groups) {
        case 1: return use(typename Isa::template FixedQuery<1>(query));
        case 2: return use(typename Isa::template FixedQuery<2>(query));
        case 3: return use(typename Isa::template FixedQuery<3>(query));
        case 4: return use(typename Isa::template FixedQuery<4>(query));
        case 5: return use(typename Isa::template FixedQuery<5>(query));
        case 6: return use(typename Isa::template FixedQuery<6>(query));
        case 7: return use(typename Isa::template FixedQuery<7>(query));
        case 8: return use(typename Isa::template FixedQuery<8>(query));
        default: return use(typename Isa::LongQuery(query));
    }
}

template <class Isa>
std::int32_t score_u8i8(const std::uint8_t* blocks, std::size_t entries, const ScanQuery& query,
                        std::int32_t* scores) {
    const std::size_t block_bytes = query.groups * kGroupSlots * kBlockEntries;
    return with_query<Isa>(query, [&](const auto& fixed) {
        return score_blocks<Isa>(fixed, blocks, entries, block_bytes, scores);
    });
}

inline void prefetch_rows(const std::uint8_t* rows, std::uint32_t position,
                          const Candidate* candidates, std::size_t count) {
    if (rows == nullptr) return;
    for (std::size_t i = 0; i < count; ++i) {
        prefetch(rows + (candidates[i].position - position) * kStageBytes);
    }
}

template <class Isa>
std::size_t scan_u8i8(const std::uint8_t* blocks, std::size_t entries, const ScanQuery& query,
                      std::int32_t cut, std::uint32_t position, const std::uint8_t* nearby,
                      Candidate* out, std::int32_t* skipped) {
    const std::size_t slots = query.groups * kGroupSlots;
    const std::size_t count = with_query<Isa>(query, [&](const auto& fixed) {
        const auto block_at = [&fixed, blocks, slots](std::size_t entry) {
            const std::uint8_t* block = blocks + entry * slots;
            prefetch(block + kScanAhead);
            return fixed.score(block);
        };
        return sieve<Isa>(block_at, entries, cut, PositionsFrom{position}, out, skipped);
    });
    prefetch_rows(nearby, position, out, count);
    return count;
}

template <class Isa>
std::size_t scan_list_u8i8(const std::uint8_t* blocks, const std::uint16_t* list, std::size_t count,
                           const ScanQuery& query, std::int32_t cut, std::uint32_t position,
                           const std::uint8_t* nearby, Candidate* out, std::int32_t* skipped) {
    const std::size_t block_bytes = query.groups * kGroupSlots * kBlockEntries;
    const auto position_at = [list, position](std::size_t entry) {
        return position + static_cast<std::uint32_t>(list[entry / kBlockEntries] * kBlockEntries);
    };
    const std::size_t found = with_query<Isa>(query, [&](const auto& fixed) {
        const auto block_at = [&fixed, blocks, block_bytes, list, count](std::size_t entry) {
            const std::size_t i = entry / kBlockEntries;
            const std::size_t ahead = i + kBlocksAhead < count ? i + kBlocksAhead : i;
            const std::uint8_t* const coming = blocks + list[ahead] * block_bytes;
            for (std::size_t line = 0; line < block_bytes; line += 64) prefetch(coming + line);
            return fixed.score(blocks + list[i] * block_bytes);
        };
        return sieve<Isa>(block_at, count * kBlockEntries, cut, position_at, out, skipped);
    });
    prefetch_rows(nearby, position, out, found);
    return found;
}

inline const std::uint8_t* stage_row(const StageJob& job, std::uint32_t position) {
    return job.rows + (position - job.first_position) * job.row_bytes;
}

inline double stage_bound(const StageJob& job, std::int32_t major, std::int32_t minor,
                          const std::uint8_t* row) {
    return job.base + job.major_scale * major + job.minor_scale * (minor - job.correction) +
           job.tail_scale * row[kStageBytes - 1];
}

constexpr std::size_t kFour = 4;

// Sums and bounds of four candidates at a time.
struct Four {
    std::int32_t minors[kFour];
    double bounds[kFour];
};

// For families without instructions of their own for it: one by one.
template <class StageQuery>
Four bound_one_by_one(const StageQuery& query, const StageJob& job, const Candidate* candidates) {
    Four four;
    for (std::size_t i = 0; i < kFour; ++i) {
        const std::uint8_t* row = stage_row(job, candidates[i].position);
        four.minors[i] = query.dot(row);
        four.bounds[i] = stage_bound(job, candidates[i].score, four.minors[i], row);
    }
    return four;
}

template <class Isa>
std::size_t enter_u8i8(const StageJob& job, double threshold, const Candidate* candidates,
                       std::size_t count, Contender* contenders, double* skipped) {
    constexpr std::size_t kAhead = 8;
    const typename Isa::StageQuery query(job.query);
    std::size_t kept = 0;
    double largest[kFour] = {*skipped, *skipped, *skipped, *skipped};
    std::size_t i = 0;
    for (; i + kFour <= count; i += kFour) {
        for (std::size_t ahead = i + kAhead; ahead < i + kAhead + kFour && ahead < count; ++ahead) {
            prefetch(stage_row(job, candidates[ahead].position));
        }
        const Four four = query.bound(job, candidates + i);
        std::uint32_t above = 0;
        for (std::size_t l = 0; l < kFour; ++l) {
            const bool below = four.bounds[l] < threshold;
            above |= (below ? 0u : 1u) << l;
            const double ruled_out = below ? four.bounds[l] : largest[l];
            largest[l] = largest[l] > ruled_out ? largest[l] : ruled_out;
        }
        for (; above != 0; above &= above - 1) {
            const std::uint32_t l = lowest_bit(above);
            contenders[kept++] = {candidates[i + l].position, candidates[i + l].score,
                                  four.minors[l], four.bounds[l]};
        }
    }
    for (; i < count; ++i) {
        const std::uint8_t* row = stage_row(job, candidates[i].position);
        const std::int32_t minor = query.dot(row);
        const double bound = stage_bound(job, candidates[i].score, minor, row);
        if (bound < threshold) {
            largest[0] = largest[0] > bound ? largest[0] : bound;
        } else {
            contenders[kept++] = {candidates[i].position, candidates[i].score, minor, bound};
        }
    }
    for (const double value : largest) *skipped = *skipped > value ? *skipped : value;
    return kept;
}

template <class Isa>
std::size_t tighten_u8i8(const StageJob& job, double threshold, Contender* contenders,
                         std::size_t count, double* skipped) {
    constexpr std::size_t kAhead = 8;
    const typename Isa::StageQuery query(job.query);
    std::size_t kept = 0;
    double largest = *skipped;
    for (std::size_t i = 0; i < count; ++i) {
        if (i + kAhead < count) {
            prefetch(stage_row(job, contenders[i + kAhead].position));
        }
        Contender contender = contenders[i];
        const std::uint8_t* row = stage_row(job, contender.position);
        contender.minor += query.dot(row);
        contender.bound = stage_bound(job, contender.major, contender.minor, row);
        if (contender.bound < threshold) {
            largest = largest > contender.bound ? largest : contender.bound;
        } else {
            contenders[kept++] = contender;
        }
    }
    *skipped = largest;
    return kept;
}

template <class Isa>
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

template <class Isa>
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

template <class Isa>
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

template <class Isa>
void score_f32(const float* blocks, std::size_t entries, const float* query, std::size_t dims,
               float* scores) {
    for (std::size_t entry = 0; entry < entries; entry += kBlockEntries) {
        Isa::score_block_f32(blocks, query, dims, scores + entry);
        blocks += dims * kBlockEntries;
    }
}

// Every element by itself, so that the compiler may use whatever width the family has.
inline void score_cones_f32(const ConeArrays& cones, const ConeWeights& weights,
                            const float* cosines, std::size_t count, std::int32_t* scores,
                            std::int32_t* block_maxima) {
    const float* const HIERNORM_APART cone_cosines = cones.cosines;
    const float* const HIERNORM_APART cone_sines = cones.sines;
    const float* const HIERNORM_APART norms = cones.norms;
    const float* const HIERNORM_APART tails = cones.tails;
    std::int32_t* const HIERNORM_APART out = scores;
    const ConeWeights w = weights;
    for (std::size_t i = 0; i < count; ++i) {
        float t = cosines[i] + w.closeness;
        t = t < 1.0f ? t : 1.0f;
        float square = (1.0f - t) * (1.0f + t);
        square = square > 0.0f ? square : 0.0f;
        float cap = t * cone_cosines[i] + sqrtf(square) * cone_sines[i];
        cap = cap > 0.0f ? cap : 0.0f;
        cap = t < cone_cosines[i] ? cap : 1.0f;
        const float bound = w.norm * (norms[i] * cap) + w.tail * tails[i] + w.constant;
        out[i] = static_cast<std::int32_t>(bound * static_cast<float>(kConeUnits));
    }
    for (std::size_t first = 0; first < count; first += kBlockEntries) {
        std::int32_t largest = out[first];
        for (std::size_t i = 1; i < kBlockEntries; ++i) largest = larger(largest, out[first + i]);
        block_maxima[first / kBlockEntries] = largest;
    }
}

template <class Isa>
constexpr Kernels make_kernels(std::string_view name) {
    return Kernels{name,
                   score_u8i8<Isa>,
                   scan_u8i8<Isa>,
                   scan_list_u8i8<Isa>,
                   select_i32<Isa>,
                   enter_u8i8<Isa>,
                   tighten_u8i8<Isa>,
                   dot_f32<Isa>,
                   code_f64<Isa>,
                   squares_f64<Isa>,
                   score_f32<Isa>,
                   score_cones_f32};
}

}  // namespace
}  // namespace hiernorm
