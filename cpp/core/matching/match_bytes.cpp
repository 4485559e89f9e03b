// The pass over all pairs of rows.
#include "matching/match_bytes.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "interrupt.hpp"
#include "matching/confirm.hpp"
#include "search/threads.hpp"

namespace hiernorm {

void Contest::enter(std::int32_t product, std::int64_t other, const MatchRule& rule) {
    if (other == at) return;  // a pair may enter twice; a second best is then the same as before
    if (product > best) {
        second = best;
        best = product;
        at = other;
    } else if (product == best && product > 0) {
        second = product;
        at = std::min(at, other);
    } else {
        second = std::max(second, product);
    }
    set_cut(rule);
}

void Contest::join(const Contest& other) {
    second = std::max({second, other.second, std::min(best, other.best)});
    if (other.best > best || (other.best == best && other.at >= 0 && (at < 0 || other.at < at))) {
        best = other.best;
        at = other.at;
    }
}

bool Contest::is_won(const MatchRule& rule) const {
    return at >= 0 && best >= rule.least && second <= rule.limit(best);
}

// A match has at least `least`, exceeds or equals every other product of the vector, and its limit
// is at least every other product: so also of those that are known.
void Contest::set_cut(const MatchRule& rule) {
    const auto first = std::lower_bound(rule.limits.begin(), rule.limits.end(), best);
    if (first == rule.limits.end()) {
        cut = std::numeric_limits<std::int32_t>::max();
    } else {
        cut = std::max({rule.least, best, static_cast<std::int32_t>(first - rule.limits.begin())});
    }
}

namespace {

constexpr std::size_t kPartRows = 64;   // threads get multiples of it
constexpr std::size_t kRowTile = 1024;  // 64 KiB of codes, which stay in the second cache
constexpr std::size_t kBlockTile = 16;  // 16 KiB of codes, which stay in the first cache
constexpr std::size_t kFirstBlocks = 2;  // few: all contests are open, and nearly all pairs enter
constexpr std::size_t kFirstColumns = 64;  // with equal keys, more or less
constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

// The pass over some rows of `a` and all of `b`.
class Pass {
   public:
    Pass(const ByteSet& a, const ByteSet& b, const MatchRule& rule, std::vector<Contest>& rows)
        : a_(a),
          b_(b),
          rule_(rule),
          kernels_(match_kernels()),
          unit_(unit_of(a, b)),
          rows_(rows),
          columns_(rule.cross_check ? b.size() : 0, Contest(rule)),
          row_cuts_{},
          column_cuts_(b.blocks() * kScanBlock, kNone),
          survivors_(kScanRows * kBlockTile * kScanBlock) {
        for (std::size_t column = 0; column < columns_.size(); ++column) cut_column(column);
    }

    void run(std::size_t first, std::size_t last) {
        begin_with_equal_keys(first, last);
        for (std::size_t tile = first; tile < last; tile += kRowTile) {
            const std::size_t end = std::min(tile + kRowTile, last);
            std::size_t count = 0;
            for (std::size_t block = 0; block < b_.blocks(); block += count) {
                poll_interrupt();
                count = std::min(block == 0 ? kFirstBlocks : kBlockTile, b_.blocks() - block);
                for (std::size_t row = tile; row < end; row += kScanRows) {
                    scan(row, std::min(row + kScanRows, end), block, count);
                }
            }
        }
    }

    const std::vector<Contest>& columns() const { return columns_; }
    std::uint64_t products() const { return products_; }

   private:
    // The cuts that these pairs set spare most products of the others, which follow in any order.
    void begin_with_equal_keys(std::size_t first, std::size_t last) {
        const int bits = std::min<int>(kKeyBits, std::bit_width(b_.size() / kFirstColumns));
        for (std::size_t prefix = 0; prefix < std::size_t{1} << bits; ++prefix) {
            const Places rows = a_.with_prefix(prefix, bits);
            const Places columns = b_.with_prefix(prefix, bits);
            const std::size_t begin = std::max(rows.first / kScanRows * kScanRows, first);
            const std::size_t end = std::min(rows.last, last);
            const std::size_t end_block = (columns.last + kScanBlock - 1) / kScanBlock;
            std::size_t count = 0;
            for (std::size_t block = columns.first / kScanBlock; block < end_block;
                 block += count) {
                poll_interrupt();
                count = std::min(kBlockTile, end_block - block);
                for (std::size_t row = begin; row < end; row += kScanRows) {
                    scan(row, std::min(row + kScanRows, last), block, count);
                }
            }
        }
    }

    void cut_column(std::size_t column) {
        column_cuts_[column] =
            score_below(columns_[column].cut, unit_, b_.slack(column) + a_.largest_slack());
    }

    void cut_row(std::size_t row) {
        row_cuts_[row % kScanRows] =
            score_below(rows_[row].cut, unit_, a_.slack(row) + b_.largest_slack());
    }

