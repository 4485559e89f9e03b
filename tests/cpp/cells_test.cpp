// Cells: the grouping is one and the same everywhere, and no cone lets a member escape its bound.
#include "cells.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "check.hpp"
#include "cone_query.hpp"
#include "expectations.hpp"
#include "random.hpp"
#include "store.hpp"

namespace hiernorm::testing {
namespace {

constexpr std::size_t kDim = 20;
constexpr std::size_t kMajor = 6;

std::vector<float> clustered_rows(Random& random, std::size_t count) {
    std::vector<float> rows;
    std::vector<double> centre(kDim);
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 40 == 0) {
            for (double& value : centre) value = random.normal();
        }
        const double length = std::exp(random.normal());
        for (const double value : centre) {
            rows.push_back(static_cast<float>(length * (value + 0.3 * random.normal())));
        }
    }
    return rows;
}

std::vector<std::int64_t> scattered_ids(std::size_t count) {
    std::vector<std::int64_t> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int64_t>(i * 7919 % 100003);
    return ids;
}

// The ids of the members, cell by cell.
std::vector<std::vector<std::int64_t>> members(const Grouping& grouping,
                                               const std::vector<std::int64_t>& ids) {
    std::vector<std::vector<std::int64_t>> cells;
    std::size_t place = 0;
    for (const std::uint32_t size : grouping.sizes) {
        cells.emplace_back();
        for (std::uint32_t i = 0; i < size; ++i)
            cells.back().push_back(ids[grouping.order[place++]]);
    }
    return cells;
}

TEST(a_grouping_is_a_permutation_into_small_cells) {
    Random random(11);
    for (const std::size_t count : {1, 2, 31, 48, 49, 1000, 5000}) {
        const std::vector<float> rows = clustered_rows(random, count);
        const std::vector<std::int64_t> ids = scattered_ids(count);
        const Grouping grouping =
            group_by_direction(rows.data(), kDim, kMajor, ids.data(), count, 32);
        std::vector<std::uint32_t> order = grouping.order;
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(order[i], i);
        CHECK_EQUAL(std::accumulate(grouping.sizes.begin(), grouping.sizes.end(), std::size_t{0}),
                    count);
        CHECK(*std::max_element(grouping.sizes.begin(), grouping.sizes.end()) <= 48);
        CHECK_EQUAL(grouping.directions.size(), grouping.sizes.size() * kMajor);
    }
}

TEST(equal_and_zero_vectors_are_grouped_too) {
    const std::vector<float> equal(500 * kDim, 0.25f), zero(500 * kDim, 0.0f);
    const std::vector<std::int64_t> ids = scattered_ids(500);
    for (const std::vector<float>* rows : {&equal, &zero}) {
        const Grouping grouping =
            group_by_direction(rows->data(), kDim, kMajor, ids.data(), 500, 32);
        CHECK_EQUAL(grouping.order.size(), std::size_t{500});
        CHECK(*std::max_element(grouping.sizes.begin(), grouping.sizes.end()) <= 48);
    }
}

TEST(a_grouping_depends_on_the_set_of_entries_alone) {
    Random random(12);
    constexpr std::size_t kCount = 3000;
    const std::vector<float> rows = clustered_rows(random, kCount);
    const std::vector<std::int64_t> ids = scattered_ids(kCount);
    std::vector<float> turned_rows;
    for (std::size_t i = kCount; i-- > 0;) {
        turned_rows.insert(turned_rows.end(), rows.begin() + static_cast<std::ptrdiff_t>(i * kDim),
                           rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * kDim));
    }
    const std::vector<std::int64_t> turned_ids(ids.rbegin(), ids.rend());
    const std::string before(active_kernels().name);
    const Grouping expected = group_by_direction(rows.data(), kDim, kMajor, ids.data(), kCount, 32);
    for (const Kernels* kernels : available_kernels()) {
        const Context context(kernels->name);
        use_kernels(kernels->name);
        const Grouping turned =
            group_by_direction(turned_rows.data(), kDim, kMajor, turned_ids.data(), kCount, 32);
        CHECK(members(turned, turned_ids) == members(expected, ids));
        CHECK(turned.directions == expected.directions);
    }
    use_kernels(before);
}

// A store of one grouped addition.
void fill(Store& store, const std::vector<float>& rows, const std::vector<std::int64_t>& ids) {
    Fit fit;
    fit.dim = kDim;
    fit.major = kMajor;
    const std::vector<double> views(rows.begin(), rows.end());
    choose_steps(fit, views.data(), ids.size(), 1.0);
    store.set_fit(fit);
    Grouping grouping = group_by_direction(rows.data(), kDim, kMajor, ids.data(), ids.size(), 32);
    const std::vector<std::uint32_t> order = grouping.order;
    store.begin(std::move(grouping));
    for (std::size_t place = 0; place < order.size(); ++place) {
        store.write(place, rows.data() + order[place] * kDim, &ids[order[place]], nullptr, 1,
                    order.size() - place - 1);
    }
    store.number(ids.size());
    store.publish(ids.size());
}

TEST(no_member_of_a_cell_scores_above_its_bound) {
    Random random(13);
    for (const double size : {1e-30, 1.0, 1e30}) {
        std::vector<float> rows = clustered_rows(random, 2000);
        const std::vector<float> queries(rows.begin(), rows.begin() + 60 * kDim);
        for (float& value : rows) value = static_cast<float>(value * size);
        const std::vector<std::int64_t> ids = scattered_ids(2000);
        Store store(Layout::kCodes, kDim);
        fill(store, rows, ids);
        const Cells& cells = store.cells();
        CHECK(!cells.all_open());
        for (const Kernels* kernels : available_kernels()) {
            const Context context(kernels->name, ", size ", size);
            std::size_t tight = 0;
            for (std::size_t q = 0; q < 60; ++q) {
                ExactQuery exact;
                exact.prepare(*kernels, Metric::kInnerProduct, queries.data() + q * kDim, kDim);
                QueryView view;
                view.prepare(*kernels, store.fit(), exact);
                ConeQuery cones;
                cones.prepare(cells, view, kMajor, store.largest());
                std::vector<std::int32_t> scores(cells.count() + kBlockEntries), maxima(scores);
                cones.score(*kernels, cells, scores.data(), maxima.data());
                for (std::size_t cell = 0; cell < cells.count(); ++cell) {
                    CHECK(maxima[cell / kBlockEntries] >= scores[cell]);
                    for (std::size_t p = cells.first(cell); p < cells.end(cell); ++p) {
                        const double score = exact.score(store.row(p));
                        CHECK(score <= cones.bound(scores[cell]));
                        // The cut of a threshold just above the score keeps what reaches it.
                        CHECK(scores[cell] > cones.cut(score));
                        tight += score > 0.5 * cones.bound(scores[cell]) ? 1 : 0;
                    }
                }
            }
            CHECK(tight > 60);  // the bounds say something
        }
    }
}

}  // namespace
}  // namespace hiernorm::testing
