// Data that strains the bounds: each test fails if one of their terms is left out.
#include "answers.hpp"

namespace hiernorm::testing {
namespace {

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

TEST(long_majors_use_several_bursts) {
    Random random(13);
    for (const std::size_t major : {31, 32, 33, 63, 64, 127, 160}) {
        Collection asked = make_collection(random, Kind::kClustered, kTileEntries + 70, 190, major,
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

// The encoding has seen minors of norm 1 only. The best entry has a minor of far larger norm, most
// of it behind the first stage, and a decoy whose major is better sets a high threshold before.
TEST(tails_beyond_the_sample_are_bounded) {
    Random random(14);
    constexpr std::size_t kDim = 200, kMajor = 3, kSize = 300;
    for (const Metric metric : {Metric::kInnerProduct, Metric::kCosine}) {
        Collection asked =
            make_collection(random, Kind::kHierarchical, kSize, kDim, kMajor, metric, 2);
        const float scale = metric == Metric::kCosine ? 1.0f : 10.0f;
        for (std::size_t i = 0; i < kSize; ++i) {
            float* minor = asked.rows.data() + i * kDim + kMajor;
            std::fill_n(minor, kDim - kMajor, 0.0f);
            minor[random.below(kDim - kMajor)] = 1.0f;
        }
        for (std::size_t j = 0; j < kDim; ++j) asked.queries[j] = random.coin() ? scale : -scale;
        float* best = asked.rows.data() + (kSize - 1) * kDim;
        float* decoy = asked.rows.data() + kDim;
        std::copy_n(asked.queries.data(), kDim, best);
        for (std::size_t j = 0; j < kDim; ++j) best[j] /= scale;
        std::copy_n(best, kDim, decoy);
        best[0] *= 0.9f;
        for (std::size_t j = 0; j < 40; ++j) decoy[kMajor + j] *= -1.0f;
        for (const bool tails : {false, true}) {
            const Context context("metric ", static_cast<int>(metric), ", tails ", tails);
            const auto index = asked.make_index(EngineKind::kCascade, 1, tails);
            asked.add_to(*index, 0, kSize);
            check_searches(random, asked, *index);
        }
    }
}

// A matrix that shrinks by one per cent moves scores by two: the index is told so, and believes it.
TEST(the_error_of_a_rotation_is_part_of_the_bounds) {
    Random random(15);
    for (const Metric metric : {Metric::kInnerProduct, Metric::kCosine}) {
        Collection asked =
            make_collection(random, Kind::kClustered, kTileEntries + 500, 24, 11, metric, 6);
        asked.rotation = std::make_shared<Rotation>(random, asked.dim, 0.9955);
        const Context context("metric ", static_cast<int>(metric));
        const auto index = asked.make_index(EngineKind::kCascade, asked.size(), true);
        asked.add_to(*index, 0, asked.size());
        check_searches(random, asked, *index);
        check_ranges(random, asked, *index);
    }
}

TEST(rotations_that_the_bounds_do_not_cover_are_refused) {
    Random random(16);
    Collection asked =
        make_collection(random, Kind::kClustered, 100, 24, 11, Metric::kInnerProduct, 1);
    const auto refused = [&](EngineKind engine) {
        try {
            (void)asked.make_index(engine, asked.size(), true);
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    asked.rotation = std::make_shared<Rotation>(random, asked.dim, 0.99);
    CHECK(refused(EngineKind::kCascade));
    asked.rotation = std::make_shared<Rotation>(random, asked.dim);
    CHECK(!refused(EngineKind::kCascade));
    CHECK(refused(EngineKind::kPaper));
}

}  // namespace
}  // namespace hiernorm::testing
