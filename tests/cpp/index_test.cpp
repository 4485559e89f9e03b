// Every engine, under every kernel family, answers like a plain loop over all entries.
#include "index.hpp"

#include <string>

#include "check.hpp"
#include "collection.hpp"

namespace hiernorm::testing {
namespace {

constexpr EngineKind kEngines[] = {EngineKind::kCascade, EngineKind::kPaper, EngineKind::kExhaustive};

const char* name_of(EngineKind engine) {
    return engine == EngineKind::kCascade ? "cascade" : engine == EngineKind::kPaper ? "paper" : "exhaustive";
}

// Leaves the fastest family in use.
template <class Check>
void for_all_kernels(Check check) {
    for (const Kernels* kernels : available_kernels()) {
        const Context context(kernels->name);
        use_kernels(kernels->name);
        check();
    }
}

void check_answers(const Collection& asked, std::vector<Answer>& answers,
                   const std::vector<std::vector<Hit>>& rankings, std::size_t k) {
    if (!CHECK_EQUAL(answers.size(), asked.asked())) return;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const Context context("query ", i);
        const std::vector<Hit>& hits = answers[i].results.sorted();
        CHECK(same_hits(hits, rankings[i], k));
        const Report& report = answers[i].report;
        CHECK(report.sifted >= report.tightened && report.tightened >= report.settled);
        CHECK(report.settled <= asked.size() && report.settled >= hits.size());
        // What was not settled is proved to lie behind the hits.
        if (report.settled < asked.size()) CHECK(report.skipped_bound < hits.back().score);
    }
}

void check_searches(Random& random, const Collection& asked, const Index& index) {
    const auto rankings = asked.rankings(asked.size());
    for (const std::size_t k : {std::size_t{1}, std::size_t{10}, 1 + random.below(asked.size()),
                                asked.size(), asked.size() + 5}) {
        for (const std::size_t threads : {1, 3}) {
            const std::size_t batch = random.below(4);
            const Context context("k ", k, ", threads ", threads, ", batch ", batch);
            Job job;
            job.k = k;
            std::vector<Answer> answers;
            CHECK_EQUAL(index.search(job, asked.queries.data(), asked.asked(), threads, batch, answers),
                        asked.size());
            check_answers(asked, answers, rankings, k);
        }
    }
    Job job;
    job.k = 7;
    std::vector<Answer> answers;
    index.search_all(job, asked.queries.data(), asked.asked(), 2, answers);
    check_answers(asked, answers, rankings, 7);
}

// Thresholds at scores (which count as reached), between them and beyond them.
void check_ranges(Random& random, const Collection& asked, const Index& index) {
    const auto rankings = asked.rankings(asked.size());
    const double score = random.pick(rankings[0]).score, best = rankings[0].front().score;
    for (const double threshold : {score, std::nextafter(score, kInfinity), best, -kInfinity, kInfinity}) {
        const Context context("threshold ", threshold);
        Job job;
        job.range = true;
        job.threshold = threshold;
        std::vector<Answer> answers;
        index.search(job, asked.queries.data(), asked.asked(), 2, 0, answers);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const auto reached = std::count_if(rankings[i].begin(), rankings[i].end(),
                                               [&](const Hit& hit) { return hit.score >= threshold; });
            CHECK_EQUAL(answers[i].results.size(), static_cast<std::size_t>(reached));
            CHECK(same_hits(answers[i].results.sorted(), rankings[i], static_cast<std::size_t>(reached)));
        }
    }
}

