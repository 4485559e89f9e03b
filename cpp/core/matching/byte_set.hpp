// Byte vectors (uint8 SIFT descriptors and the like) with codes that bound their inner products.
//
// Symbols: x a vector of bytes, y its first slots under a rotation (kSlots - 1 orthonormal rows),
// t = |x - its part in their span|, s = 2^shift.
//     codes   c = round(s y), T = ceil(s t): kSlots int16 values
//     slack   h = ceil(|c|_1 / 2)
// For two vectors, s_x s_z (x . z) <= c_x . c_z + T_x T_z + h_x + h_z + kRoundingSlack:
//     x . z = y_x . y_z + t-parts, and the t-parts are at most t_x t_z (Cauchy-Schwarz).
//     s y = c + e with |e_j| <= 1/2, so c_x . e_z <= |c_x|_1 / 2, likewise e_x . c_z, and
//     e_x . e_z <= 31 / 4 < 8. kRoundingSlack leaves 8 more for the float64 rounding of y and t,
//     which is below 1e-3 in these units.
//
// Rows are kept in the order of their keys: the signs of slots 1, 2, ... (slot 0 has nearly the
// same sign everywhere). Vectors with equal keys tend to be near each other, so a pass that begins
// with them (match_bytes.cpp) soon knows good matches. A place is a number in this order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "matching/scan.hpp"
#include "store/buffer.hpp"

namespace hiernorm {

inline constexpr std::int32_t kRoundingSlack = 16;
inline constexpr int kKeyBits = 10;

// Some places, or some rows of a set: [first, last).
struct Places {
    std::size_t first, last;
};

class ByteSet {
   public:
    // `rows` (size, dim) bytes and `codes` (size, kSlots), both copied; codes are within
    // [-32000, 32000] and their Euclidean norm too, so that no score leaves int32.
    ByteSet(const std::uint8_t* rows, std::size_t size, std::size_t dim, const std::int16_t* codes,
            int shift);

    std::size_t size() const { return size_; }
    std::size_t dim() const { return dim_; }
    std::size_t row_bytes() const { return row_bytes_; }
    std::size_t blocks() const { return (size_ + kScanBlock - 1) / kScanBlock; }
    std::size_t nbytes() const;
    int shift() const { return shift_; }
    std::int32_t slack(std::size_t place) const { return slacks_[place]; }
    std::int32_t largest_slack() const { return largest_slack_; }

    // The row at a place, as it was given.
    std::int64_t id(std::size_t place) const { return ids_[place]; }
    // The places of the rows whose keys begin with the `bits` bits of `prefix`.
    Places with_prefix(std::size_t prefix, int bits) const {
        return {starts_[prefix << (kKeyBits - bits)], starts_[(prefix + 1) << (kKeyBits - bits)]};
    }

    const std::uint8_t* row(std::size_t place) const { return bytes_.data() + place * row_bytes_; }
    // Places beyond the last, up to a multiple of kScanRows, are zero.
    const std::int16_t* codes(std::size_t place) const { return codes_.data() + place * kSlots; }
    const std::int16_t* block(std::size_t block) const {
        return blocks_.data() + block * kSlots * kScanBlock;
    }

   private:
    std::size_t size_, dim_, row_bytes_;
    int shift_;
    std::int32_t largest_slack_ = 0;
    Buffer<std::uint8_t> bytes_;
    Buffer<std::int16_t> codes_;
    Buffer<std::int16_t> blocks_;
    std::vector<std::int32_t> slacks_;
    std::vector<std::uint32_t> ids_;
    std::vector<std::uint32_t> starts_;  // of each key, and the end
};

// s_x s_z of two sets.
inline std::int32_t unit_of(const ByteSet& a, const ByteSet& b) {
    return std::int32_t{1} << (a.shift() + b.shift());
}

// The largest score c_x . c_z + T_x T_z that proves that a product is below `product`; `slack` is
// h_x + h_z or more.
inline std::int32_t score_below(std::int32_t product, std::int32_t unit, std::int32_t slack) {
    const std::int64_t score = std::int64_t{product} * unit - slack - kRoundingSlack - 1;
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(score, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max()));
}

}  // namespace hiernorm
