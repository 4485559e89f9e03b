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

}  // namespace
}  // namespace hiernorm::testing
