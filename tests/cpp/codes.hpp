// Codes and queries for the integer kernels that use up the limits which kernels.hpp states.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "encode/encoding.hpp"
#include "kernels/kernels.hpp"
#include "random.hpp"
#include "store/buffer.hpp"

namespace hiernorm::testing {

enum class Codes {
    kRandom,   // any codes, any query under kPairLimit
    kExtreme,  // codes 0 and 255, every pair of the query at kPairLimit
    kLargest,  // partial sums as close to +kPartialLimit as the groups allow
    kSmallest  // the same for -kPartialLimit
};
inline constexpr Codes kAllCodes[] = {Codes::kRandom, Codes::kExtreme, Codes::kLargest,
                                      Codes::kSmallest};

// One query and the codes of `entries` entries. The last slot may be one without an offset, like
// that of the tail norms.
class CodedBlocks {
   public:
    CodedBlocks(Random& random, std::size_t groups, std::size_t entries, Codes kind, bool tail)
        : slots_(groups * kGroupSlots), query_(slots_), offsets_(slots_, kCodeOffset) {
        if (tail) offsets_.back() = 0;
        for (std::size_t slot = 0; slot < slots_; slot += 2) choose_pair(random, slot, kind);
        if (tail) query_.back() = static_cast<std::int8_t>(std::abs(query_.back()));
        const std::size_t blocks = (entries + kBlockEntries - 1) / kBlockEntries;
        codes_.grow_zeroed(blocks * kBlockEntries * slots_);
        for (std::size_t entry = 0; entry < entries; ++entry) fill_entry(random, entry, kind);
        expect(entries);
        set_query(groups);
    }

    // Another query for the same codes: all limits hold still.
    void divide_query(int by) {
        for (std::int8_t& code : query_) code = static_cast<std::int8_t>(code / by);
        const std::size_t entries = scores_.size();
        scores_.clear();
        expect(entries);
        set_query(slots_ / kGroupSlots);
    }

    const std::uint8_t* codes() const { return codes_.data(); }
    const ScanQuery& query() const { return scan_; }
    const std::vector<std::int32_t>& scores() const { return scores_; }

   private:
    std::uint8_t& code(std::size_t entry, std::size_t slot) {
        const std::size_t group =
            entry / kBlockEntries * (slots_ / kGroupSlots) + slot / kGroupSlots;
        return codes_[(group * kBlockEntries + entry % kBlockEntries) * kGroupSlots +
                      slot % kGroupSlots];
    }

    void choose_pair(Random& random, std::size_t slot, Codes kind) {
        static const std::vector<int> splits{127, 126, 100, 64, 63, 1};
        int first = random.between(0, kPairLimit), second = random.between(0, kPairLimit - first);
        if (kind == Codes::kExtreme) {
            first = random.pick(splits);
            second = kPairLimit - first;
        } else if (kind != Codes::kRandom) {
            first = 127;
            second = 1;
        }
        query_[slot] = static_cast<std::int8_t>(random.coin() ? -first : std::min(first, 127));
        query_[slot + 1] =
            static_cast<std::int8_t>(random.coin() ? -second : std::min(second, 127));
        if (kind == Codes::kExtreme && random.below(4) == 0) {
            query_[slot] = -128;  // the one code of this size
            query_[slot + 1] = 0;
        }
    }

    // Every half of a run (slots 0-1 or 2-3 of 8 groups) stays within kPartialLimit.
    void fill_entry(Random& random, std::size_t entry, Codes kind) {
        const std::size_t run_slots = kBurstGroups * kGroupSlots;
        for (std::size_t run = 0; run < slots_; run += run_slots) {
            for (std::size_t half = 0; half < 2; ++half) {
                int left = kind == Codes::kSmallest ? -kPartialLimit : kPartialLimit;
                int sum = 0;
                for (std::size_t slot = run; slot < std::min(run + run_slots, slots_); ++slot) {
                    if (slot / 2 % 2 != half) continue;
                    int value = random.between(0, 255);
                    if (kind == Codes::kExtreme) value = random.coin() ? 255 : 0;
                    if (kind == Codes::kLargest || kind == Codes::kSmallest) {
                        value = query_[slot] == 0 ? 0 : left / query_[slot] + offsets_[slot];
                        value = std::clamp(value, 0, 255);
                    }
                    int part = (value - offsets_[slot]) * query_[slot];
                    if (std::abs(sum + part) > kPartialLimit) {
                        value = offsets_[slot];
                        part = 0;
                    }
                    code(entry, slot) = static_cast<std::uint8_t>(value);
                    sum += part;
                    left -= part;
                }
            }
        }
    }

    void expect(std::size_t entries) {
        for (std::size_t entry = 0; entry < entries; ++entry) {
            std::int32_t score = 0;
            for (std::size_t slot = 0; slot < slots_; ++slot) {
                score += (code(entry, slot) - offsets_[slot]) * query_[slot];
            }
            scores_.push_back(score);
        }
    }

    void set_query(std::size_t groups) {
        halves_.assign((groups + kBurstGroups - 1) / kBurstGroups * 2, 0);
        scan_ = {query_.data(), groups, halves_.data(), 0, 0};
        for (std::size_t slot = 0; slot < slots_; ++slot) {
            const int share = offsets_[slot] * query_[slot];
            std::int16_t& half = halves_[slot / (kBurstGroups * kGroupSlots) * 2 + slot / 2 % 2];
            half = static_cast<std::int16_t>(static_cast<std::uint16_t>(half + share));
            scan_.correction += share;
            scan_.code_sum += query_[slot];
        }
    }

    std::size_t slots_;
    std::vector<std::int8_t> query_;
    std::vector<int> offsets_;
    Buffer<std::uint8_t> codes_;
    std::vector<std::int32_t> scores_;
    std::vector<std::int16_t> halves_;
    ScanQuery scan_{};
};

}  // namespace hiernorm::testing
