// The steps scan, seed and skip cells as templates over one instruction set.
#pragma once

#include "kernels/instruction_set.hpp"
#include "kernels/lanes.hpp"
#include "kernels/prefetch.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kScanAhead = 2048;  // bytes of codes that are fetched ahead of the scan
constexpr std::size_t kBlocksAhead = 8;   // listed blocks that are fetched ahead

inline void prefetch_block(const std::uint8_t* block, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += kLineBytes) prefetch(block + i);
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

// Appends the entries with score > cut; `block_at(entry)` gives the scores of the block there.
// Where candidates are frequent, testing each block for one mispredicts too often: such strips
// append without a test. `out` has room for all entries and one block more. The largest score among
// the others is only looked for if Track.
template <InstructionSet Isa, bool Track, class BlockAt>
std::size_t keep_above(const BlockAt& block_at, std::size_t entries, std::int32_t cut,
                       std::uint32_t position, Candidate* out, std::int32_t* skipped) {
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
            out += Isa::append(block, cut, position + static_cast<std::uint32_t>(entry), out);
        }
        frequent = out - strip >= kFrequent;
    }
    std::int32_t largest = Isa::horizontal_maximum(best);
    if (whole < entries) {
        alignas(64) std::int32_t scores[kBlockEntries];
        Isa::store(scores, block_at(whole));
        for (std::size_t i = 0; i < entries - whole; ++i) {
            if (scores[i] > cut) {
                *out++ = {position + static_cast<std::uint32_t>(whole + i), scores[i]};
            } else {
                largest = larger(largest, scores[i]);
            }
        }
    }
    if constexpr (Track) *skipped = larger(*skipped, largest);
    return static_cast<std::size_t>(out - begin);
}

template <InstructionSet Isa, class BlockAt>
std::size_t keep_above(const BlockAt& block_at, std::size_t entries, std::int32_t cut,
                       std::uint32_t position, Candidate* out, std::int32_t* skipped) {
    return skipped != nullptr
               ? keep_above<Isa, true>(block_at, entries, cut, position, out, skipped)
               : keep_above<Isa, false>(block_at, entries, cut, position, out, nullptr);
}

template <InstructionSet Isa>
std::size_t sift_i32(const std::int32_t* scores, std::size_t entries, std::int32_t cut,
                     std::uint32_t position, Candidate* out, std::int32_t* skipped) {
    return keep_above<Isa>([scores](std::size_t entry) { return Isa::load(scores + entry); },
                           entries, cut, position, out, skipped);
}

template <InstructionSet Isa, class Query>
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
// to kBurstGroups keep them in registers, longer ones loop over bursts.
template <InstructionSet Isa, class Use>
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

template <InstructionSet Isa>
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

template <InstructionSet Isa>
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
        return keep_above<Isa>(block_at, entries, cut, position, out, skipped);
    });
    prefetch_rows(nearby, position, out, count);
    return count;
}

template <InstructionSet Isa>
std::size_t scan_list_u8i8(const std::uint8_t* blocks, const std::uint16_t* list, std::size_t count,
                           std::size_t listed, const ScanQuery& query, std::int32_t cut,
                           std::uint32_t position, const std::uint8_t* nearby, Candidate* out) {
    const std::size_t block_bytes = query.groups * kGroupSlots * kBlockEntries;
    Candidate* const begin = out;
    with_query<Isa>(query, [&](const auto& fixed) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t block = list[i];
            if (i + kBlocksAhead < listed) {
                prefetch_block(blocks + list[i + kBlocksAhead] * block_bytes, block_bytes);
            }
            const typename Isa::Scores scores = fixed.score(blocks + block * block_bytes);
            if (!Isa::any_above(scores, cut)) continue;
            const auto first = position + static_cast<std::uint32_t>(block * kBlockEntries);
            out += Isa::append(scores, cut, first, out);
        }
    });
    const auto found = static_cast<std::size_t>(out - begin);
    prefetch_rows(nearby, position, begin, found);
    return found;
}

template <InstructionSet Isa>
std::size_t skip_cells_u8i8(const std::uint8_t* blocks, const std::uint16_t* list,
                            std::size_t count, const ScanQuery& query, std::int32_t cut,
                            std::uint16_t* out) {
    constexpr unsigned kHalf = 8;
    const std::size_t block_bytes = query.groups * kGroupSlots * kBlockEntries;
    std::uint16_t* const begin = out;
    with_query<Isa>(query, [&](const auto& fixed) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t block = list[i];
            if (i + kBlocksAhead < count) {
                prefetch_block(blocks + list[i + kBlocksAhead] * block_bytes, block_bytes);
            }
            const std::uint32_t mask = Isa::above(fixed.score(blocks + block * block_bytes), cut);
            for (unsigned half = 0; half < kBlockEntries; half += kHalf) {
                const std::uint32_t bits = mask >> half & 0xffu;
                const auto first = static_cast<std::uint16_t>(block * kBlockEntries + half);
                for (unsigned lane = 0; lane < kHalf; ++lane) {
                    out[lane] = static_cast<std::uint16_t>(first + kLaneTable.lanes[bits][lane]);
                }
                out += kLaneTable.counts[bits];
            }
        }
    });
    return static_cast<std::size_t>(out - begin);
}

}  // namespace
}  // namespace hiernorm
