// The table of ids: dense, sparse, negative and hostile ones.
#include "store/ids.hpp"

#include <limits>
#include <numeric>

#include "check.hpp"
#include "random.hpp"

namespace hiernorm::testing {
namespace {

using Ids = std::vector<std::int64_t>;

// A table with the array it looks its ids up in.
struct Table {
    Ids known;
    IdTable table{[this](std::size_t position) { return known[position]; }};

    void append(const Ids& ids) {
        known.insert(known.end(), ids.begin(), ids.end());
        table.append(ids.data(), ids.size());
    }
    bool finds_all() const {
        for (std::size_t i = 0; i < known.size(); ++i) {
            if (table.find(known[i]) != std::optional(i)) return false;
        }
        return true;
    }
    std::optional<std::int64_t> duplicate(const Ids& ids) const {
        return table.first_duplicate(ids.data(), ids.size());
    }
};

Ids range(std::int64_t first, std::size_t count) {
    Ids ids(count);
    std::iota(ids.begin(), ids.end(), first);
    return ids;
}

TEST(dense_ids_cost_nothing) {
    Table ids;
    CHECK(!ids.table.find(0));
    ids.append(range(0, 1000));
    ids.append({});
    ids.append(range(1000, 7));
    CHECK(ids.finds_all());
    CHECK_EQUAL(ids.table.nbytes(), std::size_t{0});
    for (const std::int64_t absent : {std::int64_t{-1}, std::int64_t{1007}, INT64_MIN, INT64_MAX}) {
        CHECK(!ids.table.find(absent));
    }
}

TEST(forgotten_ids_are_unknown_and_may_come_again) {
    for (const std::int64_t first : {0, 1000}) {
        Table ids;
        ids.append(range(first, 100));
        for (std::size_t i = 0; i < 100; i += 3) ids.table.forget(i);
        for (std::size_t i = 0; i < 100; ++i) {
            const auto found = ids.table.find(first + static_cast<std::int64_t>(i));
            CHECK(found == (i % 3 == 0 ? std::nullopt : std::optional(i)));
        }
        CHECK(!ids.duplicate({first, first + 3}));
        CHECK_EQUAL(*ids.duplicate({first, first + 1}), first + 1);
        ids.append({first, first + 3});
        ids.append(range(first + 100, 1000));  // a larger table
        CHECK_EQUAL(*ids.table.find(first), std::size_t{100});
        CHECK_EQUAL(*ids.table.find(first + 3), std::size_t{101});
        CHECK(!ids.table.find(first + 6));
        ids.table.forget(100);
        CHECK(!ids.table.find(first));
        CHECK_EQUAL(*ids.table.find(first + 1099), std::size_t{1101});
    }
}

TEST(ids_may_turn_sparse_at_any_time) {
    for (const std::size_t dense : {0, 1, 7, 8, 100}) {
        Table ids;
        ids.append(range(0, dense));
        ids.append({static_cast<std::int64_t>(dense) + 5});
        ids.append(range(static_cast<std::int64_t>(dense) + 10, 50));
        CHECK(ids.finds_all());
        CHECK(!ids.table.find(static_cast<std::int64_t>(dense)));
        CHECK(ids.table.nbytes() > 0);
    }
}

TEST(negative_and_extreme_ids_are_ids) {
    Table ids;
    ids.append({-1, INT64_MIN, INT64_MAX, 0, -2, 4294967295, 4294967296, -4294967296});
    CHECK(ids.finds_all());
    for (const std::int64_t absent : {std::int64_t{1}, INT64_MIN + 1, INT64_MAX - 1}) {
        CHECK(!ids.table.find(absent));
    }
}

TEST(all_ids_are_found_while_the_table_grows) {
    Random random(8);
    Table ids;
    std::vector<std::int64_t> spread;
    for (int i = 0; i < 20000; ++i) spread.push_back(static_cast<std::int64_t>(random.bits()));
    for (std::size_t first = 0; first < spread.size();) {
        const std::size_t count = std::min(1 + random.below(700), spread.size() - first);
        const Ids part(spread.begin() + static_cast<std::ptrdiff_t>(first),
                       spread.begin() + static_cast<std::ptrdiff_t>(first + count));
        CHECK(!ids.duplicate(part));
        ids.append(part);
        CHECK(ids.table.find(part.back()) == std::optional(ids.known.size() - 1));
        CHECK(ids.table.find(spread[0]) == std::optional(std::size_t{0}));
        CHECK(ids.table.nbytes() >= 8 * ids.known.size());  // at most half full
        CHECK(ids.table.nbytes() <= 16 * ids.known.size() + 64);
        first += count;
    }
    CHECK(ids.finds_all());
}

TEST(strides_that_collide_are_found) {
    for (const int shift : {1, 8, 16, 31, 32, 40, 50}) {
        Table ids;
        Ids strided;
        for (std::int64_t i = -1000; i < 1000; ++i)
            strided.push_back(i * (std::int64_t{1} << shift));
        ids.append(strided);
        const Context context("shift ", shift);
        CHECK(ids.finds_all());
        CHECK(!ids.table.find(1));
    }
}

TEST(the_first_duplicate_is_named) {
    Table ids;
    CHECK(!ids.duplicate({}));
    CHECK(ids.duplicate({5, 6, 5, 6}) == std::optional<std::int64_t>(5));
    ids.append(range(0, 10));
    CHECK(!ids.duplicate(range(10, 5)));
    CHECK(!ids.duplicate({-1, 10, 12}));
    CHECK(ids.duplicate({10, 11, 9, 3}) == std::optional<std::int64_t>(9));
    CHECK(ids.duplicate({10, 11, 11}) == std::optional<std::int64_t>(11));
    ids.append({-7, 100});
    CHECK(ids.duplicate({99, -7}) == std::optional<std::int64_t>(-7));
    CHECK(ids.duplicate({3}) == std::optional<std::int64_t>(3));
    CHECK(!ids.duplicate({12, 13}));
}

}  // namespace
}  // namespace hiernorm::testing