// Soft search may miss hits, but says so: what it missed is not above the bound it returns.
void check_soft_bounds(const Collection& asked, const Index& index) {
    const auto rankings = asked.rankings(asked.size());
    for (const double beta : {0.0, 0.05}) {
        Job job;
        job.k = 5;
        job.soft = true;
        job.beta = beta;
        std::vector<Answer> answers;
        index.search(job, asked.queries.data(), asked.asked(), 1, 0, answers);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const std::vector<Hit>& hits = answers[i].results.sorted();
            if (!CHECK_EQUAL(hits.size(), std::min<std::size_t>(5, asked.size()))) continue;
            for (const Hit& hit : rankings[i]) {
                if (!ranks_before(hit, hits.back())) break;
                const bool found = std::any_of(hits.begin(), hits.end(),
                                               [&](const Hit& h) { return h.id == hit.id; });
                CHECK(found || hit.score <= answers[i].report.skipped_bound);
            }
        }
    }
}

TEST(all_engines_equal_a_plain_loop_over_random_shapes) {
    Random random(11);
    const std::vector<std::size_t> sizes{1, 2, 5, 16, 17, 100, 1023, 1025, 2500};
    const std::vector<std::size_t> dims{2, 3, 8, 16, 17, 33, 64, 65, 66, 80, 81, 130, 200};
    for (int round = 0; round < 60; ++round) {
        const Kind kind = kAllKinds[static_cast<std::size_t>(round) % 4];
        const std::size_t dim = random.pick(dims), size = random.pick(sizes);
        const std::size_t major = 1 + random.below(dim - 1);
        const Metric metric = random.coin() ? Metric::kCosine : Metric::kInnerProduct;
        Collection asked = make_collection(random, kind, size, dim, major, metric, 4);
        const bool rotated = dim <= 100 && random.below(3) == 0, tails = random.coin();
        if (rotated) asked.rotation = std::make_shared<Rotation>(random, dim);
        const std::size_t sample = random.coin() ? size : 1 + random.below(size);
        for (const EngineKind engine : kEngines) {
            if (engine == EngineKind::kExhaustive && rotated) continue;
            const Context context(name_of(engine), ", kind ", static_cast<int>(kind), ", n ", size,
                                  ", d ", dim, ", major ", major, ", metric ", static_cast<int>(metric),
                                  ", rotated ", rotated, ", tails ", tails, ", sample ", sample);
            for_all_kernels([&] {
                const auto index = asked.make_index(engine, sample, tails);
                const std::size_t middle = random.below(size + 1);
                asked.add_to(*index, 0, middle);
                asked.add_to(*index, middle, size);
                check_searches(random, asked, *index);
                check_ranges(random, asked, *index);
                check_soft_bounds(asked, *index);
            });
        }
    }
}

TEST(extreme_magnitudes_are_searched_exactly) {
    Random random(12);
    for (const double size : {1e-44, 1e-38, 1e-20, 1e20, 1e37}) {
        for (const double query_size : {1e-44, 1.0, 1e37}) {
            for (const Metric metric : {Metric::kInnerProduct, Metric::kCosine}) {
                Collection asked = make_collection(random, Kind::kClustered, 300, 20, 7, metric, 3);
                for (float& value : asked.rows) value = static_cast<float>(value * size);
                for (float& value : asked.queries) value = static_cast<float>(value * query_size);
                for (const EngineKind engine : kEngines) {
                    const Context context(name_of(engine), ", sizes ", size, " and ", query_size,
                                          ", metric ", static_cast<int>(metric));
                    const auto index = asked.make_index(engine, 300, random.coin());
                    asked.add_to(*index, 0, 300);
                    check_searches(random, asked, *index);
                    check_ranges(random, asked, *index);
                }
            }
        }
    }
}

TEST(long_majors_use_several_runs) {
    Random random(13);
    for (const std::size_t major : {31, 32, 33, 63, 64, 127, 160}) {
        Collection asked = make_collection(random, Kind::kClustered, 1100, 190, major,
                                           Metric::kInnerProduct, 3);
        for (const bool tails : {false, true}) {
            const Context context("major ", major, ", tails ", tails);
            for_all_kernels([&] {
                const auto index = asked.make_index(EngineKind::kCascade, asked.size(), tails);
                asked.add_to(*index, 0, asked.size());
                check_searches(random, asked, *index);
            });
        }
    }
}

}  // namespace
}  // namespace hiernorm::testing
