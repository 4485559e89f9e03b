// Segments that borrow their arrays, with and without masks, answer like one index with all
// entries.
#include "search/segments.hpp"
#include "answers.hpp"

namespace hiernorm::testing {
namespace {

// What a file would hold: arrays of exactly the size that the core is promised.
struct File {
    std::vector<std::int64_t> ids;
    std::vector<float> rows;
    Buffer<std::uint8_t> major_codes;
    std::vector<std::vector<std::uint8_t>> stages;
    ChunkCones cones;
    SegmentArrays arrays;
};

// Encodes entries first .. last - 1 as the Python side does: written, never published.
std::unique_ptr<File> make_file(const Collection& asked, const Fit& fit, CellUse cells,
                                std::size_t first, std::size_t last) {
    auto file = std::make_unique<File>();
    const std::size_t count = last - first, dim = asked.dim;
    file->ids.assign(asked.ids.begin() + static_cast<std::ptrdiff_t>(first),
                     asked.ids.begin() + static_cast<std::ptrdiff_t>(last));
    file->rows.assign(asked.rows.data() + first * dim, asked.rows.data() + last * dim);
    Index index({dim, asked.metric, EngineKind::kCascade, 0.2, cells});
    index.set_fit(fit);
    const std::vector<std::uint32_t> order =
        index.group(file->rows.data(), file->rows.data(), dim, file->ids.data(), count);
    if (!order.empty()) {
        for (std::size_t i = 0; i < count; ++i) {
            file->ids[i] = asked.ids[first + order[i]];
            std::copy_n(asked.rows.data() + (first + order[i]) * dim, dim,
                        file->rows.data() + i * dim);
        }
    }
    std::vector<double> views;
    if (asked.rotation) views = asked.rotation->apply(file->rows.data(), count, dim);
    index.write(0, file->rows.data(), file->ids.data(), views.empty() ? nullptr : views.data(),
                count, 0);
    const Chunk chunk = index.take_chunk(0);
    const Fit laid_out = index.fit().value();
    const std::size_t bytes =
        (count + kBlockEntries - 1) / kBlockEntries * kBlockEntries * laid_out.slots();
    file->major_codes.grow(bytes);
    std::copy_n(chunk.major_codes.data(), bytes, file->major_codes.data());
    SegmentArrays& arrays = file->arrays;
    for (std::size_t s = 0; s < laid_out.stages.size(); ++s) {
        const std::size_t size = count * laid_out.stages[s].bytes;
        file->stages.emplace_back(size + kStageBytes);
        std::copy_n(chunk.stage_codes[s].data(), size, file->stages.back().data());
    }
    for (const auto& stage : file->stages) arrays.stage_codes.push_back(stage.data());
    for (std::size_t tile = 0; tile * kTileEntries < count; ++tile) {
        double row[kNormColumns];
        norms_to_row(chunk.tiles[tile], row);
        arrays.tiles.push_back(norms_from_row(row));
    }
    if (!order.empty()) {
        for (std::size_t level = 0; level < kConeLevels; ++level) {
            file->cones[level].grow(cone_bytes(index.cells().layout(), level, count));
            index.cells().copy_cones(level, count, file->cones[level].data());
            arrays.cones[level] = file->cones[level].data();
        }
        double row[kConeNorms];
        cone_norms_to_row(index.cells().norms(), row);
        arrays.cone_norms = cone_norms_from_row(row);
    }
    arrays.entries = count;
    arrays.ids = file->ids.data();
    arrays.rows = file->rows.data();
    arrays.major_codes = file->major_codes.data();
    return file;
}

// A bit per entry of the file, set with the given chance in percent.
std::vector<std::uint8_t> make_mask(Random& random, const File& file, std::size_t percent,
                                    std::vector<std::int64_t>& allowed) {
    std::vector<std::uint8_t> bits((file.ids.size() + 63) / 64 * 8);
    for (std::size_t i = 0; i < file.ids.size(); ++i) {
        if (random.below(100) >= percent) continue;
        bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << (i % 8));
        allowed.push_back(file.ids[i]);
    }
    return bits;
}

TEST(segments_and_masks_equal_a_plain_loop_over_the_allowed_entries) {
    Random random(71);
    const std::vector<std::size_t> sizes{1, 15, 16, 100, kTileEntries + 1, 3 * kTileEntries + 70};
    const std::vector<std::size_t> dims{2, 3, 8, 17, 33, 66, 81, 130};
    for (int round = 0; round < 40; ++round) {
        const Kind kind = kAllKinds[static_cast<std::size_t>(round) % 4];
        const std::size_t dim = random.pick(dims), size = random.pick(sizes) + 1;
        const std::size_t major = 1 + random.below(dim - 1);
        const Metric metric =
            random.pick(std::vector{Metric::kInnerProduct, Metric::kCosine, Metric::kL2});
        Collection asked = make_collection(random, kind, size, dim, major, metric, 3);
        if (dim <= 40 && random.below(3) == 0) {
            asked.rotation = std::make_shared<Rotation>(random, dim);
        }
        const Fit fit = asked.fit(size, random.coin());
        const CellUse cells = random.coin() ? CellUse::kAlways : CellUse::kNever;
        const std::size_t middle = 1 + random.below(size - 1),
                          percent = random.pick(std::vector<std::size_t>{0, 1, 10, 50, 100});
        const Context context("kind ", static_cast<int>(kind), ", n ", size, ", d ", dim,
                              ", major ", major, ", metric ", static_cast<int>(metric), ", cells ",
                              cells == CellUse::kAlways, ", allowed ", percent);
        const std::unique_ptr<File> files[] = {make_file(asked, fit, cells, 0, middle),
                                               make_file(asked, fit, cells, middle, size)};
        std::vector<std::int64_t> allowed;
        std::vector<std::vector<std::uint8_t>> masks;
        std::vector<std::unique_ptr<Index>> indexes;
        std::vector<Segment> segments;
        for (const auto& file : files) {
            const std::size_t before = allowed.size();
            masks.push_back(make_mask(random, *file, percent, allowed));
            indexes.push_back(
                std::make_unique<Index>(Settings{dim, metric, EngineKind::kCascade, 0.2, cells}));
            indexes.back()->set_fit(fit);
            indexes.back()->attach(file->arrays);
            segments.push_back(
                {indexes.back().get(),
                 percent == 100 ? Mask() : Mask(masks.back().data(), allowed.size() - before)});
        }
        for_all_kernels([&] {
            for (const std::size_t k : {std::size_t{1}, std::size_t{10}, size + 3}) {
                Job job;
                job.k = k;
                std::vector<Answer> answers;
                ask(job, asked.asked(), answers);
                search_segments(segments, job, asked.queries.data(), asked.asked(), 2, 0, answers);
                const auto rankings = asked.rankings(size);
                for (std::size_t i = 0; i < answers.size(); ++i) {
                    std::vector<Hit> right;
                    for (const Hit& hit : rankings[i]) {
                        if (std::find(allowed.begin(), allowed.end(), hit.id) != allowed.end()) {
                            right.push_back(hit);
                        }
                    }
                    CHECK(same_hits(answers[i].results.sorted(), right, k));
                }
            }
        });
    }
}

TEST(nothing_is_added_to_a_segment) {
    Random random(72);
    const Collection asked =
        make_collection(random, Kind::kHierarchical, 40, 8, 3, Metric::kInnerProduct, 1);
    const Fit fit = asked.fit(40, false);
    const auto file = make_file(asked, fit, CellUse::kNever, 0, 40);
    Index index({8, Metric::kInnerProduct, EngineKind::kCascade, 0.2});
    index.set_fit(fit);
    index.attach(file->arrays);
    bool refused = false;
    try {
        const std::int64_t id = 1000;
        index.add(asked.rows.data(), &id, 1);
    } catch (const std::logic_error&) {
        refused = true;
    }
    CHECK(refused);
    CHECK_EQUAL(index.size(), std::size_t{40});
}

}  // namespace
}  // namespace hiernorm::testing
