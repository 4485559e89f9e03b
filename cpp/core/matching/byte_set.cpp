// Lays out byte vectors and their codes for the scan.
#include "matching/byte_set.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

namespace hiernorm {
namespace {

std::size_t key_of(const std::int16_t* codes) {
    std::size_t key = 0;
    for (int bit = 0; bit < kKeyBits; ++bit) key = 2 * key + (codes[bit + 1] < 0 ? 1 : 0);
    return key;
}

}  // namespace

ByteSet::ByteSet(const std::uint8_t* rows, std::size_t size, std::size_t dim,
                 const std::int16_t* codes, int shift)
    : size_(size),
      dim_(dim),
      row_bytes_((dim + kByteStep - 1) / kByteStep * kByteStep),
      shift_(shift),
      slacks_(size),
      ids_(size),
      starts_((std::size_t{1} << kKeyBits) + 1) {
    if (size > std::numeric_limits<std::uint32_t>::max()) {
        throw std::length_error("a set of byte vectors has at most 4,294,967,295 rows, got " +
                                std::to_string(size));
    }
    for (std::size_t row = 0; row < size; ++row) ++starts_[key_of(codes + row * kSlots) + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
    for (std::size_t row = 0; row < size; ++row) {
        ids_[next[key_of(codes + row * kSlots)]++] = static_cast<std::uint32_t>(row);
    }
    bytes_.grow_zeroed(std::max<std::size_t>(1, size * row_bytes_));
    codes_.grow_zeroed((size + kScanRows) * kSlots);
    blocks_.grow_zeroed((blocks() + 1) * kSlots * kScanBlock);
    for (std::size_t place = 0; place < size; ++place) {
        const std::size_t row = ids_[place];
        const std::int16_t* of_row = codes + row * kSlots;
        std::memcpy(bytes_.data() + place * row_bytes_, rows + row * dim, dim);
        std::memcpy(codes_.data() + place * kSlots, of_row, kSlots * sizeof(std::int16_t));
        std::int16_t* to = blocks_.data() + place / kScanBlock * kSlots * kScanBlock;
        std::int32_t sum = 0;
        for (std::size_t slot = 0; slot < kSlots; ++slot) {
            to[slot / 2 * 2 * kScanBlock + place % kScanBlock * 2 + slot % 2] = of_row[slot];
            if (slot + 1 < kSlots) sum += std::abs(of_row[slot]);
        }
        slacks_[place] = (sum + 1) / 2;
        largest_slack_ = std::max(largest_slack_, slacks_[place]);
    }
}

std::size_t ByteSet::nbytes() const {
    return bytes_.nbytes() + codes_.nbytes() + blocks_.nbytes() +
           (slacks_.size() + ids_.size() + starts_.size()) * sizeof(std::int32_t);
}

}  // namespace hiernorm
