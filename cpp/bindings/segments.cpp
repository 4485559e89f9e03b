// Segments of a database: mapped arrays in, search over many.
#include "search/segments.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"

using namespace nanobind::literals;

namespace hiernorm {
namespace {

using Bytes = Vector<std::uint8_t>;
using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

NamedTensors named(const nb::dict& tensors) {
    NamedTensors all;
    for (const auto [name, value] : tensors) {
        const auto array = nb::cast<AnyArray>(value);
        all.emplace(nb::cast<std::string>(name),
                    std::span(static_cast<const std::byte*>(array.data()), array.nbytes()));
    }
    return all;
}

NamedChecks named_checks(const nb::dict& checks) {
    NamedChecks all;
    for (const auto [name, value] : checks) {
        all.emplace(nb::cast<std::string>(name), nb::cast<const BlockChecks*>(value));
    }
    return all;
}

// Makes the tensors of a file, which live as long as the index, its entries.
void attach(Index& index, const nb::dict& tensors, std::size_t entries, const nb::dict& checks) {
    const std::optional<Encoding> encoding = index.encoding();
    const SegmentArrays arrays = arrays_of(named(tensors), index.settings().dim, entries,
                                           encoding ? &*encoding : nullptr, named_checks(checks));
    index.attach(arrays, /*know_ids=*/true);
}

// An index over the tensors of a file, and the Python objects that keep these alive.
struct SegmentIndex {
    SegmentIndex(const Index& like, std::optional<Encoding> encoding, nb::dict tensors,
                 std::size_t entries, nb::dict checks_by_name)
        : arrays(tensors),
          checks(checks_by_name),
          index(open_segment(like.settings(), std::move(encoding), named(tensors), entries,
                             named_checks(checks))) {}

    nb::dict arrays, checks;
    std::unique_ptr<Index> index;
};

std::vector<Segment> with_masks(const std::vector<const SegmentIndex*>& indexes,
                                const std::vector<std::optional<Bytes>>& masks,
                                const std::vector<std::size_t>& allowed) {
    if (masks.size() != indexes.size() || allowed.size() != indexes.size()) {
        throw std::invalid_argument("one mask and one count per segment");
    }
    std::vector<Segment> segments;
    for (std::size_t i = 0; i < indexes.size(); ++i) {
        const Index& index = *indexes[i]->index;
        Segment segment{&index, {}};
        if (masks[i]) {
            if (masks[i]->size() < (index.size() + 63) / 64 * 8) {
                throw std::invalid_argument("a mask has fewer bits than its segment entries");
            }
            segment.mask = Mask(masks[i]->data(), allowed[i]);
        }
        segments.push_back(segment);
    }
    return segments;
}

// Hits of entries that are elsewhere, (queries, k) each; -inf where there are fewer than k.
struct Known {
    std::optional<Matrix<std::int64_t>> ids;
    std::optional<Matrix<double>> scores;

    void check(std::size_t queries, std::size_t k) const {
        const bool both = ids.has_value() && scores.has_value();
        const bool none = !ids.has_value() && !scores.has_value();
        if (none || (both && ids->shape(0) == queries && scores->shape(0) == queries &&
                     ids->shape(1) == k && scores->shape(1) == k)) {
            return;
        }
        throw std::invalid_argument("known hits need ids and scores of shape (queries, k)");
    }

    void offer_to(Answers& answers) const {
        if (!ids) return;
        const std::size_t k = ids->shape(1);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            for (std::size_t j = i * k; j < (i + 1) * k; ++j) {
                const Hit hit{scores->data()[j], ids->data()[j]};
                if (hit.score > -kInfinity) answers[i].results.offer(hit);
            }
        }
    }
};

Answers search_all_segments(const std::vector<Segment>& segments, const SearchRequest& request,
                            const Matrix<float>& queries, std::size_t threads,
                            std::size_t batch_size, const Known& known) {
    const LongWork work;
    Answers answers(request, queries.shape(0));
    known.offer_to(answers);
    search_segments(segments, request, queries.data(), queries.shape(0), threads, batch_size,
                    answers);
    return answers;
}

}  // namespace

void bind_segments(nb::module_& m) {
    nb::class_<SegmentIndex>(m, "SegmentIndex")
        .def(nb::init<const Index&, std::optional<Encoding>, nb::dict, std::size_t, nb::dict>(),
             "like"_a, "encoding"_a.none(), "tensors"_a, "entries"_a, "checks"_a)
        .def("__len__", [](const SegmentIndex& self) { return self.index->size(); });
    m.def("attach", &attach, nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>(), "index"_a, "tensors"_a,
          "entries"_a, "checks"_a);
    m.def(
        "search_segments",
        [](const std::vector<const SegmentIndex*>& indexes,
           const std::vector<std::optional<Bytes>>& masks, const std::vector<std::size_t>& allowed,
           const Matrix<float>& queries, std::size_t k, double beta, std::size_t threads,
           std::size_t batch_size, std::optional<Matrix<std::int64_t>> known_ids,
           std::optional<Matrix<double>> known_scores) {
            const Known known{std::move(known_ids), std::move(known_scores)};
            known.check(queries.shape(0), k);
            const SearchRequest request = top_k_request(k, beta);
            const std::vector<Segment> segments = with_masks(indexes, masks, allowed);
            TopK found(queries.shape(0), k);
            Answers answers =
                search_all_segments(segments, request, queries, threads, batch_size, known);
            found.fill(answers);
            return nb::make_tuple(found.ids(), found.scores(), pack_stats(answers));
        },
        "indexes"_a, "masks"_a, "allowed"_a, "queries"_a, "k"_a, "beta"_a, "threads"_a,
        "batch_size"_a, "known_ids"_a.noconvert().none(), "known_scores"_a.noconvert().none());
    m.def(
        "range_segments",
        [](const std::vector<const SegmentIndex*>& indexes,
           const std::vector<std::optional<Bytes>>& masks, const std::vector<std::size_t>& allowed,
           const Matrix<float>& queries, double threshold, std::size_t threads) {
            const SearchRequest request = range_request(threshold);
            const std::vector<Segment> segments = with_masks(indexes, masks, allowed);
            Answers answers = search_all_segments(segments, request, queries, threads, 0, {});
            return range_to_python(answers);
        },
        "indexes"_a, "masks"_a, "allowed"_a, "queries"_a, "threshold"_a, "threads"_a);
}

}  // namespace hiernorm
