// Cells: the grouping is one and the same everywhere, and no cone rules out a member in error.
#include "cells/cells.hpp"

#include <algorithm>
#include <cmath>

#include "cells/cone_query.hpp"
#include "check.hpp"
#include "collection.hpp"
#include "random.hpp"
#include "store/store.hpp"

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
        const double length = std::exp(0.3 * random.normal());
        for (std::size_t j = 0; j < kDim; ++j) {
            const double share = j < kMajor ? 1.0 : 0.2;
            rows.push_back(
                static_cast<float>(length * share * (centre[j] + 0.3 * random.normal())));
        }
    }
    return rows;
}

std::vector<std::int64_t> scattered_ids(std::size_t count) {
    std::vector<std::int64_t> ids(count);
    for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<std::int64_t>(i * 7919 % 100003);
    return ids;
}

// Some encoding of the rows; for distances with a lift that matters.
Encoding encoding_of(const std::vector<float>& rows, Metric metric, bool entry_tails) {
    Collection collection;
    collection.dim = kDim;
    collection.major = kMajor;
    collection.metric = metric;
    collection.rows = rows;
    return collection.encoding(rows.size() / kDim, entry_tails);
}

ConeVectors vectors_of(const std::vector<float>& rows, const Encoding& encoding) {
    return cone_vectors({encoding, rows.data(), rows.data(), kDim, rows.size() / kDim});
}

ConeVectors vectors_of(const std::vector<float>& rows) {
    return vectors_of(rows, encoding_of(rows, Metric::kInnerProduct, false));
}

TEST(a_grouping_is_a_permutation) {
    Random random(11);
    for (const std::size_t count : {1, 2, 15, 16, 17, 31, 300, 1000, 5000}) {
        const std::vector<float> rows = clustered_rows(random, count);
        const std::vector<std::int64_t> ids = scattered_ids(count);
        for (const std::size_t lead : {0, 5}) {
            const Grouping grouping = group_by_direction(vectors_of(rows), ids.data(), count, lead);
            std::vector<std::uint32_t> order = grouping.order;
            std::sort(order.begin(), order.end());
            for (std::size_t i = 0; i < count; ++i) CHECK_EQUAL(order[i], i);
            CHECK_EQUAL(grouping.lead, std::min(lead, count));
        }
    }
}

TEST(members_of_a_block_point_the_same_way) {
    Random random(15);
    constexpr std::size_t kCount = 4000;
    const std::vector<float> rows = clustered_rows(random, kCount);
    const std::vector<std::int64_t> ids = scattered_ids(kCount);
    const ConeVectors vectors = vectors_of(rows);
    const auto closeness = [&](const std::vector<std::uint32_t>& order, std::size_t apart) {
        double sum = 0.0;
        for (std::size_t i = 0; i + apart < kCount; ++i) {
            for (std::size_t j = 0; j < kMajor; ++j) {
                sum += double{vectors.units[order[i] * kMajor + j]} *
                       double{vectors.units[order[i + apart] * kMajor + j]};
            }
        }
        return sum / kCount;
    };
    std::vector<std::uint32_t> unordered(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        unordered[i] = static_cast<std::uint32_t>(i * 1237 % kCount);
    }
    const Grouping grouping = group_by_direction(vectors, ids.data(), kCount, 0);
    CHECK(closeness(unordered, 1) < 0.2);
    CHECK(closeness(grouping.order, 1) > 0.8);   // within a block
    CHECK(closeness(grouping.order, 16) > 0.5);  // of blocks side by side
}

