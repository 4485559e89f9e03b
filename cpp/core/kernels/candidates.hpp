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

// Where candidates are frequent, testing each block for one mispredicts too often: if a stretch of
// blocks has so many of them, the next is appended without a test.
constexpr std::size_t kStretch = 16;  // blocks
constexpr std::ptrdiff_t kFrequent = 3;
constexpr std::ptrdiff_t kFew = 32;  // up to so many, a block rarely has more than eight

// The numbers of the bits of a mask, from `first` on; all 16 may be written.
inline std::size_t append_bits(std::uint32_t mask, std::uint16_t first, std::uint16_t* out) {
    constexpr unsigned kHalf = 8;
    std::size_t count = 0;
    for (unsigned half = 0; half < kBlockEntries; half += kHalf) {
        const std::uint32_t bits = mask >> half & 0xffu;
        for (unsigned lane = 0; lane < kHalf; ++lane) {
            out[count + lane] =
                static_cast<std::uint16_t>(first + half + kLaneTable.lanes[bits][lane]);
        }
        count += kLaneTable.counts[bits];
    }
    return count;
}

// For families without instructions of their own for it.
template <class Isa>
typename Isa::Scores insert_one_by_one(const typename Isa::Scores& best, std::int32_t score) {
    std::int32_t before[kBlockEntries + 1], after[kBlockEntries];
    before[0] = score;
    Isa::store(before + 1, best);
    for (std::size_t i = 0; i < kBlockEntries; ++i) {
        const std::int32_t moved = i == 0 || before[i] < score ? before[i] : score;
        after[i] = larger(before[i + 1], moved);
    }
    return Isa::load(after);
}

// What one query has found, and the cut that it asks for.
struct Found {
    std::int32_t cut;
    Candidate* out;             // behind what was found; room for all entries and one block more
    std::ptrdiff_t before = 0;  // found in the last stretch
};

// Appends, to each of `Queries` lists, the entries with a score above that query's cut;
// `scorer.score(entry, blocks, scores)` gives the scores of so many blocks from there on, query by
// query. The largest score among the others is only looked for if Track.
template <InstructionSet Isa, bool Track, std::size_t Queries, std::size_t Blocks, class Scorer>
void keep_above(Scorer scorer, std::size_t entries, std::uint32_t position, Found* all,
                std::int32_t* skipped) {
    static_assert(!Track || Queries == 1);
    static_assert(kStretch % Blocks == 0);
    using Scores = typename Isa::Scores;
    const std::size_t whole = entries / kBlockEntries * kBlockEntries;
    Scores best = Isa::splat(kLowest);
    Found found[Queries];
    repeat<Queries>([&](auto q) { found[q] = all[q]; });
    const auto keep = [&](auto blocks, std::size_t start) {
        Scores scores[Queries * blocks];
        scorer.score(start, blocks, scores);
        repeat<Queries>([&](auto q) {
            Found& mine = found[q];
            repeat<blocks>([&](auto b) {
                const Scores& block = scores[q * blocks + b];
                const std::size_t entry = start + b * kBlockEntries;
                const bool frequent = mine.before >= kFrequent;
                if (!frequent && !Isa::any_above(block, mine.cut)) {
                    if constexpr (Track) best = Isa::maximum(best, block);
                    return;
                }
                if constexpr (Track) best = Isa::maximum_below(best, block, mine.cut);
                mine.out +=
                    Isa::append(block, mine.cut, position + static_cast<std::uint32_t>(entry),
                                mine.out, Queries == 1 && frequent && mine.before <= kFew);
            });
        });
    };
    std::size_t entry = 0;
    while (entry + Blocks * kBlockEntries <= whole) {
        const std::size_t left = whole - entry, most = kStretch * kBlockEntries;
        const std::size_t end = entry + (left < most ? left : most);
        const Candidate* stretch[Queries];  // where its candidates begin
        repeat<Queries>([&](auto q) { stretch[q] = found[q].out; });
        for (; entry + Blocks * kBlockEntries <= end; entry += Blocks * kBlockEntries) {
            keep(constant<Blocks>, entry);
        }
        repeat<Queries>([&](auto q) { found[q].before = found[q].out - stretch[q]; });
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
    Found found{cut, out, kFrequent};  // the first blocks are appended without a test
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

template <InstructionSet Isa>
std::int32_t nth_largest_i32(const std::int32_t* scores, std::size_t entries, std::size_t n) {
    typename Isa::Scores best = Isa::splat(kLowest);  // in descending order
    std::int32_t in_order[kBlockEntries] = {};
    std::int32_t nth = kLowest;
    for (std::size_t entry = 0; entry < entries; entry += kBlockEntries) {
        std::uint32_t mask = Isa::above(Isa::load(scores + entry), nth);
        if (entries - entry < kBlockEntries) mask &= (1u << (entries - entry)) - 1u;
        for (; mask != 0; mask &= mask - 1) {
            best = Isa::insert(best, scores[entry + lowest_bit(mask)]);
            Isa::store(in_order, best);
            nth = in_order[n - 1];
        }
    }
    return nth;
}

}  // namespace
}  // namespace hiernorm
