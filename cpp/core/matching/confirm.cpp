// Scans the rows of finalists once more, with cuts of their own.
#include "matching/confirm.hpp"

#include <algorithm>
#include <limits>

#include "interrupt.hpp"
#include "search/threads.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kBlockTile = 64;  // blocks of one scan
constexpr std::size_t kPart = 64;       // finalists of one task
constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

// The rows of a few finalists against all columns.
class Confirmation {
   public:
    Confirmation(const ByteSet& a, const ByteSet& b, const MatchRule& rule)
        : a_(a),
          b_(b),
          rule_(rule),
          kernels_(match_kernels()),
          column_cuts_(kBlockTile * kScanBlock, kNone),
          survivors_(kScanRows * kBlockTile * kScanBlock) {}

    // At most kScanRows finalists; sets `refuted` of those that are no matches.
    void run(std::span<const Finalist> finalists, char* refuted) {
        poll_interrupt();
        std::int16_t codes[kScanRows * kSlots] = {};
        std::int32_t cuts[kScanRows];
        std::fill_n(cuts, kScanRows, kNever);
        for (std::size_t i = 0; i < finalists.size(); ++i) {
            const auto& [row, column, product] = finalists[i];
            std::copy_n(a_.codes(row), kSlots, codes + i * kSlots);
            cuts[i] = score_below(std::min(rule_.limit(product) + 1, product), unit_of(a_, b_),
                                  a_.slack(row) + b_.largest_slack());
        }
        std::size_t open = finalists.size(), count = 0;
        for (std::size_t block = 0; block < b_.blocks() && open > 0; block += count) {
            count = std::min(kBlockTile, b_.blocks() - block);
            const std::size_t found = kernels_.scan_i16(
                codes, cuts, b_.block(block), count, column_cuts_.data(), survivors_.data());
            for (std::size_t i = 0; i < found; ++i) {
                const std::size_t at = survivors_[i].row;
                const std::size_t column = block * kScanBlock + survivors_[i].column;
                if (cuts[at] == kNever || column >= b_.size()) continue;
                if (!refutes(finalists[at], column)) continue;
                refuted[at] = 1;
                cuts[at] = kNever;
                --open;
            }
        }
    }

    std::uint64_t products() const { return products_; }

   private:
    bool refutes(const Finalist& finalist, std::size_t column) {
        if (column == finalist.column) return false;
        const std::int32_t product =
            kernels_.dot_u8(a_.row(finalist.row), b_.row(column), a_.row_bytes());
        ++products_;
        return product > rule_.limit(finalist.product) || product > finalist.product ||
               (product == finalist.product && b_.id(column) < b_.id(finalist.column));
    }

    const ByteSet& a_;
    const ByteSet& b_;
    const MatchRule& rule_;
    const MatchKernels& kernels_;
    std::vector<std::int32_t> column_cuts_;  // none: only the cuts of rows count
    std::vector<Survivor> survivors_;
    std::uint64_t products_ = 0;
};

}  // namespace

std::vector<Finalist> confirm_rows(const ByteSet& a, const ByteSet& b,
                                   std::span<const Finalist> finalists, const MatchRule& rule,
                                   std::size_t threads, std::uint64_t& products) {
    const std::size_t parts = (finalists.size() + kPart - 1) / kPart;
    std::vector<char> refuted(finalists.size());
    std::vector<std::uint64_t> of_parts(parts);
    run_tasks(parts, threads, [&](std::size_t part) {
        Confirmation confirmation(a, b, rule);
        const std::size_t end = std::min((part + 1) * kPart, finalists.size());
        for (std::size_t first = part * kPart; first < end; first += kScanRows) {
            const std::size_t count = std::min(kScanRows, end - first);
            confirmation.run(finalists.subspan(first, count), refuted.data() + first);
        }
        of_parts[part] = confirmation.products();
    });
    std::vector<Finalist> confirmed;
    for (std::size_t i = 0; i < finalists.size(); ++i) {
        if (refuted[i] == 0) confirmed.push_back(finalists[i]);
    }
    for (const std::uint64_t count : of_parts) products += count;
    return confirmed;
}

}  // namespace hiernorm