TEST(equal_and_zero_vectors_are_grouped_too) {
    const std::vector<float> equal(500 * kDim, 0.25f), zero(500 * kDim, 0.0f);
    const std::vector<std::int64_t> ids = scattered_ids(500);
    for (const std::vector<float>* rows : {&equal, &zero}) {
        const Grouping grouping = group_by_direction(vectors_of(*rows), ids.data(), 500, 3);
        CHECK_EQUAL(grouping.order.size(), std::size_t{500});
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
    const Grouping expected = group_by_direction(vectors_of(rows), ids.data(), kCount, 0);
    for (const Kernels* kernels : available_kernels()) {
        const Context context(kernels->name);
        use_kernels(kernels->name);
        const Grouping turned =
            group_by_direction(vectors_of(turned_rows), turned_ids.data(), kCount, 0);
        for (std::size_t i = 0; i < kCount; ++i) {
            CHECK_EQUAL(turned_ids[turned.order[i]], ids[expected.order[i]]);
        }
    }
    use_kernels(before);
}

// A store of one grouped addition behind `loose` entries that were not grouped.
void fill(Store& store, const std::vector<float>& rows, const std::vector<std::int64_t>& ids,
          const Encoding& encoding, std::size_t loose) {
    store.set_encoding(encoding);
    store.begin({});
    store.write(0, rows.data(), ids.data(), nullptr, loose, 0);
    store.number(loose);
    store.publish(loose);
    const std::vector<float> others(rows.begin() + static_cast<std::ptrdiff_t>(loose * kDim),
                                    rows.end());
    const std::size_t count = ids.size() - loose;
    Grouping grouping = group_by_direction(vectors_of(others, encoding), ids.data() + loose, count,
                                           (16 - loose % 16) % 16);
    const std::vector<std::uint32_t> order = grouping.order;
    store.begin(std::move(grouping));
    for (std::size_t place = 0; place < count; ++place) {
        store.write(place, others.data() + order[place] * kDim, &ids[loose + order[place]], nullptr,
                    1, count - place - 1);
    }
    store.number(count);
    store.publish(count);
}

// Every cone of the store on every level, with the scores that the query gives it.
template <class Use>
void for_all_cones(const Store& store, const Kernels& kernels, const ScanQuery& query, Use use) {
    for (std::size_t c = 0; c < store.chunks(); ++c) {
        const ChunkCones* cones = store.cells().chunk(c);
        CHECK(cones != nullptr);
        for (std::size_t level = 0; level < kConeLevels; ++level) {
            const std::size_t entries = entries_per_cone(level);
            std::vector<std::int32_t> scores(kChunkEntries / entries);
            kernels.score_u8i8((*cones)[level].data(), scores.size(), query, scores.data());
            for (std::size_t cone = 0; cone < scores.size(); ++cone) {
                const std::size_t first = c * kChunkEntries + cone * entries;
                if (first < store.size()) {
                    use(level, first, std::min(first + entries, store.size()), scores[cone]);
                }
            }
        }
    }
}

// Takes the scores of a few entries as thresholds: no cone may rule one out that reaches them.
// Returns how many cones were ruled out.
std::size_t count_ruled_out(const Store& store, const Kernels& kernels, const float* query,
                            std::size_t first_entry) {
    ExactQuery exact;
    exact.prepare(kernels, store.encoding().metric, query, kDim);
    QueryView view;
    view.prepare(kernels, store.encoding(), exact);
    ConeQuery cones;
    cones.prepare(kernels, store.encoding(), store.cells(), view, store.largest());
    std::size_t ruled_out = 0;
    for (std::size_t p = first_entry; p < store.size(); p += 611) {
        const double threshold = exact.score(store.row(p));
        if (!cones.aim(threshold + view.offset)) continue;
        for_all_cones(store, kernels, cones.scan(),
                      [&](std::size_t, std::size_t first, std::size_t end, std::int32_t score) {
                          if (score > cones.cut()) return;
                          ++ruled_out;
                          for (std::size_t i = first; i < end; ++i) {
                              CHECK(exact.score(store.row(i)) < threshold);
                          }
                      });
    }
    return ruled_out;
}

// Also checks that the cones say something.
void check_cones(const std::vector<float>& rows, const std::vector<float>& queries, Metric metric) {
    const std::vector<std::int64_t> ids = scattered_ids(rows.size() / kDim);
    for (const bool entry_tails : {false, true}) {
        Store store(Layout::kCodes, kDim);
        fill(store, rows, ids, encoding_of(rows, metric, entry_tails), 21);
        CHECK(store.cells().grouped_entries() > ids.size() - 100);
        for (const Kernels* kernels : available_kernels()) {
            const Context context(kernels->name, ", tails ", entry_tails);
            std::size_t ruled_out = 0;
            for (std::size_t q = 0; q < queries.size() / kDim; ++q) {
                ruled_out += count_ruled_out(store, *kernels, queries.data() + q * kDim, q);
            }
            CHECK(ruled_out > 1000);
        }
    }
}

TEST(no_cone_rules_out_a_member_that_reaches_the_threshold) {
    Random random(13);
    for (const double size : {1e-30, 1.0, 1e30}) {
        const Context context("size ", size);
        std::vector<float> rows = clustered_rows(random, 6000);
        const std::vector<float> queries(rows.begin(), rows.begin() + 40 * kDim);
        for (float& value : rows) value = static_cast<float>(value * size);
        std::fill_n(rows.begin() + 1000 * kDim, 3 * kDim, 0.0f);  // zero vectors among them
        check_cones(rows, queries, Metric::kInnerProduct);
    }
}

TEST(no_cone_rules_out_a_member_as_near_as_the_threshold) {
    Random random(16);
    for (const double size : {1.0, 1e15}) {
        const Context context("size ", size);
        std::vector<float> rows = clustered_rows(random, 6000);
        // Much the same lengths: there is one norm for all cones.
        for (std::size_t i = 0; i < 6000; ++i) {
            float* row = rows.data() + i * kDim;
            const double length = size * (1.0 + 0.1 * random.normal());
            const double scale = length / std::sqrt(plain_dot(row, row, kDim));
            for (std::size_t j = 0; j < kDim; ++j) row[j] = static_cast<float>(row[j] * scale);
        }
        const std::vector<float> queries(rows.begin(), rows.begin() + 40 * kDim);
        std::fill_n(rows.begin() + 1000 * kDim, 3 * kDim, 0.0f);
        check_cones(rows, queries, Metric::kL2);
    }
}

TEST(an_addition_that_was_never_shown_leaves_open_cones) {
    Random random(14);
    const std::vector<float> rows = clustered_rows(random, 1024);
    const std::vector<std::int64_t> ids = scattered_ids(1024);
    Store store(Layout::kCodes, kDim);
    fill(store, rows, ids, encoding_of(rows, Metric::kInnerProduct, false), 512);
    CHECK_EQUAL(store.cells().grouped_entries(), std::size_t{512});
    const auto always_read = [&store](std::size_t cone) {
        const std::uint8_t* codes = (*store.cells().chunk(0))[0].data() +
                                    cone / 16 * 16 * store.cells().layout().slots() + cone % 16 * 4;
        return codes[slot_offset(store.cells().layout().cosine_slot())] == 1;
    };
    CHECK(always_read(0));
    CHECK(!always_read(512 / 16));
    CHECK(always_read(1024 / 16));
    store.begin(group_by_direction(vectors_of(rows), ids.data(), 1024, 0));
    store.write(0, rows.data(), ids.data(), nullptr, 1024, 0);
    CHECK(!always_read(1024 / 16));
    store.begin({});
    CHECK(always_read(1024 / 16));
    CHECK(!always_read(512 / 16));
}

}  // namespace
}  // namespace hiernorm::testing
