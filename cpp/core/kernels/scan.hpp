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

// What one query has found, and the cut that it asks for.
struct Found {
    std::int32_t cut;
    Candidate* out;  // behind what was found; room for all entries and one block more
    std::size_t untested = 0;  // blocks before this entry are appended without a test
};

// Appends, to each of `Queries` lists, the entries with a score above that query's cut;
// `scorer.score(entry, blocks, scores)` gives the scores of so many blocks from there on, query by
// query. Where candidates are frequent, testing each block for one mispredicts too often: the next
// blocks are appended without a test. The largest score among the others is only looked for if
// Track.
template <InstructionSet Isa, bool Track, std::size_t Queries, std::size_t Blocks, class Scorer>
void keep_above(Scorer scorer, std::size_t entries, std::uint32_t position, Found* all,
                std::int32_t* skipped) {
    constexpr std::size_t kNear = 4 * kBlockEntries;  // two candidates as close are frequent
    static_assert(!Track || Queries == 1);
    using Scores = typename Isa::Scores;
    const std::size_t whole = entries / kBlockEntries * kBlockEntries;
    Scores best = Isa::splat(kLowest);
    Found found[Queries];
    std::size_t next_near[Queries];  // a candidate before this entry is close to the last one
    repeat<Queries>([&](auto q) {
        found[q] = all[q];
        next_near[q] = 0;
    });
    const auto keep = [&](auto blocks, std::size_t start) {
        Scores scores[Queries * blocks];
        scorer.score(start, blocks, scores);
        repeat<Queries>([&](auto q) {
            Found& mine = found[q];
            repeat<blocks>([&](auto b) {
                const Scores& block = scores[q * blocks + b];
                const std::size_t entry = start + b * kBlockEntries;
                if (entry >= mine.untested && !Isa::any_above(block, mine.cut)) {
                    if constexpr (Track) best = Isa::maximum(best, block);
                    return;
                }
                if constexpr (Track) best = Isa::maximum_below(best, block, mine.cut);
                const std::size_t count = Isa::append(
                    block, mine.cut, position + static_cast<std::uint32_t>(entry), mine.out);
                mine.out += count;
                const bool close = count > 1 || (count == 1 && entry < next_near[q]);
                mine.untested = close ? entry + kBlockEntries + kNear : mine.untested;
                next_near[q] = count != 0 ? entry + kNear : next_near[q];
            });
        });
    };
    std::size_t entry = 0;
    for (; entry + Blocks * kBlockEntries <= whole; entry += Blocks * kBlockEntries) {
        keep(constant<Blocks>, entry);
    }
    if constexpr (Blocks > 1) {
        for (; entry < whole; entry += kBlockEntries) keep(constant<1>, entry);
    }
    std::int32_t largest = Isa::horizontal_maximum(best);
    if (whole < entries) {
        Scores last[Queries];
        scorer.score(whole, constant<1>, last);
        for (std::size_t q = 0; q < Queries; ++q) {
            alignas(64) std::int32_t scores[kBlockEntries];
            Isa::store(scores, last[q]);
            for (std::size_t i = 0; i < entries - whole; ++i) {
                if (scores[i] > found[q].cut) {
                    *found[q].out++ = {position + static_cast<std::uint32_t>(whole + i), scores[i]};
                } else {
                    largest = larger(largest, scores[i]);
                }
            }
        }
    }
    if constexpr (Track) *skipped = larger(*skipped, largest);
    repeat<Queries>([&](auto q) { all[q] = found[q]; });
}

// For one query; returns how many were appended to `out`.
template <InstructionSet Isa, std::size_t Blocks, class Scorer>
std::size_t keep_above(const Scorer& scorer, std::size_t entries, std::int32_t cut,
                       std::uint32_t position, Candidate* out, std::int32_t* skipped) {
    Found found{cut, out};
    if (skipped != nullptr) {
        keep_above<Isa, true, 1, Blocks>(scorer, entries, position, &found, skipped);
    } else {
        keep_above<Isa, false, 1, Blocks>(scorer, entries, position, &found, nullptr);
    }
    return static_cast<std::size_t>(found.out - out);
}

