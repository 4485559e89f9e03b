// The checksums of a tensor of a file, one CRC-32C per block of bytes: a block is read and compared
// when it is first needed, and remembered.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace hiernorm {

// A block is not what was written.
class DamagedBlock : public std::runtime_error {
   public:
    DamagedBlock() : std::runtime_error("a block of a file is not what was written") {}
};

class BlockChecks {
   public:
    // Whoever calls keeps `data` alive. Throws std::invalid_argument unless there is one checksum
    // per block and `block_bytes` is a power of two.
    BlockChecks(std::span<const std::byte> data, std::span<const std::uint32_t> checksums,
                std::size_t block_bytes);

    // Throws DamagedBlock unless all blocks with some of the `bytes` at `from` are what was
    // written. Any number of threads may call it.
    void require(const void* from, std::size_t bytes) const {
        const std::size_t last = (offset_of(from) + bytes - 1) >> shift_;
        for (std::size_t block = block_of(from); block <= last; ++block) {
            if (!known(block)) read(block);
        }
    }
    // Whether all of these blocks were read already and are what was written.
    bool knows(const void* from, std::size_t bytes) const {
        const std::size_t first = block_of(from);
        const std::size_t last = (offset_of(from) + bytes - 1) >> shift_;
        for (std::size_t word = first / 64; word <= last / 64; ++word) {
            std::uint64_t wanted = ~std::uint64_t{0};
            if (word == first / 64) wanted <<= first % 64;
            if (word == last / 64) wanted &= ~std::uint64_t{0} >> (63 - last % 64);
            if ((known_[word].load(std::memory_order_relaxed) & wanted) != wanted) return false;
        }
        return true;
    }
    void require_all() const {
        if (!data_.empty()) require(data_.data(), data_.size());
    }

    // Reads all blocks, those too that are known, and returns the numbers of the damaged ones.
    std::vector<std::size_t> damaged() const;

    // A block that require() found damaged, if any.
    std::optional<std::size_t> found() const;

    std::span<const std::byte> data() const { return data_; }
    std::size_t block_bytes() const { return std::size_t{1} << shift_; }

   private:
    std::size_t offset_of(const void* from) const {
        return static_cast<std::size_t>(static_cast<const std::byte*>(from) - data_.data());
    }
    std::size_t block_of(const void* from) const { return offset_of(from) >> shift_; }
    bool known(std::size_t block) const {
        return (known_[block / 64].load(std::memory_order_relaxed) >> (block % 64) & 1) != 0;
    }
    bool intact(std::size_t block) const;
    void read(std::size_t block) const;

    std::span<const std::byte> data_;
    std::vector<std::uint32_t> checksums_;
    unsigned shift_;
    mutable std::vector<std::atomic<std::uint64_t>> known_;  // a bit per block
    mutable std::atomic<std::size_t> found_;                 // plus one; 0: none
};

// Checks what a search reads of the tensors of a segment. Null: not checked.
struct SegmentChecks {
    const BlockChecks* ids = nullptr;
    const BlockChecks* rows = nullptr;
    const BlockChecks* major_codes = nullptr;
    std::vector<const BlockChecks*> stage_codes;
    std::vector<const BlockChecks*> cones;
};

}  // namespace hiernorm
