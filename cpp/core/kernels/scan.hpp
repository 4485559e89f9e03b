// The steps scan, seed and skip cells as templates over one instruction set.
#pragma once

#include "kernels/candidates.hpp"
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

// A query of few groups: all of them stay in registers.
template <InstructionSet Isa, std::size_t Groups>
struct ShortQuery {
    static constexpr std::size_t kBlocks = 1;
    explicit ShortQuery(const ScanQuery& query) : fixed(query) {}
    template <class Blocks>
    void score(const std::uint8_t* blocks, Blocks count, typename Isa::Scores* out) const {
        repeat<count>([&](auto b) { out[b] = fixed.score(blocks + b * (Groups * kLineBytes)); });
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
        Isa::template score_shared<1, count>(&query, blocks, out);
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
struct SharedScan {
    template <class Blocks>
    void score(const std::uint8_t* blocks, Blocks count, typename Isa::Scores* out) const {
        Isa::template score_shared<Queries, count>(queries, blocks, out);
    }
    const ScanQuery* queries;
};

template <InstructionSet Isa>
void scan_shared_u8i8(const std::uint8_t* blocks, std::size_t entries, const ScanQuery* queries,
                      std::size_t count, const std::int32_t* cuts, std::uint32_t position,
                      const std::uint8_t* nearby, Candidate* const* outs, std::size_t* counts) {
    constexpr std::size_t kQueries = Isa::kSharedQueries;
    std::size_t first = 0;
    if constexpr (kQueries > 1) {
        for (; first + kQueries <= count; first += kQueries) {
            const SharedScan<Isa, kQueries> shared{queries + first};
            const BlockScores<Isa, SharedScan<Isa, kQueries>> scorer{
                shared, blocks, queries[first].groups * kGroupSlots};
            Found found[kQueries];
            repeat<kQueries>([&](auto q) { found[q] = {cuts[first + q], outs[first + q]}; });
            keep_above<Isa, false, kQueries, Isa::kSharedBlocks>(scorer, entries, position, found,
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
        bool frequent = false;
        const Candidate* stretch = out;  // where its candidates begin
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t block = list[i];
            if (i + kBlocksAhead < listed) {
                prefetch_block(blocks + list[i + kBlocksAhead] * block_bytes, block_bytes);
            }
            const typename Isa::Scores scores = fixed.score(blocks + block * block_bytes);
            if (i % kStretch == 0) {
                frequent = out - stretch >= kFrequent;
                stretch = out;
            }
            if (!frequent && !Isa::any_above(scores, cut)) continue;
            const auto first = position + static_cast<std::uint32_t>(block * kBlockEntries);
            out += Isa::append(scores, cut, first, out, false);
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
    const std::size_t block_bytes = query.groups * kGroupSlots * kBlockEntries;
    std::uint16_t* const begin = out;
    with_query<Isa>(query, [&](const auto& fixed) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t block = list[i];
            if (i + kBlocksAhead < count) {
                prefetch_block(blocks + list[i + kBlocksAhead] * block_bytes, block_bytes);
            }
            out += Isa::append_numbers(fixed.score(blocks + block * block_bytes), cut,
                                       static_cast<std::uint16_t>(block * kBlockEntries), out);
        }
    });
    return static_cast<std::size_t>(out - begin);
}

}  // namespace
}  // namespace hiernorm
