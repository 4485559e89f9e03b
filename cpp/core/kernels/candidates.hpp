// From scores to candidates, as templates over one instruction set: the entries above a cut.
#pragma once

#include "kernels/instruction_set.hpp"
#include "kernels/lanes.hpp"

namespace hiernorm {
namespace {

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
    Candidate* out;            // behind what was found; room for all entries and one block more
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

}  // namespace
}  // namespace hiernorm
