// Searches beside additions see a published prefix, whole; meant for ThreadSanitizer as well.
#include <atomic>
#include <thread>

#include "check.hpp"
#include "collection.hpp"

namespace hiernorm::testing {
namespace {

constexpr std::size_t kSearchers = 3;
constexpr std::size_t kHits = 10;
// Prefixes that become visible; 5,000 at once are written in more than one slice.
const std::vector<std::size_t> kPrefixes{0, 1, 8, 9, 50, 550, 1024, 1030, 6030, 6500, 7000};

struct Expected {
    std::vector<std::vector<std::vector<Hit>>> rankings;  // of each prefix, of each query

    explicit Expected(const Collection& asked) {
        for (const std::size_t prefix : kPrefixes) rankings.push_back(asked.rankings(prefix));
    }

    // Whether the answers are those of the prefix that was searched.
    bool match(std::size_t searched, Answers& answers) const {
        const auto prefix = std::find(kPrefixes.begin(), kPrefixes.end(), searched);
        if (prefix == kPrefixes.end()) return false;
        const auto& expected = rankings[static_cast<std::size_t>(prefix - kPrefixes.begin())];
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (!same_hits(answers[i].results.sorted(), expected[i], kHits)) return false;
        }
        return answers.size() == expected.size();
    }
};

// Some threads search, one looks entries up, and this one adds.
void check_searches_beside_additions(const Collection& asked, EngineKind engine) {
    const Expected expected(asked);
    const auto index = asked.make_index(engine, 500, true);
    std::atomic<bool> done{false};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kSearchers; ++t) {
        threads.emplace_back([&, t] {
            std::size_t before = 0;
            for (bool last = false; !last;) {
                last = done;  // one more search after the last addition
                SearchRequest request;
                request.k = kHits;
                Answers answers;
                const std::size_t searched = index
                                                 ->search(request, asked.queries.data(),
                                                          asked.asked(), 1 + t % 2, t, answers)
                                                 .entries;
                CHECK(expected.match(searched, answers));
                CHECK(searched >= before);
                before = searched;
            }
            CHECK_EQUAL(before, kPrefixes.back());
        });
    }
    threads.emplace_back([&] {
        std::vector<float> row(asked.dim);
        while (!done) {
            const std::size_t size = index->size();
            if (size == 0) continue;
            index->reconstruct(&asked.ids[size - 1], 1, row.data());
            CHECK(std::equal(row.begin(), row.end(), asked.rows.data() + (size - 1) * asked.dim));
            std::int64_t id = 0;
            index->copy_entries(size / 2, 1, &id, row.data());
            CHECK_EQUAL(id, asked.ids[size / 2]);
            CHECK(index->nbytes() > 0);
        }
    });
    for (std::size_t p = 1; p < kPrefixes.size(); ++p) {
        asked.add_to(*index, kPrefixes[p - 1], kPrefixes[p]);
        std::this_thread::yield();
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
}

Collection made(std::uint64_t seed, Kind kind, Metric metric) {
    Random random(seed);
    return make_collection(random, kind, kPrefixes.back(), 18, 6, metric, 4);
}

TEST(cascade_searches_beside_additions_see_a_prefix) {
    check_searches_beside_additions(made(31, Kind::kHierarchical, Metric::kInnerProduct),
                                    EngineKind::kCascade);
    check_searches_beside_additions(made(32, Kind::kLattice, Metric::kCosine),
                                    EngineKind::kCascade);
}

TEST(rotated_searches_beside_additions_see_a_prefix) {
    Collection asked = made(33, Kind::kClustered, Metric::kInnerProduct);
    Random random(34);
    asked.rotation = std::make_shared<Rotation>(random, asked.dim);
    check_searches_beside_additions(asked, EngineKind::kCascade);
}

TEST(paper_searches_beside_additions_see_a_prefix) {
    check_searches_beside_additions(made(35, Kind::kHierarchical, Metric::kInnerProduct),
                                    EngineKind::kPaper);
}

TEST(additions_from_many_threads_all_arrive) {
    const Collection asked = made(36, Kind::kArbitrary, Metric::kInnerProduct);
    const auto index = asked.make_index(EngineKind::kCascade, 500, true);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const std::size_t quarter = asked.size() / 4;
            for (std::size_t first = t * quarter; first < (t + 1) * quarter; first += 250) {
                asked.add_to(*index, first, std::min(first + 250, (t + 1) * quarter));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    SearchRequest request;
    request.k = 100;
    Answers answers;
    CHECK_EQUAL(index->search(request, asked.queries.data(), asked.asked(), 2, 0, answers).entries,
                asked.size());
    const auto rankings = asked.rankings(asked.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
        CHECK(same_hits(answers[i].results.sorted(), rankings[i], 100));
    }
}

TEST(searches_from_many_threads_agree) {
    const Collection asked = made(37, Kind::kClustered, Metric::kCosine);
    const auto index = asked.make_index(EngineKind::kCascade, asked.size(), false);
    asked.add_to(*index, 0, asked.size());
    const auto rankings = asked.rankings(asked.size());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            SearchRequest request;
            request.k = 1 + 40 * t;
            Answers answers;
            index->search(request, asked.queries.data(), asked.asked(), 1 + t, t, answers);
            for (std::size_t i = 0; i < answers.size(); ++i) {
                CHECK(same_hits(answers[i].results.sorted(), rankings[i], request.k));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(one_query_by_several_threads_has_the_answer_of_one_thread) {
    Random random(38);
    constexpr std::size_t kSize = 3 * Index::kEntriesPerThread + 77;
    const Collection asked =
        make_collection(random, Kind::kClustered, kSize, 8, 4, Metric::kInnerProduct, 2);
    const auto index = asked.make_index(EngineKind::kCascade, 5000, false);
    asked.add_to(*index, 0, kSize);
    for (const std::size_t k : {1, 25}) {
        SearchRequest request;
        request.k = k;
        Answers expected, answers, again;
        index->search(request, asked.queries.data(), asked.asked(), 1, 0, expected);
        index->search(request, asked.queries.data(), asked.asked(), 3, 0, answers);
        index->search(request, asked.queries.data(), asked.asked(), 3, 0, again);
        for (std::size_t i = 0; i < asked.asked(); ++i) {
            const std::span<const Hit> right = expected[i].results.sorted();
            CHECK(same_hits(answers[i].results.sorted(), {right.begin(), right.end()}, k));
            const SearchStats &stats = answers[i].stats, &second = again[i].stats;
            CHECK(stats.skipped_bound < right.back().score);
            CHECK(stats.sifted >= stats.tightened && stats.tightened >= stats.settled);
            // Whichever thread was faster.
            CHECK_EQUAL(stats.sifted, second.sifted);
            CHECK_EQUAL(stats.settled, second.settled);
            CHECK(same_bits(stats.skipped_bound, second.skipped_bound));
        }
    }
    SearchRequest best, range;
    best.k = 50;
    range.range = true;
    Answers all;
    index->search(best, asked.queries.data(), 1, 1, 0, all);
    range.threshold = all[0].results.sorted().back().score;
    Answers expected, answers;
    index->search(range, asked.queries.data(), 1, 1, 0, expected);
    index->search(range, asked.queries.data(), 1, 3, 0, answers);
    const std::span<const Hit> right = expected[0].results.sorted();
    CHECK(same_hits(answers[0].results.sorted(), {right.begin(), right.end()}, right.size()));
}

}  // namespace
}  // namespace hiernorm::testing
