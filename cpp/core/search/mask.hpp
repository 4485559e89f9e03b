// Which entries a search may return: one bit per position, lowest bit of a byte first.
//
// Applied to the scores and candidates of the scan, before anything is settled: what the mask
// leaves out never raises the threshold and is never read further.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernels/kernels.hpp"

namespace hiernorm {

class Mask {
   public:
    Mask() = default;  // lets everything through
    // `bits` are readable in whole blocks of 64 entries, zero behind the last entry; `allowed` says
    // how many are set, which decides how to search and nothing else.
    Mask(const std::uint8_t* bits, std::size_t allowed) : bits_(bits), allowed_(allowed) {}

    bool all() const { return bits_ == nullptr; }

    // Whether so few of `entries` are allowed that their scores cost less than a scan.
    bool sparse(std::size_t entries) const {
        constexpr std::size_t kEntriesForOne = 128;
        return bits_ != nullptr && allowed_ <= entries / kEntriesForOne;
    }

    // Whether at least half of `entries` are allowed.
    bool most(std::size_t entries) const { return bits_ == nullptr || allowed_ >= entries / 2; }

    // Among how many of `entries` one may expect to find `wanted` that are allowed.
    std::size_t expected(std::size_t wanted, std::size_t entries) const {
        if (bits_ == nullptr || allowed_ == 0) return wanted;
        return std::min(entries, wanted * (entries / allowed_ + 1));
    }

    bool allows(std::size_t position) const {
        return bits_ == nullptr || (bits_[position / 8] >> (position % 8) & 1) != 0;
    }

    // Allowed entries among `entries` from `first` on; `first` is a multiple of 64.
    std::size_t count(std::size_t first, std::size_t entries) const {
        if (bits_ == nullptr) return entries;
        std::size_t total = 0;
        for (std::size_t at = 0; at < entries; at += 64) {
            std::uint64_t word;
            std::memcpy(&word, bits_ + (first + at) / 8, sizeof(word));
            total += static_cast<std::size_t>(std::popcount(word));
        }
        return total;
    }

    // Calls use(i) for each allowed entry first + i among `entries`; `first` is a multiple of 64.
    template <class Use>
    void for_each(std::size_t first, std::size_t entries, Use use) const {
        for (std::size_t at = 0; at < entries; at += 64) {
            std::uint64_t word = ~std::uint64_t{0};
            if (bits_ != nullptr) {
                word = 0;
                for (std::size_t byte = 0; byte < sizeof(word); ++byte) {
                    word |= std::uint64_t{bits_[(first + at) / 8 + byte]} << (8 * byte);
                }
            }
            for (; word != 0; word &= word - 1) {
                const std::size_t i = at + static_cast<std::size_t>(std::countr_zero(word));
                if (i < entries) use(i);
            }
        }
    }

    // Drops the candidates that are not allowed; the others keep their order.
    std::size_t keep(Candidate* candidates, std::size_t count) const {
        if (bits_ == nullptr) return count;
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const Candidate candidate = candidates[i];
            candidates[kept] = candidate;
            kept += allows(candidate.position) ? 1 : 0;
        }
        return kept;
    }

    // Overwrites the scores of entries that are not allowed; `scores` are those from `first` on.
    template <class Score>
    void hide(Score* scores, std::size_t first, std::size_t entries, Score lowest) const {
        if (bits_ == nullptr) return;
        for (std::size_t i = 0; i < entries; ++i) {
            if (!allows(first + i)) scores[i] = lowest;
        }
    }

    // The blocks with an allowed entry among `entries` from `first` on, a multiple of the block;
    // the block there has the given number. Returns how many.
    std::size_t blocks(std::size_t first, std::size_t entries, std::size_t number,
                       std::uint16_t* list) const {
        const std::size_t count = (entries + kBlockEntries - 1) / kBlockEntries;
        std::size_t listed = 0;
        for (std::size_t block = 0; block < count; ++block) {
            list[listed] = static_cast<std::uint16_t>(number + block);
            listed += allows_block(first, block) ? 1 : 0;
        }
        return listed;
    }

    // Those of the blocks in `list` that have one, to `out`, which has room for all.
    std::size_t keep_blocks(std::size_t first, std::span<const std::uint16_t> list,
                            std::uint16_t* out) const {
        std::size_t listed = 0;
        for (const std::uint16_t block : list) {
            out[listed] = block;
            listed += allows_block(first, block) ? 1 : 0;
        }
        return listed;
    }

   private:
    static_assert(kBlockEntries == 16);

    bool allows_block(std::size_t first, std::size_t block) const {
        if (bits_ == nullptr) return true;
        const std::uint8_t* bits = bits_ + first / 8 + 2 * block;
        return (bits[0] | bits[1]) != 0;
    }

    const std::uint8_t* bits_ = nullptr;
    std::size_t allowed_ = 0;
};

}  // namespace hiernorm
