// AVX-512 VNNI: `dpwssd` adds the two products of int16 pairs to int32, `dpbusd` four of bytes.
#include <immintrin.h>

#include <bit>

#include "matching/scan.hpp"

namespace hiernorm {
namespace {

// Survivors of one block and all rows.
std::size_t keep_survivors(const __m512i* scores_i32x16, const std::int32_t* row_cuts,
                           const std::int32_t* column_cuts, std::uint32_t first_column,
                           Survivor* out) {
    const __m512i column_cuts_i32x16 = _mm512_loadu_si512(column_cuts);
    std::size_t found = 0;
    for (std::uint32_t row = 0; row < kScanRows; ++row) {
        const __m512i cuts_i32x16 =
            _mm512_max_epi32(column_cuts_i32x16, _mm512_set1_epi32(row_cuts[row]));
        std::uint32_t mask = _mm512_cmpgt_epi32_mask(scores_i32x16[row], cuts_i32x16);
        if (mask == 0) continue;
        alignas(64) std::int32_t scores[kScanBlock];
        _mm512_store_si512(scores, scores_i32x16[row]);
        for (; mask != 0; mask &= mask - 1) {
            const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
            out[found++] = {row, first_column + lane, scores[lane]};
        }
    }
    return found;
}

// Blocks share each broadcast of a row, rows share each load of a block: 8 sums at once keep the
// multipliers busy.
template <std::size_t kBlocks>
std::size_t scan_blocks(const std::int16_t* rows, const std::int32_t* row_cuts,
                        const std::int16_t* blocks, const std::int32_t* column_cuts,
                        std::uint32_t first_column, Survivor* out) {
    const auto* words = reinterpret_cast<const std::int32_t*>(rows);  // two slots each
    __m512i sums_i32x16[kBlocks][kScanRows];
    for (auto& of_block : sums_i32x16) {
        for (__m512i& sum : of_block) sum = _mm512_setzero_si512();
    }
    for (std::size_t pair = 0; pair < kSlots / 2; ++pair) {
        __m512i row_i16x32[kScanRows];
        for (std::size_t row = 0; row < kScanRows; ++row) {
            row_i16x32[row] = _mm512_set1_epi32(words[row * kSlots / 2 + pair]);
        }
        for (std::size_t block = 0; block < kBlocks; ++block) {
            const __m512i block_i16x32 = _mm512_loadu_si512(
                blocks + block * kSlots * kScanBlock + pair * 2 * kScanBlock);
            for (std::size_t row = 0; row < kScanRows; ++row) {
                sums_i32x16[block][row] =
                    _mm512_dpwssd_epi32(sums_i32x16[block][row], block_i16x32, row_i16x32[row]);
            }
        }
    }
    std::size_t found = 0;
    for (std::size_t block = 0; block < kBlocks; ++block) {
        found += keep_survivors(sums_i32x16[block], row_cuts, column_cuts + block * kScanBlock,
                                first_column + static_cast<std::uint32_t>(block * kScanBlock),
                                out + found);
    }
    return found;
}

std::size_t scan_i16(const std::int16_t* rows, const std::int32_t* row_cuts,
                     const std::int16_t* blocks, std::size_t count,
                     const std::int32_t* column_cuts, Survivor* out) {
    constexpr std::size_t kTogether = 2;
    std::size_t found = 0, block = 0;
    const auto scan = [&]<std::size_t kBlocks>() {
        found += scan_blocks<kBlocks>(rows, row_cuts, blocks + block * kSlots * kScanBlock,
                                      column_cuts + block * kScanBlock,
                                      static_cast<std::uint32_t>(block * kScanBlock), out + found);
        block += kBlocks;
    };
    while (block + kTogether <= count) scan.template operator()<kTogether>();
    while (block < count) scan.template operator()<1>();
    return found;
}

// a . b = a . (b - 128) + 128 sum(a): `dpbusd` wants one factor signed. No sum leaves int32.
std::int32_t dot_u8(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
    const __m512i offset_u8x64 = _mm512_set1_epi8(static_cast<char>(0x80));
    const __m512i ones_i8x64 = _mm512_set1_epi8(1);
    __m512i products_i32x16 = _mm512_setzero_si512(), sums_i32x16 = _mm512_setzero_si512();
    for (std::size_t at = 0; at < bytes; at += 64) {
        const __mmask64 inside =
            bytes - at < 64 ? (__mmask64{1} << (bytes - at)) - 1 : ~__mmask64{0};
        const __m512i a_u8x64 = _mm512_maskz_loadu_epi8(inside, a + at);  // zero beyond the end
        const __m512i b_i8x64 =
            _mm512_xor_si512(_mm512_maskz_loadu_epi8(inside, b + at), offset_u8x64);
        products_i32x16 = _mm512_dpbusd_epi32(products_i32x16, a_u8x64, b_i8x64);
        sums_i32x16 = _mm512_dpbusd_epi32(sums_i32x16, a_u8x64, ones_i8x64);
    }
    return _mm512_reduce_add_epi32(
        _mm512_add_epi32(products_i32x16, _mm512_slli_epi32(sums_i32x16, 7)));
}

}  // namespace

extern const MatchKernels kAvx512VnniMatchKernels;
const MatchKernels kAvx512VnniMatchKernels{scan_i16, dot_u8};

}  // namespace hiernorm
