// What the kernel templates share: extremes, the lowest bit, the lanes of a mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#endif

// Internal linkage, and no function templates of the standard library: code compiled with one
// family's flags must never be the copy that the linker keeps for the others.
namespace hiernorm {
namespace {

template <std::size_t Value>
constexpr std::integral_constant<std::size_t, Value> constant{};

// Calls step(0) .. step(Count - 1) with constants: registers that they number stay registers.
template <std::size_t Count, class Step>
inline void repeat(Step step) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (step(std::integral_constant<std::size_t, I>{}), ...);
    }(std::make_index_sequence<Count>{});
}

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

// The numbers of the bits of every mask of eight, and how many they are.
struct LaneTable {
    constexpr LaneTable() : lanes{}, counts{} {
        for (unsigned mask = 0; mask < 256; ++mask) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                if ((mask >> bit & 1u) == 0) continue;
                lanes[mask][counts[mask]++] = static_cast<std::uint8_t>(bit);
            }
        }
    }
    alignas(8) std::uint8_t lanes[256][8];
    std::uint8_t counts[256];
};
constexpr LaneTable kLaneTable;

}  // namespace
}  // namespace hiernorm
