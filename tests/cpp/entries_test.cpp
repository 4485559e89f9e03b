// Entries go in whole or not at all, come out as they were, and may cross chunks.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "check.hpp"
#include "collection.hpp"

namespace hiernorm::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Collection small_collection(Metric metric = Metric::kInnerProduct) {
    Random random(21);
    return make_collection(random, Kind::kArbitrary, 50, 6, 3, metric, 2);
}

TEST(an_empty_index_answers_with_nothing) {
    const Collection asked = small_collection();
    const auto index = asked.make_index(EngineKind::kCascade, 50, true);
    Answers answers;
    CHECK_EQUAL(index->search(SearchRequest{}, asked.queries.data(), 2, 1, 0, answers).entries,
                std::size_t{0});
    CHECK(answers.size() == 2 && answers[0].results.size() == 0);
    CHECK_EQUAL(index->size(), std::size_t{0});
}

TEST(reconstruct_returns_rows_as_they_were_given) {
    Collection asked = small_collection();
    for (const EngineKind engine : {EngineKind::kCascade, EngineKind::kExhaustive}) {
        const auto index = asked.make_index(engine, 50, true);
        asked.add_to(*index, 0, 50);
        const std::vector<std::int64_t> wanted{asked.ids[49], asked.ids[0], asked.ids[49]};
        std::vector<float> rows(3 * asked.dim);
        index->reconstruct(wanted.data(), wanted.size(), rows.data());
        CHECK(std::equal(rows.begin(), rows.begin() + 6, asked.rows.end() - 6));
        CHECK(std::equal(rows.begin() + 6, rows.begin() + 12, asked.rows.begin()));
        const std::int64_t unknown = 777;
        check_throws<std::out_of_range>([&] { index->reconstruct(&unknown, 1, rows.data()); },
                                        "id 777 is not in the index");
    }
}

TEST(an_addition_that_is_refused_changes_nothing) {
    Collection asked = small_collection();
    const auto index = asked.make_index(EngineKind::kCascade, 50, false);
    asked.add_to(*index, 0, 40);
    const auto refuse = [&](const Collection& wrong, const char* words) {
        check_throws<std::invalid_argument>([&] { wrong.add_to(*index, 40, 50); }, words);
        CHECK_EQUAL(index->size(), std::size_t{40});
    };
    Collection wrong = asked;
    wrong.ids[45] = asked.ids[7];
    refuse(wrong, ("id " + std::to_string(asked.ids[7]) + " is in the index already").c_str());
    wrong = asked;
    wrong.ids[45] = wrong.ids[44];
    refuse(wrong, "given twice");
    wrong = asked;
    wrong.rows[42 * asked.dim + 5] = kNan;
    refuse(wrong, "vectors row 2, dimension 5 is NaN");
    wrong.rows[42 * asked.dim + 5] = -HUGE_VALF;
    refuse(wrong, "vectors row 2, dimension 5 is infinite");
    asked.add_to(*index, 40, 50);
    CHECK_EQUAL(index->size(), std::size_t{50});
}

TEST(cosine_refuses_zero_vectors_and_takes_denormal_ones) {
    Collection asked = small_collection(Metric::kCosine);
    const auto index = asked.make_index(EngineKind::kCascade, 50, true);
    std::fill_n(asked.rows.begin() + 6, 6, 0.0f);
    check_throws<std::invalid_argument>([&] { asked.add_to(*index, 0, 50); },
                                        "vectors row 1 is a zero vector");
    asked.rows[8] = -1e-45f;
    asked.add_to(*index, 0, 50);
    std::fill(asked.queries.begin(), asked.queries.end(), -0.0f);
    Answers answers;
    check_throws<std::invalid_argument>(
        [&] { index->search(SearchRequest{}, asked.queries.data(), 2, 1, 0, answers); },
        "queries row 0 is a zero vector");
}

TEST(an_encoding_comes_before_the_first_entry) {
    const Collection asked = small_collection();
    Index index(Settings{asked.dim, asked.metric, EngineKind::kCascade, 0.0});
    CHECK(!index.encoding());
    check_throws<std::logic_error>([&] { asked.add_to(index, 0, 1); },
                                   "before the encoding was set");
    index.set_encoding(asked.encoding(50, true));
    asked.add_to(index, 0, 1);
    check_throws<std::logic_error>([&] { index.set_encoding(asked.encoding(50, true)); },
                                   "before the first entry");
    CHECK(index.encoding()->major == asked.major);
}

