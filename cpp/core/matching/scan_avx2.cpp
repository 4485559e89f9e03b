// AVX2: `madd` forms the sums of two products of int16 in int32. Processors with AVX-512 but no
// VNNI use it too.
#include <immintrin.h>

#include "matching/scan.hpp"

namespace hiernorm {
namespace {

std::uint32_t mask_of(__m256i lanes_i32x8) {
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes_i32x8)));
}

const __m256i* lines(const void* memory) { return static_cast<const __m256i*>(memory); }

std::size_t scan_i16(const std::int16_t* rows, const std::int32_t* row_cuts,
                     const std::int16_t* blocks, std::size_t count,
                     const std::int32_t* column_cuts, Survivor* out) {
    const auto* words = reinterpret_cast<const std::int32_t*>(rows);  // two slots each
    std::size_t found = 0;
    for (std::size_t block = 0; block < count; ++block) {
        __m256i low_i32x8[kScanRows], high_i32x8[kScanRows];
        for (std::size_t row = 0; row < kScanRows; ++row) {
            low_i32x8[row] = high_i32x8[row] = _mm256_setzero_si256();
        }
        for (std::size_t pair = 0; pair < kSlots / 2; ++pair) {
            const __m256i* line = lines(blocks + pair * 2 * kScanBlock);
            const __m256i left_i16x16 = _mm256_loadu_si256(line);
            const __m256i right_i16x16 = _mm256_loadu_si256(line + 1);
            for (std::size_t row = 0; row < kScanRows; ++row) {
                const __m256i row_i16x16 = _mm256_set1_epi32(words[row * kSlots / 2 + pair]);
                low_i32x8[row] =
                    _mm256_add_epi32(low_i32x8[row], _mm256_madd_epi16(left_i16x16, row_i16x16));
                high_i32x8[row] =
                    _mm256_add_epi32(high_i32x8[row], _mm256_madd_epi16(right_i16x16, row_i16x16));
            }
        }
        const __m256i low_cuts_i32x8 = _mm256_loadu_si256(lines(column_cuts));
        const __m256i high_cuts_i32x8 = _mm256_loadu_si256(lines(column_cuts + 8));
        __m256i low_above_i32x8[kScanRows], high_above_i32x8[kScanRows];
        __m256i any_i32x8 = _mm256_setzero_si256();
        for (std::size_t row = 0; row < kScanRows; ++row) {
            const __m256i cut_i32x8 = _mm256_set1_epi32(row_cuts[row]);
            low_above_i32x8[row] = _mm256_cmpgt_epi32(low_i32x8[row],
                                                      _mm256_max_epi32(cut_i32x8, low_cuts_i32x8));
            high_above_i32x8[row] = _mm256_cmpgt_epi32(
                high_i32x8[row], _mm256_max_epi32(cut_i32x8, high_cuts_i32x8));
            any_i32x8 = _mm256_or_si256(
                any_i32x8, _mm256_or_si256(low_above_i32x8[row], high_above_i32x8[row]));
        }
        if (!_mm256_testz_si256(any_i32x8, any_i32x8)) {
            for (std::size_t row = 0; row < kScanRows; ++row) {
                std::uint32_t mask =
                    mask_of(low_above_i32x8[row]) | mask_of(high_above_i32x8[row]) << 8;
                std::int32_t scores[kScanBlock];
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(scores), low_i32x8[row]);
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(scores + 8), high_i32x8[row]);
                for (; mask != 0; mask &= mask - 1) {
                    const int lane = _mm_popcnt_u32((mask & (0u - mask)) - 1u);
                    out[found++] = {static_cast<std::uint32_t>(row),
                                    static_cast<std::uint32_t>(block * kScanBlock + lane), scores[lane]};
                }
            }
        }
        blocks += kSlots * kScanBlock;
        column_cuts += kScanBlock;
    }
    return found;
}

std::int32_t dot_u8(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
    __m256i sums_i32x8 = _mm256_setzero_si256();
    for (std::size_t at = 0; at < bytes; at += 16) {
        const __m256i a_i16x16 = _mm256_cvtepu8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at)));
        const __m256i b_i16x16 = _mm256_cvtepu8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + at)));
        sums_i32x8 = _mm256_add_epi32(sums_i32x8, _mm256_madd_epi16(a_i16x16, b_i16x16));
    }
    __m128i sums_i32x4 = _mm_add_epi32(_mm256_castsi256_si128(sums_i32x8),
                                       _mm256_extracti128_si256(sums_i32x8, 1));
    sums_i32x4 = _mm_add_epi32(sums_i32x4, _mm_shuffle_epi32(sums_i32x4, 0x4e));
    sums_i32x4 = _mm_add_epi32(sums_i32x4, _mm_shuffle_epi32(sums_i32x4, 0xb1));
    return _mm_cvtsi128_si32(sums_i32x4);
}

}  // namespace

extern const MatchKernels kAvx2MatchKernels;
const MatchKernels kAvx2MatchKernels{scan_i16, dot_u8};

}  // namespace hiernorm
