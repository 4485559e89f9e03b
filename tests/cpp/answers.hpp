// The questions that the tests put to an index, and the comparison of its answers with plain loops.
#pragma once

#include "check.hpp"
#include "collection.hpp"

namespace hiernorm::testing {

inline constexpr EngineKind kEngines[] = {EngineKind::kCascade, EngineKind::kPaper,
                                          EngineKind::kExhaustive, EngineKind::kFlat};

inline const char* name_of(EngineKind engine) {
    return engine == EngineKind::kCascade ? "cascade"
           : engine == EngineKind::kPaper ? "paper"
           : engine == EngineKind::kFlat  ? "flat"
                                          : "exhaustive";
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

inline void check_answers(const Collection& asked, Answers& answers,
                          const std::vector<std::vector<Hit>>& rankings, std::size_t k) {
    if (!CHECK_EQUAL(answers.size(), asked.asked())) return;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const Context context("query ", i);
        const std::span<const Hit> hits = answers[i].results.sorted();
        if (!CHECK(same_hits(hits, rankings[i], k))) continue;
        const SearchStats& stats = answers[i].stats;
        CHECK(stats.sifted >= stats.tightened && stats.tightened >= stats.settled);
        CHECK(stats.settled <= asked.size() && stats.settled >= hits.size());
        // What was not settled is proved to lie behind the hits.
        if (stats.settled < asked.size()) CHECK(stats.skipped_bound < hits.back().score);
    }
}

inline void check_searches(Random& random, const Collection& asked, const Index& index) {
    const auto rankings = asked.rankings(asked.size());
    for (const std::size_t k : {std::size_t{1}, std::size_t{10}, 1 + random.below(asked.size()),
                                asked.size(), asked.size() + 5}) {
        for (const std::size_t threads : {1, 3}) {
            const std::size_t batch = random.below(4);
            const Context context("k ", k, ", threads ", threads, ", batch ", batch);
            SearchRequest request;
            request.k = k;
            Answers answers;
            const Searched searched =
                index.search(request, asked.queries.data(), asked.asked(), threads, batch, answers);
            CHECK_EQUAL(searched.entries, asked.size());
            CHECK_EQUAL(searched.live, asked.size());
            check_answers(asked, answers, rankings, k);
        }
    }
    SearchRequest request;
    request.k = 7;
    Answers answers;
    index.search_all(request, asked.queries.data(), asked.asked(), 2, answers);
    check_answers(asked, answers, rankings, 7);
}

// Thresholds at scores (which count as reached), between them and beyond them.
inline void check_ranges(Random& random, const Collection& asked, const Index& index) {
    const auto rankings = asked.rankings(asked.size());
    const double score = random.pick(rankings[0]).score, best = rankings[0].front().score;
    for (const double threshold :
         {score, std::nextafter(score, kInfinity), best, -kInfinity, kInfinity}) {
        const Context context("threshold ", threshold);
        SearchRequest request;
        request.range = true;
        request.threshold = threshold;
        Answers answers;
        index.search(request, asked.queries.data(), asked.asked(), 2, 0, answers);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const auto reached =
                std::count_if(rankings[i].begin(), rankings[i].end(),
                              [&](const Hit& hit) { return hit.score >= threshold; });
            CHECK_EQUAL(answers[i].results.size(), static_cast<std::size_t>(reached));
            CHECK(same_hits(answers[i].results.sorted(), rankings[i],
                            static_cast<std::size_t>(reached)));
        }
    }
}

// Soft search may miss hits, but says so: what it missed is not above the bound it returns.
inline void check_soft_bounds(const Collection& asked, const Index& index) {
    const auto rankings = asked.rankings(asked.size());
    for (const double beta : {0.0, 0.05}) {
        SearchRequest request;
        request.k = 5;
        request.soft = true;
        request.beta = beta;
        Answers answers;
        index.search(request, asked.queries.data(), asked.asked(), 1, 0, answers);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const std::span<const Hit> hits = answers[i].results.sorted();
            if (!CHECK_EQUAL(hits.size(), std::min<std::size_t>(5, asked.size()))) continue;
            for (const Hit& hit : rankings[i]) {
                if (!ranks_before(hit, hits.back())) break;
                const bool found = std::any_of(hits.begin(), hits.end(),
                                               [&](const Hit& h) { return h.id == hit.id; });
                CHECK(found || hit.score <= answers[i].stats.skipped_bound);
            }
        }
    }
}

}  // namespace hiernorm::testing