// Scores that are known already.
template <InstructionSet Isa>
struct KnownScores {
    template <class Blocks>
    void score(std::size_t entry, Blocks blocks, typename Isa::Scores* out) const {
        repeat<blocks>([&](auto b) { out[b] = Isa::load(scores + entry + b * kBlockEntries); });
    }
    const std::int32_t* scores;
};

template <InstructionSet Isa>
std::size_t sift_i32(const std::int32_t* scores, std::size_t entries, std::int32_t cut,
                     std::uint32_t position, Candidate* out, std::int32_t* skipped) {
    return keep_above<Isa, 1>(KnownScores<Isa>{scores}, entries, cut, position, out, skipped);
}

// A query of few groups: all of them stay in registers.
template <InstructionSet Isa, std::size_t Groups>
struct ShortQuery {
    static constexpr std::size_t kBlocks = 1;
    explicit ShortQuery(const ScanQuery& query) : fixed(query) {}
    template <class Blocks>
    void score(const std::uint8_t* blocks, Blocks count, typename Isa::Scores* out) const {
        repeat<count>(
            [&](auto b) { out[b] = fixed.score(blocks + b * (Groups * kLineBytes)); });
    }
    typename Isa::Scores score(const std::uint8_t* block) const { return fixed.score(block); }
    typename Isa::template FixedQuery<Groups> fixed;
};

// Any other: several blocks share the loads of its groups.
template <InstructionSet Isa>
struct LongQuery {
    static constexpr std::size_t kBlocks = Isa::kLongBlocks;
    explicit LongQuery(const ScanQuery& q) : query(q) {}
    template <class Blocks>
    void score(const std::uint8_t* blocks, Blocks count, typename Isa::Scores* out) const {
        Isa::template score_panel<1, count>(&query, blocks, out);
    }
    typename Isa::Scores score(const std::uint8_t* block) const {
        typename Isa::Scores scores[1];
        score(block, constant<1>, scores);
        return scores[0];
    }
    const ScanQuery& query;
};

// Calls `use(query)` with the query's registers laid out for its number of groups.
template <InstructionSet Isa, class Use>
auto with_query(const ScanQuery& query, Use use) {
    switch (query.groups) {
        case 1: return use(ShortQuery<Isa, 1>(query));
        case 2: return use(ShortQuery<Isa, 2>(query));
        case 3: return use(ShortQuery<Isa, 3>(query));
        case 4: return use(ShortQuery<Isa, 4>(query));
        case 5: return use(ShortQuery<Isa, 5>(query));
        case 6: return use(ShortQuery<Isa, 6>(query));
        case 7: return use(ShortQuery<Isa, 7>(query));
        case 8: return use(ShortQuery<Isa, 8>(query));
        default: return use(LongQuery<Isa>(query));
    }
}

template <InstructionSet Isa>
std::int32_t score_u8i8(const std::uint8_t* blocks, std::size_t entries, const ScanQuery& query,
                        std::int32_t* scores) {
    const std::size_t block_bytes = query.groups * kLineBytes;
    return with_query<Isa>(query, [&](const auto& laid_out) {
        constexpr auto kBlocks = constant<std::remove_cvref_t<decltype(laid_out)>::kBlocks>;
        typename Isa::Scores best = Isa::splat(kLowest);
        std::size_t entry = 0;
        const auto score_blocks = [&](auto count) {
            typename Isa::Scores found[count];
            laid_out.score(blocks, count, found);
            repeat<count>([&](auto b) {
                Isa::store(scores + entry + b * kBlockEntries, found[b]);
                best = Isa::maximum(best, found[b]);
            });
            blocks += count * block_bytes;
            entry += count * kBlockEntries;
        };
        while (entry + kBlocks * kBlockEntries <= entries) score_blocks(kBlocks);
        while (entry + kBlockEntries <= entries) score_blocks(constant<1>);
        std::int32_t largest = Isa::horizontal_maximum(best);
        if (entry < entries) Isa::store(scores + entry, laid_out.score(blocks));
        for (; entry < entries; ++entry) largest = larger(largest, scores[entry]);
        return largest;
    });
}

