// Lays out byte vectors and their codes for the scan.
#include "matching/byte_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace hiernorm {

ByteSet::ByteSet(const std::uint8_t* rows, std::size_t size, std::size_t dim,
                 const std::int16_t* codes, int shift)
    : size_(size),
      dim_(dim),
      row_bytes_((dim + kByteStep - 1) / kByteStep * kByteStep),
      shift_(shift),
      slacks_(size) {
    bytes_.grow_zeroed(std::max<std::size_t>(1, size * row_bytes_));
    codes_.grow_zeroed((size + kScanRows) * kSlots);
    blocks_.grow_zeroed((blocks() + 1) * kSlots * kScanBlock);
    std::memcpy(codes_.data(), codes, size * kSlots * sizeof(std::int16_t));
    for (std::size_t row = 0; row < size; ++row) {
        std::memcpy(bytes_.data() + row * row_bytes_, rows + row * dim, dim);
        const std::int16_t* of_row = codes + row * kSlots;
        std::int16_t* to = blocks_.data() + row / kScanBlock * kSlots * kScanBlock;
        std::int32_t sum = 0;
        for (std::size_t slot = 0; slot < kSlots; ++slot) {
            to[slot / 2 * 2 * kScanBlock + row % kScanBlock * 2 + slot % 2] = of_row[slot];
            if (slot + 1 < kSlots) sum += std::abs(of_row[slot]);
        }
        slacks_[row] = (sum + 1) / 2;
        largest_slack_ = std::max(largest_slack_, slacks_[row]);
    }
}

std::size_t ByteSet::nbytes() const {
    return bytes_.nbytes() + codes_.nbytes() + blocks_.nbytes() +
           slacks_.size() * sizeof(std::int32_t);
}

}  // namespace hiernorm
