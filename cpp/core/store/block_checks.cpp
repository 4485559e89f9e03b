// Reads blocks and compares their checksums.
#include "store/block_checks.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "interrupt.hpp"
#include "kernels/kernels.hpp"
#include "layout.hpp"

namespace hiernorm {

BlockChecks::BlockChecks(std::span<const std::byte> data, std::span<const std::uint32_t> checksums,
                         std::size_t block_bytes)
    : data_(data),
      checksums_(checksums.begin(), checksums.end()),
      shift_(static_cast<unsigned>(std::countr_zero(block_bytes))),
      known_(divide_up(checksums.size(), 64)),
      found_(0) {
    if (!std::has_single_bit(block_bytes)) {
        throw std::invalid_argument("a block has 2^n bytes, not " + std::to_string(block_bytes));
    }
    if (checksums.size() != divide_up(data.size(), block_bytes)) {
        throw std::invalid_argument(std::to_string(checksums.size()) + " checksums for " +
                                    std::to_string(divide_up(data.size(), block_bytes)) +
                                    " blocks");
    }
}

bool BlockChecks::intact(std::size_t block) const {
    const std::size_t first = block << shift_;
    const std::size_t bytes = std::min(block_bytes(), data_.size() - first);
    return active_kernels().crc32c(0, data_.data() + first, bytes) == checksums_[block];
}

void BlockChecks::read(std::size_t block) const {
    if (!intact(block)) {
        found_.store(block + 1, std::memory_order_relaxed);
        throw DamagedBlock();
    }
    known_[block / 64].fetch_or(std::uint64_t{1} << (block % 64), std::memory_order_relaxed);
}

std::vector<std::size_t> BlockChecks::damaged() const {
    std::vector<std::size_t> found;
    for (std::size_t block = 0; block < checksums_.size(); ++block) {
        if (block % 256 == 0) poll_interrupt();  // every 4 MiB
        if (!intact(block)) found.push_back(block);
    }
    return found;
}

std::optional<std::size_t> BlockChecks::found() const {
    const std::size_t block = found_.load(std::memory_order_relaxed);
    if (block == 0) return std::nullopt;
    return block - 1;
}

}  // namespace hiernorm
