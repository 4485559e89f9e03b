// The portable loops, and the choice between them and those of instruction sets.
#include <algorithm>

#include "kernels/kernels.hpp"
#include "matching/scan.hpp"

namespace hiernorm {
namespace {

std::size_t scan_i16(const std::int16_t* rows, const std::int32_t* row_cuts,
                     const std::int16_t* blocks, std::size_t count,
                     const std::int32_t* column_cuts, Survivor* out) {
    std::size_t found = 0;
    for (std::size_t block = 0; block < count; ++block) {
        for (std::size_t row = 0; row < kScanRows; ++row) {
            std::int32_t sums[kScanBlock] = {};
            for (std::size_t pair = 0; pair < kSlots / 2; ++pair) {
                const std::int32_t first = rows[row * kSlots + 2 * pair];
                const std::int32_t second = rows[row * kSlots + 2 * pair + 1];
                const std::int16_t* line = blocks + pair * 2 * kScanBlock;
                for (std::size_t lane = 0; lane < kScanBlock; ++lane) {
                    sums[lane] += first * line[2 * lane] + second * line[2 * lane + 1];
                }
            }
            for (std::size_t lane = 0; lane < kScanBlock; ++lane) {
                if (sums[lane] > std::max(row_cuts[row], column_cuts[lane])) {
                    out[found++] = {static_cast<std::uint32_t>(row),
                                    static_cast<std::uint32_t>(block * kScanBlock + lane), sums[lane]};
                }
            }
        }
        blocks += kSlots * kScanBlock;
        column_cuts += kScanBlock;
    }
    return found;
}

std::int32_t dot_u8(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < bytes; ++i) sum += std::int32_t{a[i]} * std::int32_t{b[i]};
    return sum;
}

constexpr MatchKernels kScalar{scan_i16, dot_u8};

}  // namespace

#if defined(HIERNORM_X86)
extern const MatchKernels kAvx2MatchKernels;
extern const MatchKernels kAvx512VnniMatchKernels;
#endif

const MatchKernels& match_kernels() {
#if defined(HIERNORM_X86)
    if (active_kernels().name == "avx512vnni") return kAvx512VnniMatchKernels;
    // Every other family but the portable one runs on processors that have AVX2.
    if (active_kernels().name != "scalar") return kAvx2MatchKernels;
#endif
    return kScalar;
}

}  // namespace hiernorm