inline void prefetch_rows(const std::uint8_t* rows, std::uint32_t position,
                          const Candidate* candidates, std::size_t count) {
    if (rows == nullptr) return;
    for (std::size_t i = 0; i < count; ++i) {
        prefetch(rows + (candidates[i].position - position) * kStageBytes);
    }
}

// The scores of consecutive blocks, fetched ahead.
template <InstructionSet Isa, class Query>
struct BlockScores {
    template <class Blocks>
    void score(std::size_t entry, Blocks count, typename Isa::Scores* out) const {
        const std::uint8_t* from = blocks + entry * slots;
        for (std::size_t b = 0; b < count; ++b) {
            prefetch(from + kScanAhead + b * kBlockEntries * slots);
        }
        query.score(from, count, out);
    }
    Query query;  // a copy: what is written to a list cannot change it
    const std::uint8_t* blocks;
    std::size_t slots;
};

template <InstructionSet Isa>
std::size_t scan_u8i8(const std::uint8_t* blocks, std::size_t entries, const ScanQuery& query,
                      std::int32_t cut, std::uint32_t position, const std::uint8_t* nearby,
                      Candidate* out, std::int32_t* skipped) {
    const std::size_t count = with_query<Isa>(query, [&](const auto& laid_out) {
        using Query = std::remove_cvref_t<decltype(laid_out)>;
        const BlockScores<Isa, Query> scorer{laid_out, blocks, query.groups * kGroupSlots};
        return keep_above<Isa, Query::kBlocks>(scorer, entries, cut, position, out, skipped);
    });
    prefetch_rows(nearby, position, out, count);
    return count;
}

// Queries of one length that share the loads of every block.
template <InstructionSet Isa, std::size_t Queries>
struct Panel {
    template <class Blocks>
    void score(const std::uint8_t* blocks, Blocks count, typename Isa::Scores* out) const {
        Isa::template score_panel<Queries, count>(queries, blocks, out);
    }
    const ScanQuery* queries;
};

template <InstructionSet Isa>
void scan_panel_u8i8(const std::uint8_t* blocks, std::size_t entries, const ScanQuery* queries,
                     std::size_t count, const std::int32_t* cuts, std::uint32_t position,
                     const std::uint8_t* nearby, Candidate* const* outs, std::size_t* counts) {
    constexpr std::size_t kQueries = Isa::kPanelQueries;
    std::size_t first = 0;
    if constexpr (kQueries > 1) {
        for (; first + kQueries <= count; first += kQueries) {
            const Panel<Isa, kQueries> panel{queries + first};
            const BlockScores<Isa, Panel<Isa, kQueries>> scorer{
                panel, blocks, queries[first].groups * kGroupSlots};
            Found found[kQueries];
            repeat<kQueries>([&](auto q) { found[q] = {cuts[first + q], outs[first + q]}; });
            keep_above<Isa, false, kQueries, Isa::kPanelBlocks>(scorer, entries, position, found,
                                                                nullptr);
            repeat<kQueries>([&](auto q) {
                counts[first + q] = static_cast<std::size_t>(found[q].out - outs[first + q]);
                prefetch_rows(nearby, position, outs[first + q], counts[first + q]);
            });
        }
    }
    for (; first < count; ++first) {
        counts[first] = scan_u8i8<Isa>(blocks, entries, queries[first], cuts[first], position,
                                       nearby, outs[first], nullptr);
    }
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
