// How entries lie in memory: every size that the core's parts agree on.
//
//     store   chunks of 65,536 entries that never move once they are full
//     chunk   32 tiles of 2,048 entries: the unit of a scan, with one set of norms (TileNorms)
//     tile    128 blocks of 16 entries: what one pass of a kernel scores
//     block   groups of four slots; a group of a block is one line of 64 bytes
//
//     major codes of a block        entry 0   entry 1         entry 15
//       group 0 (slots 0 .. 3)      s0 s1 s2 s3|s0 s1 s2 s3|...|s0 s1 s2 s3      64 bytes
//       group 1 (slots 4 .. 7)      s4 s5 s6 s7|s4 s5 s6 s7|...|s4 s5 s6 s7      64 bytes
//       ...                         one slot a dimension of the major, then the tail's norm, if
//                                   entries differ in it, then zeros up to a whole group
//
//     minor codes of an entry       stage 0: 63 dimensions, norm of the rest      64 bytes
//                                   stage 1: 63 dimensions, norm of the rest      64 bytes
//                                   last:    what is left                       <= 64 bytes
//
//     cones                         blocks of 16 cones in the layout of major codes, on three
//                                   levels: over 16, 256 and 4,096 entries
//
// Canonical sums run in 16 lanes. The int16 partial sums of a scan run over bursts of 8 groups.
#pragma once

#include <cstddef>

namespace hiernorm {

inline constexpr std::size_t kBlockEntries = 16;
inline constexpr std::size_t kTileEntries = 2048;
inline constexpr std::size_t kRangeEntries = 8192;  // for which cells are skipped at a time
inline constexpr std::size_t kChunkEntries = std::size_t{1} << 16;
inline constexpr std::size_t kMaxEntries = (std::size_t{1} << 32) - 1;  // positions are 32-bit
static_assert(kTileEntries % kBlockEntries == 0);
static_assert(kRangeEntries % kTileEntries == 0);
static_assert(kChunkEntries % kRangeEntries == 0);

inline constexpr std::size_t kGroupSlots = 4;
inline constexpr std::size_t kBurstGroups = 8;
inline constexpr std::size_t kLineBytes = kGroupSlots * kBlockEntries;  // one group of a block
inline constexpr std::size_t kStageBytes = 64;
inline constexpr std::size_t kLanes = 16;
inline constexpr std::size_t kConeLevels = 3;

// Codes lie in [-127, 127] and are stored plus kCodeOffset; norms of tails in [0, 255], as they
// are.
inline constexpr int kCodeLimit = 127;
inline constexpr int kCodeOffset = 128;
inline constexpr int kTailLimit = 255;
// Largest |query[j]| + |query[j+1]|: 255 * 128 fits int16, so that no pair saturates on AVX2.
inline constexpr int kPairLimit = 128;
// Largest sum of products over slots 0-1 or 2-3 of a burst, without the offset of the codes.
inline constexpr int kPartialLimit = 32767;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}
constexpr std::size_t divide_up(std::size_t value, std::size_t by) { return (value + by - 1) / by; }

constexpr std::size_t blocks_of(std::size_t entries) { return divide_up(entries, kBlockEntries); }
constexpr std::size_t tiles_of(std::size_t entries) { return divide_up(entries, kTileEntries); }

// Entries under one cone of a level.
constexpr std::size_t entries_per_cone(std::size_t level) {
    std::size_t entries = kBlockEntries;
    for (; level != 0; --level) entries *= kBlockEntries;
    return entries;
}
// The topmost level has one block of cones a chunk.
static_assert(kChunkEntries == entries_per_cone(kConeLevels));

// Where an entry's codes lie within those of its chunk, `slots` an entry: slot 0, and a slot from
// there.
constexpr std::size_t entry_offset(std::size_t entry, std::size_t slots) {
    return entry / kBlockEntries * kBlockEntries * slots + entry % kBlockEntries * kGroupSlots;
}
constexpr std::size_t slot_offset(std::size_t slot) {
    return slot / kGroupSlots * kLineBytes + slot % kGroupSlots;
}

}  // namespace hiernorm
