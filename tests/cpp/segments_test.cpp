// Segments that borrow their arrays, with and without masks, answer like one index with all
// entries.
#include "search/segments.hpp"

#include <cstring>
#include <map>
#include <new>
#include <string>

#include "answers.hpp"
#include "store/segment_file.hpp"

namespace hiernorm::testing {
namespace {

// Memory of exactly the size that the core is promised, aligned as in a file.
class Bytes {
   public:
    explicit Bytes(std::size_t size)
        : size_(size), data_(static_cast<std::byte*>(::operator new(size, kAlignment))) {
        std::fill_n(data_, size, std::byte{0});
    }
    ~Bytes() { ::operator delete(data_, kAlignment); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    std::byte* data() { return data_; }
    std::span<const std::byte> span() const { return {data_, size_}; }

   private:
    static constexpr std::align_val_t kAlignment{64};
    std::size_t size_;
    std::byte* data_;
};

// What a file would hold.
struct File {
    std::vector<std::int64_t> ids;
    std::map<std::string, std::unique_ptr<Bytes>> tensors;

    std::byte* place(const TensorLayout& tensor) {
        auto bytes = std::make_unique<Bytes>(tensor.nbytes() + tensor.beyond);
        return (tensors[tensor.name] = std::move(bytes))->data();
    }
    NamedTensors named() const {
        NamedTensors all;
        for (const auto& [name, bytes] : tensors) all.emplace(name, bytes->span());
        return all;
    }
};

// Encodes entries first .. last - 1 as the Python side does: written, never published.
std::unique_ptr<File> make_file(const Collection& asked, const Encoding& encoding, CellUse cells,
                                std::size_t first, std::size_t last) {
    auto file = std::make_unique<File>();
    const std::size_t count = last - first, dim = asked.dim;
    const float* given = asked.rows.data() + first * dim;
    Index index({dim, asked.metric, EngineKind::kCascade, 0.2, cells});
    index.set_encoding(encoding);
    Addition addition(index, {given, given, dim, asked.ids.data() + first, count}, true);
    std::vector<float> rows;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t from = first + (addition.order().empty() ? i : addition.order()[i]);
        file->ids.push_back(asked.ids[from]);
        rows.insert(rows.end(), asked.rows.data() + from * dim,
                    asked.rows.data() + (from + 1) * dim);
    }
    std::vector<double> views;
    if (asked.rotation) views = asked.rotation->apply(rows.data(), count, dim);
    addition.write(rows.data(), file->ids.data(), views.empty() ? nullptr : views.data(), count);
    const Encoding laid_out = index.encoding().value();
    const Chunk chunk = addition.take_chunk(0);
    for (const TensorLayout& tensor : chunk_tensors(laid_out, count)) {
        copy_chunk_tensor(tensor, laid_out, chunk, count, file->place(tensor));
    }
    if (!addition.order().empty()) {
        for (const TensorLayout& tensor : cone_tensors(laid_out, count)) {
            copy_cone_tensor(tensor, addition.cells(), count, file->place(tensor));
        }
    }
    std::memcpy(file->place({"ids", "I64", {count}}), file->ids.data(),
                count * sizeof(std::int64_t));
    std::memcpy(file->place({"rows", "F32", {count, dim}}), rows.data(),
                rows.size() * sizeof(float));
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
        const Encoding encoding = asked.encoding(size, random.coin());
        const CellUse cells = random.coin() ? CellUse::kAlways : CellUse::kNever;
        const std::size_t middle = 1 + random.below(size - 1),
                          percent = random.pick(std::vector<std::size_t>{0, 1, 10, 50, 100});
        const Context context("kind ", static_cast<int>(kind), ", n ", size, ", d ", dim,
                              ", major ", major, ", metric ", static_cast<int>(metric), ", cells ",
                              cells == CellUse::kAlways, ", allowed ", percent);
        const std::unique_ptr<File> files[] = {make_file(asked, encoding, cells, 0, middle),
                                               make_file(asked, encoding, cells, middle, size)};
        std::vector<std::int64_t> allowed;
        std::vector<std::vector<std::uint8_t>> masks;
        std::vector<std::unique_ptr<Index>> indexes;
        std::vector<Segment> segments;
        for (const auto& file : files) {
            const std::size_t before = allowed.size();
            masks.push_back(make_mask(random, *file, percent, allowed));
            indexes.push_back(open_segment({dim, metric, EngineKind::kCascade, 0.2, cells},
                                           encoding, file->named(), file->ids.size()));
            segments.push_back(
                {indexes.back().get(),
                 percent == 100 ? Mask() : Mask(masks.back().data(), allowed.size() - before)});
        }
        for_all_kernels([&] {
            for (const std::size_t k : {std::size_t{1}, std::size_t{10}, size + 3}) {
                SearchRequest request;
                request.k = k;
                Answers answers(request, asked.asked());
                search_segments(segments, request, asked.queries.data(), asked.asked(), 2, 0,
                                answers);
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
    const Encoding encoding = asked.encoding(40, false);
    const auto file = make_file(asked, encoding, CellUse::kNever, 0, 40);
    const auto index = open_segment({8, Metric::kInnerProduct, EngineKind::kCascade, 0.2}, encoding,
                                    file->named(), 40);
    const std::int64_t id = 1000;
    check_throws<std::logic_error>([&] { index->add(asked.rows.data(), &id, 1); },
                                   "nothing can be added to a segment");
    CHECK_EQUAL(index->size(), std::size_t{40});
}

TEST(a_segment_whose_tensors_do_not_fit_is_refused) {
    Random random(73);
    const Collection asked =
        make_collection(random, Kind::kHierarchical, 40, 8, 3, Metric::kInnerProduct, 1);
    const Encoding encoding = asked.encoding(40, false);
    const auto file = make_file(asked, encoding, CellUse::kAlways, 0, 40);
    const Settings settings{8, Metric::kInnerProduct, EngineKind::kCascade, 0.2};
    for (const auto& [name, bytes] : file->tensors) {
        const Context context(name);
        NamedTensors tensors = file->named();
        tensors[name] = bytes->span().first(bytes->span().size() - 1);
        check_throws<std::invalid_argument>(
            [&] { (void)open_segment(settings, encoding, tensors, 40); },
            "has not the size that its encoding gives");
        if (name == "cones_16") continue;  // without it there are no cones
        tensors.erase(name);
        check_throws<std::invalid_argument>(
            [&] { (void)open_segment(settings, encoding, tensors, 40); }, name);
    }
    Encoding other = encoding;
    other.metric = Metric::kCosine;
    check_throws<std::invalid_argument>(
        [&] { (void)open_segment(settings, other, file->named(), 40); }, "codes for metric cosine");
    other = encoding;
    other.major = 8;
    check_throws<std::invalid_argument>(
        [&] { (void)open_segment(settings, other, file->named(), 40); },
        "a major of 8 of 8 dimensions");
}

TEST(the_tensors_of_an_index_are_those_of_a_segment) {
    Random random(74);
    for (const CellUse cells : {CellUse::kAlways, CellUse::kNever}) {
        const Collection asked =
            make_collection(random, Kind::kClustered, 3000, 90, 11, Metric::kL2, 3);
        const Encoding encoding = asked.encoding(3000, true);
        const Settings settings{90, Metric::kL2, EngineKind::kCascade, 0.2, cells};
        Index index(settings);
        index.set_encoding(encoding);
        asked.add_to(index, 0, 3000);
        File file;
        index.copy_tensors([&](const TensorLayout& tensor) { return file.place(tensor); });
        const auto written = make_file(asked, encoding, cells, 0, 3000);
        CHECK_EQUAL(file.tensors.size(), written->tensors.size());
        for (const auto& [name, bytes] : written->tensors) {
            const Context context(name);
            if (!CHECK(file.tensors.contains(name))) continue;
            const auto copied = file.tensors[name]->span(), expected = bytes->span();
            CHECK(std::equal(copied.begin(), copied.end(), expected.begin(), expected.end()));
        }
    }
}

}  // namespace
}  // namespace hiernorm::testing