    void scan(std::size_t first, std::size_t last, std::size_t block, std::size_t count) {
        for (std::size_t row = first; row < first + kScanRows; ++row) {
            if (row < last) {
                cut_row(row);
            } else {
                row_cuts_[row % kScanRows] = kNever;
            }
        }
        const std::size_t found =
            kernels_.scan_i16(a_.codes(first), row_cuts_, b_.block(block), count,
                              column_cuts_.data() + block * kScanBlock, survivors_.data());
        // The best of each row first: the cuts that it sets spare most of the others.
        std::size_t leaders[kScanRows];
        std::int32_t scores[kScanRows];
        std::fill_n(scores, kScanRows, std::numeric_limits<std::int32_t>::min());
        std::fill_n(leaders, kScanRows, found);
        for (std::size_t i = 0; i < found; ++i) {
            const std::uint32_t row = survivors_[i].row;
            if (survivors_[i].score > scores[row]) {
                scores[row] = survivors_[i].score;
                leaders[row] = i;
            }
        }
        for (const std::size_t leader : leaders) {
            if (leader < found) enter(survivors_[leader], first, last, block);
        }
        for (std::size_t i = 0; i < found; ++i) {
            if (i != leaders[survivors_[i].row]) enter(survivors_[i], first, last, block);
        }
    }

    void enter(const Survivor& survivor, std::size_t first, std::size_t last, std::size_t block) {
        const std::size_t row = first + survivor.row;
        const std::size_t column = block * kScanBlock + survivor.column;
        if (row >= last || column >= b_.size()) return;  // padding
        if (survivor.score <= std::max(row_cuts_[survivor.row], column_cuts_[column])) return;
        const std::int32_t product = kernels_.dot_u8(a_.row(row), b_.row(column), a_.row_bytes());
        ++products_;
        rows_[row].enter(product, b_.id(column), rule_);
        cut_row(row);
        if (rule_.cross_check) {
            columns_[column].enter(product, a_.id(row), rule_);
            cut_column(column);
        }
    }

    const ByteSet& a_;
    const ByteSet& b_;
    const MatchRule& rule_;
    const MatchKernels& kernels_;
    const std::int32_t unit_;
    std::vector<Contest>& rows_;
    std::vector<Contest> columns_;
    std::int32_t row_cuts_[kScanRows];  // of the rows in the scan, which begin at a multiple
    std::vector<std::int32_t> column_cuts_;
    std::vector<Survivor> survivors_;
    std::uint64_t products_ = 0;
};

// The pairs that win the contests of their row and, with a cross check, of their column.
std::vector<Finalist> find_finalists(const ByteSet& a, const ByteSet& b,
                                     const std::vector<Contest>& rows,
                                     const std::vector<Contest>& columns, const MatchRule& rule) {
    std::vector<std::size_t> places(b.size());  // of the rows as they were given
    for (std::size_t place = 0; place < b.size(); ++place) {
        places[static_cast<std::size_t>(b.id(place))] = place;
    }
    std::vector<Finalist> finalists;
    for (std::size_t row = 0; row < a.size(); ++row) {
        if (!rows[row].is_won(rule)) continue;
        const std::size_t column = places[static_cast<std::size_t>(rows[row].at)];
        if (rule.cross_check &&
            (columns[column].at != a.id(row) || !columns[column].is_won(rule))) {
            continue;
        }
        finalists.push_back({row, column, rows[row].best});
    }
    return finalists;
}

}  // namespace

ByteMatches match_bytes(const ByteSet& a, const ByteSet& b, const MatchRule& rule,
                        std::size_t threads) {
    if (a.dim() != b.dim()) {
        throw std::invalid_argument("a has " + std::to_string(a.dim()) + " dimensions, b has " +
                                    std::to_string(b.dim()));
    }
    ByteMatches matches;
    if (a.size() == 0 || b.size() == 0) return matches;
    const std::size_t units = (a.size() + kPartRows - 1) / kPartRows;
    const std::size_t parts = std::clamp<std::size_t>(threads, 1, units);
    std::vector<Contest> rows(a.size(), Contest(rule));
    std::vector<Contest> columns(rule.cross_check ? b.size() : 0, Contest(rule));
    std::vector<std::vector<Contest>> of_parts(parts);
    std::vector<std::uint64_t> products(parts);
    run_tasks(parts, threads, [&](std::size_t part) {
        Pass pass(a, b, rule, rows);
        pass.run(units * part / parts * kPartRows,
                 std::min(units * (part + 1) / parts * kPartRows, a.size()));
        of_parts[part] = pass.columns();
        products[part] = pass.products();
    });
    for (std::size_t part = 0; part < parts; ++part) {
        for (std::size_t column = 0; column < columns.size(); ++column) {
            columns[column].join(of_parts[part][column]);
        }
        matches.products += products[part];
    }
    std::vector<Finalist> finalists = find_finalists(a, b, rows, columns, rule);
    finalists = confirm_rows(a, b, finalists, rule, threads, matches.products);
    if (rule.cross_check) {
        for (Finalist& one : finalists) std::swap(one.row, one.column);
        finalists = confirm_rows(b, a, finalists, rule, threads, matches.products);
        for (Finalist& one : finalists) std::swap(one.row, one.column);
    }
    std::ranges::sort(finalists, {}, [&](const Finalist& one) { return a.id(one.row); });
    for (const Finalist& one : finalists) {
        matches.rows.push_back(a.id(one.row));
        matches.columns.push_back(b.id(one.column));
    }
    return matches;
}

}  // namespace hiernorm