TEST(what_is_written_is_visible_only_when_published) {
    Random random(22);
    Collection asked =
        make_collection(random, Kind::kLattice, 5000, 5, 2, Metric::kInnerProduct, 3);
    const auto index = asked.make_index(EngineKind::kCascade, 5000, true);
    const auto check_prefix = [&](std::size_t count) {
        Answers answers;
        SearchRequest request;
        request.k = 20;
        CHECK_EQUAL(index->search(request, asked.queries.data(), 3, 1, 0, answers).entries, count);
        const auto rankings = asked.rankings(count);
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(same_hits(answers[i].results.sorted(), rankings[i], 20));
    };
    asked.add_to(*index, 0, 1000);
    const float* rows = asked.rows.data() + 1000 * 5;
    const NewEntries entries{rows, rows, 5, asked.ids.data() + 1000, 4000};
    {
        Addition given_up(*index, entries);
        given_up.write(rows, asked.ids.data() + 1000, nullptr, 2000);
        check_throws<std::logic_error>([&] { given_up.publish(); },
                                       "published before all of it was written");
    }
    check_prefix(1000);
    Addition addition(*index, entries);
    addition.write(rows, asked.ids.data() + 1000, nullptr, 3000);
    check_prefix(1000);
    addition.write(rows + 3000 * 5, asked.ids.data() + 4000, nullptr, 1000);
    check_prefix(1000);
    check_throws<std::logic_error>([&] { addition.write(rows, asked.ids.data(), nullptr, 1); },
                                   "more entries than it was told of");
    addition.publish();
    check_prefix(5000);
    check_throws<std::logic_error>([&] { addition.publish(); }, "the addition is closed");
}

// An addition holds the lock from beginning to end: a second one waits.
TEST(there_is_one_addition_at_a_time) {
    const Collection asked = small_collection();
    const auto index = asked.make_index(EngineKind::kCascade, 50, true);
    std::atomic<bool> second_began{false};
    std::thread second;
    {
        Addition first(*index, {asked.rows.data(), asked.rows.data(), 6, asked.ids.data(), 20});
        second = std::thread([&] {
            asked.add_to(*index, 20, 50);
            second_began = true;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        CHECK(!second_began);
        first.write(asked.rows.data(), asked.ids.data(), nullptr, 20);
        first.publish();
    }
    second.join();
    CHECK_EQUAL(index->size(), std::size_t{50});
    // One that is refused gives the lock back.
    check_throws<std::invalid_argument>([&] { asked.add_to(*index, 0, 1); },
                                        "in the index already");
    check_throws<std::invalid_argument>([&] { asked.add_to(*index, 0, 1); },
                                        "in the index already");
}

TEST(entries_cross_the_boundary_of_chunks) {
    Random random(23);
    const std::size_t size = 2 * kChunkEntries + 70, dim = 4;
    for (const EngineKind engine : {EngineKind::kCascade, EngineKind::kPaper}) {
        for (const Kind kind : {Kind::kLattice, Kind::kHierarchical}) {
            Collection asked =
                make_collection(random, kind, size, dim, 2, Metric::kInnerProduct, 3);
            const auto index = asked.make_index(engine, 1000, engine == EngineKind::kCascade);
            std::size_t first = 0;
            for (const std::size_t last : {kChunkEntries - 9, kChunkEntries, kChunkEntries + 1,
                                           2 * kChunkEntries - 100, size}) {
                asked.add_to(*index, first, last);
                first = last;
            }
            const auto rankings = asked.rankings(size);
            for (const std::size_t k :
                 {std::size_t{1}, std::size_t{10}, kChunkEntries + 3, size + 1}) {
                SearchRequest request;
                request.k = k;
                Answers answers;
                CHECK_EQUAL(index->search(request, asked.queries.data(), 3, 1, 0, answers).entries, size);
                for (std::size_t i = 0; i < 3; ++i) {
                    const Context context("k ", k, ", query ", i);
                    CHECK(same_hits(answers[i].results.sorted(), rankings[i], k));
                }
            }
            std::vector<std::int64_t> ids(20);
            std::vector<float> rows(20 * dim), again(20 * dim);
            index->copy_entries(kChunkEntries - 10, 20, ids.data(), rows.data());
            CHECK(std::equal(ids.begin(), ids.end(), asked.ids.begin() + kChunkEntries - 10));
            CHECK(std::equal(rows.begin(), rows.end(),
                             asked.rows.data() + (kChunkEntries - 10) * dim));
            index->reconstruct(ids.data(), ids.size(), again.data());
            CHECK(again == rows);
        }
    }
}

}  // namespace
}  // namespace hiernorm::testing
