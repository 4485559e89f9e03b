// CRC-32C (Castagnoli): the checksum of blocks of a file. The processor's instruction and the
// tables give the same bits; the flags of a family's translation unit decide which it uses.
//
//     crc = all ones;  for each byte: crc = (crc >> 8) ^ table[(crc ^ byte) & 255];  result = ~crc
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_2__) || (defined(_MSC_VER) && defined(__AVX2__))
#include <nmmintrin.h>
#define HIERNORM_CRC_X86
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#define HIERNORM_CRC_ARM
#endif

namespace hiernorm {
namespace {

#if !defined(HIERNORM_CRC_X86) && !defined(HIERNORM_CRC_ARM)

using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

// Table t is the effect of a byte that t further bytes follow.
constexpr CrcTables make_crc_tables() {
    CrcTables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0x82F63B78u : 0u);
        tables[0][byte] = crc;
    }
    for (std::size_t t = 1; t < tables.size(); ++t) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[t - 1][byte];
            tables[t][byte] = (before >> 8) ^ tables[0][before & 255u];
        }
    }
    return tables;
}
constexpr CrcTables kCrcTables = make_crc_tables();

#endif

inline std::uint32_t crc_of_byte(std::uint32_t crc, std::uint8_t byte) {
#if defined(HIERNORM_CRC_X86)
    return _mm_crc32_u8(crc, byte);
#elif defined(HIERNORM_CRC_ARM)
    return __crc32cb(crc, byte);
#else
    return (crc >> 8) ^ kCrcTables[0][(crc ^ byte) & 255u];
#endif
}

inline std::uint32_t crc_of_word(std::uint32_t crc, const std::uint8_t* bytes) {
#if defined(HIERNORM_CRC_X86) || defined(HIERNORM_CRC_ARM)
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof(word));
#if defined(HIERNORM_CRC_X86)
    return static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
#else
    return __crc32cd(crc, word);
#endif
#else
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 8; ++i) {
        const std::uint32_t mixed = i < 4 ? (crc >> (8 * i)) & 255u : 0u;
        next ^= kCrcTables[7 - i][mixed ^ bytes[i]];
    }
    return next;
#endif
}

inline std::uint32_t crc32c(std::uint32_t crc, const std::byte* data, std::size_t count) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(data);
    crc = ~crc;
    for (; count >= 8; count -= 8, bytes += 8) crc = crc_of_word(crc, bytes);
    for (; count != 0; --count, ++bytes) crc = crc_of_byte(crc, *bytes);
    return ~crc;
}

}  // namespace
}  // namespace hiernorm
