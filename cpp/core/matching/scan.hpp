// The inner loops of matching byte vectors: bounds by int16 codes, products of bytes.
//
// A row of codes has kSlots int16 values; the product of two rows of codes bounds the product of
// the vectors that they stand for (byte_set.hpp). Blocks hold 16 rows, two slots of a row side by
// side, so that one multiply-add of pairs serves 8 or 16 rows:
//
//              row 0    row 1          row 15
//     pair 0   s0 s1  | s0 s1 |  ... | s0 s1      64 bytes
//     pair 1   s2 s3  | s2 s3 |  ... | s2 s3      64 bytes
//
// All sums are exact in int32, so all families name the same survivors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hiernorm {

inline constexpr std::size_t kSlots = 32;
inline constexpr std::size_t kScanRows = 4;  // rows that share each load of a block
inline constexpr std::size_t kScanBlock = 16;
inline constexpr std::size_t kByteStep = 32;  // rows of bytes are padded to a multiple of it

// A pair of vectors whose product must be computed.
struct Survivor {
    std::uint32_t row;     // 0 .. kScanRows - 1
    std::uint32_t column;  // counted from the first block of the scan
    std::int32_t score;
};

struct MatchKernels {
    // Writes the pairs of `kScanRows` rows of codes and all rows of `count` blocks whose score is
    // above the row's cut and above the column's; returns their number. `out` has room for all.
    std::size_t (*scan_i16)(const std::int16_t* rows, const std::int32_t* row_cuts,
                            const std::int16_t* blocks, std::size_t count,
                            const std::int32_t* column_cuts, Survivor* out);

    // The inner product of two rows of `bytes` bytes, a multiple of kByteStep.
    std::int32_t (*dot_u8)(const std::uint8_t* a, const std::uint8_t* b, std::size_t bytes);
};

// The loops for the family of kernels in use (kernels/kernels.hpp).
const MatchKernels& match_kernels();

}  // namespace hiernorm
