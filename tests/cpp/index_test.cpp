// Every engine, under every kernel family, answers like a plain loop over all entries.
#include "answers.hpp"

namespace hiernorm::testing {
namespace {

TEST(all_engines_equal_a_plain_loop_over_random_shapes) {
    Random random(11);
    const std::vector<std::size_t> sizes{
        1, 2, 5, 16, 17, 100, kTileEntries - 1, kTileEntries + 1, 2 * kTileEntries + 70};
    const std::vector<std::size_t> dims{2, 3, 8, 16, 17, 33, 64, 65, 66, 80, 81, 130, 200};
    for (int round = 0; round < 60; ++round) {
        const Kind kind = kAllKinds[static_cast<std::size_t>(round) % 4];
        const std::size_t dim = random.pick(dims), size = random.pick(sizes);
        const std::size_t major = 1 + random.below(dim - 1);
        const Metric metric =
            random.pick(std::vector{Metric::kInnerProduct, Metric::kCosine, Metric::kL2});
        Collection asked = make_collection(random, kind, size, dim, major, metric, 4);
        const bool rotated = dim <= 100 && random.below(3) == 0, tails = random.coin();
        if (rotated) asked.rotation = std::make_shared<Rotation>(random, dim);
        const std::size_t sample = random.coin() ? size : 1 + random.below(size);
        for (const EngineKind engine : kEngines) {
            if (engine != EngineKind::kCascade && rotated) continue;
            if (engine == EngineKind::kPaper && metric == Metric::kL2) continue;
            const Context context(name_of(engine), ", kind ", static_cast<int>(kind), ", n ", size,
                                  ", d ", dim, ", major ", major, ", metric ",
                                  static_cast<int>(metric), ", rotated ", rotated, ", tails ",
                                  tails, ", sample ", sample);
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

// Masks reach the other engines by segments; the paper's searches none, but honours them too.
TEST(the_papers_engine_returns_allowed_entries_only) {
    Random random(17);
    constexpr std::size_t kSize = kTileEntries + 100;
    const Collection asked =
        make_collection(random, Kind::kHierarchical, kSize, 20, 6, Metric::kInnerProduct, 5);
    const auto index = asked.make_index(EngineKind::kPaper, kSize, false);
    asked.add_to(*index, 0, kSize);
    std::vector<std::uint8_t> bits(round_up(kSize, 64) / 8);
    std::size_t allowed = 0;
    for (std::size_t i = 0; i < kSize; ++i) {
        if (i % 3 == 0) continue;
        bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << (i % 8));
        ++allowed;
    }
    SearchRequest request;
    request.mask = Mask(bits.data(), allowed);
    const auto rankings = asked.rankings(kSize);
    for (const std::size_t k : {std::size_t{1}, std::size_t{10}, kSize}) {
        request.k = k;
        Answers answers;
        index->search(request, asked.queries.data(), asked.asked(), 1, 0, answers);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            std::vector<Hit> right;
            for (const Hit& hit : rankings[i]) {
                const auto position =
                    std::find(asked.ids.begin(), asked.ids.end(), hit.id) - asked.ids.begin();
                if (position % 3 != 0) right.push_back(hit);
            }
            CHECK(same_hits(answers[i].results.sorted(), right, k));
        }
    }
}

TEST(names_of_metrics_and_engines_are_checked) {
    CHECK(metric_named("l2") == Metric::kL2);
    CHECK(engine_named("paper") == EngineKind::kPaper);
    check_throws<std::invalid_argument>([] { (void)metric_named("L2"); },
                                        "metric must be one of ip, cosine, l2, got 'L2'");
    check_throws<std::invalid_argument>(
        [] { (void)engine_named("fast"); },
        "engine must be one of cascade, paper, exhaustive, flat, got 'fast'");
}

}  // namespace
}  // namespace hiernorm::testing
