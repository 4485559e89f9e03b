// Checks the shapes of mapped arrays before the core borrows them.
#include "segments_binding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "arrays.hpp"
#include "search/segments.hpp"

using namespace nanobind::literals;

namespace hiernorm {
namespace {

using Bytes = Vector<std::uint8_t>;

// An index over mapped arrays and the Python objects that keep these alive.
class SegmentIndex {
   public:
    SegmentIndex(const Index& like, std::optional<Fit> fit, Vector<std::int64_t> ids,
                 Matrix<float> rows)
        : index_(settings_for(like, fit.has_value())),
          ids_(std::move(ids)),
          rows_(std::move(rows)) {
        expect(rows_.shape(0) == ids_.shape(0) && rows_.shape(1) == index_.settings().dim, "rows");
        if (fit) index_.set_fit(std::move(*fit));
    }

    void attach(std::optional<Bytes> major_codes, std::vector<Bytes> stage_codes,
                std::optional<Matrix<double>> norms, std::vector<Bytes> cones,
                std::optional<Vector<double>> cone_norms) {
        SegmentArrays arrays;
        arrays.entries = ids_.shape(0);
        arrays.ids = ids_.data();
        arrays.rows = rows_.data();
        const std::optional<Fit> fit = index_.fit();
        expect(fit.has_value() == major_codes.has_value(), "codes");
        if (fit) {
            major_codes_ = *major_codes;
            stage_codes_ = std::move(stage_codes);
            const std::size_t blocks = (arrays.entries + kBlockEntries - 1) / kBlockEntries;
            expect(major_codes_.size() == blocks * kBlockEntries * fit->slots(), "major codes");
            arrays.major_codes = major_codes_.data();
            expect(stage_codes_.size() == fit->stages.size(), "stages");
            for (std::size_t s = 0; s < stage_codes_.size(); ++s) {
                // Kernels read kStageBytes from the start of the last row too.
                expect(
                    stage_codes_[s].size() >= arrays.entries * fit->stages[s].bytes + kStageBytes,
                    "stage codes");
                arrays.stage_codes.push_back(stage_codes_[s].data());
            }
            expect(norms && norms->shape(1) == kNormColumns, "norms");
            for (std::size_t i = 0; i < norms->shape(0); ++i) {
                arrays.tiles.push_back(norms_from_row(norms->data() + i * kNormColumns));
            }
        }
        if (!cones.empty()) {
            cones_ = std::move(cones);
            expect(fit && cones_.size() == kConeLevels, "levels of cones");
            for (std::size_t level = 0; level < kConeLevels; ++level) {
                expect(cones_[level].size() == cone_bytes(cone_layout(*fit), level, arrays.entries),
                       "cones");
                arrays.cones[level] = cones_[level].data();
            }
            expect(cone_norms && cone_norms->size() == kConeNorms, "norms of cones");
            arrays.cone_norms = cone_norms_from_row(cone_norms->data());
        }
        index_.attach(arrays);
    }

    const Index& index() const { return index_; }

   private:
    // Rows without codes are searched exhaustively.
    static Settings settings_for(const Index& like, bool coded) {
        Settings settings = like.settings();
        settings.engine = coded ? EngineKind::kCascade : EngineKind::kExhaustive;
        return settings;
    }
    static void expect(bool right, const char* what) {
        if (!right) {
            throw std::invalid_argument(std::string("the ") + what +
                                        " of a segment have not the shape that its fit gives them");
        }
    }

    Index index_;
    Vector<std::int64_t> ids_;
    Matrix<float> rows_;
    Bytes major_codes_;
    std::vector<Bytes> stage_codes_;
    std::vector<Bytes> cones_;
};

// Major codes (whole blocks), stages, and norms (tiles, 8) of the first `entries` of a chunk.
nb::tuple take_chunk(Index& index, std::size_t chunk_index, std::size_t entries) {
    const Fit fit = index.fit().value();
    const Chunk chunk = index.take_chunk(chunk_index);
    if (entries > chunk.ids.capacity()) throw std::out_of_range("the chunk has fewer entries");
    const std::size_t blocks = (entries + kBlockEntries - 1) / kBlockEntries;
    const std::size_t major_bytes = blocks * kBlockEntries * fit.slots();
    NewArray<std::uint8_t, 1> major_codes(major_bytes);
    std::copy_n(chunk.major_codes.data(), major_bytes, major_codes.data());
    nb::list stages;
    for (std::size_t s = 0; s < fit.stages.size(); ++s) {
        NewArray<std::uint8_t, 1> stage(entries * fit.stages[s].bytes);
        std::copy_n(chunk.stage_codes[s].data(), entries * fit.stages[s].bytes, stage.data());
        stages.append(stage.to_python());
    }
    const std::size_t tiles = (entries + kTileEntries - 1) / kTileEntries;
    NewArray<double, 2> norms(tiles, kNormColumns);
    for (std::size_t i = 0; i < tiles; ++i) {
        norms_to_row(chunk.tiles[i], norms.data() + i * kNormColumns);
    }
    return nb::make_tuple(major_codes.to_python(), stages, norms.to_python());
}

// Codes of the cones over the first `entries`, level by level, and the norms of their members (3,).
nb::tuple written_cones(const Index& index, std::size_t entries) {
    const Cells& cells = index.cells();
    nb::list levels;
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        NewArray<std::uint8_t, 1> codes(cone_bytes(cells.layout(), level, entries));
        cells.copy_cones(level, entries, codes.data());
        levels.append(codes.to_python());
    }
    NewArray<double, 1> norms(kConeNorms);
    cone_norms_to_row(cells.norms(), norms.data());
    return nb::make_tuple(levels, norms.to_python());
}

std::vector<Segment> with_masks(const std::vector<const SegmentIndex*>& indexes,
                                const std::vector<std::optional<Bytes>>& masks,
                                const std::vector<std::size_t>& allowed) {
    if (masks.size() != indexes.size() || allowed.size() != indexes.size()) {
        throw std::invalid_argument("one mask and one count per segment");
    }
    std::vector<Segment> segments;
    for (std::size_t i = 0; i < indexes.size(); ++i) {
        const Index& index = indexes[i]->index();
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

    void offer_to(std::vector<Answer>& answers) const {
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

std::vector<Answer> search_all_segments(const std::vector<Segment>& segments, const Job& job,
                                        const Matrix<float>& queries, std::size_t threads,
                                        std::size_t batch_size, const Known& known) {
    const nb::gil_scoped_release release;
    std::vector<Answer> answers;
    ask(job, queries.shape(0), answers);
    known.offer_to(answers);
    search_segments(segments, job, queries.data(), queries.shape(0), threads, batch_size, answers);
    return answers;
}

std::size_t entries_of(const std::vector<Segment>& segments) {
    std::size_t entries = 0;
    for (const Segment& segment : segments) entries += segment.index->size();
    return entries;
}

}  // namespace

void bind_segments(nb::module_& m) {
    nb::class_<SegmentIndex>(m, "SegmentIndex")
        .def(nb::init<const Index&, std::optional<Fit>, Vector<std::int64_t>, Matrix<float>>(),
             "like"_a, "fit"_a.none(), "ids"_a.noconvert(), "rows"_a.noconvert())
        .def("attach", &SegmentIndex::attach, "major_codes"_a.noconvert().none(),
             "stage_codes"_a.noconvert(), "norms"_a.none(), "cones"_a.noconvert(),
             "cone_norms"_a.none())
        .def("__len__", [](const SegmentIndex& self) { return self.index().size(); });
    m.def("take_chunk", &take_chunk, "index"_a, "chunk"_a, "entries"_a);
    m.def("written_cones", &written_cones, "index"_a, "entries"_a);
    m.def(
        "search_segments",
        [](const std::vector<const SegmentIndex*>& indexes,
           const std::vector<std::optional<Bytes>>& masks, const std::vector<std::size_t>& allowed,
           const Matrix<float>& queries, std::size_t k, double beta, std::size_t threads,
           std::size_t batch_size, std::optional<Matrix<std::int64_t>> known_ids,
           std::optional<Matrix<double>> known_scores) {
            const Known known{std::move(known_ids), std::move(known_scores)};
            known.check(queries.shape(0), k);
            Job job;
            job.k = k;
            job.soft = beta >= 0.0;
            job.beta = beta;
            const std::vector<Segment> segments = with_masks(indexes, masks, allowed);
            std::vector<Answer> answers =
                search_all_segments(segments, job, queries, threads, batch_size, known);
            return top_k_to_python(answers, k, entries_of(segments));
        },
        "indexes"_a, "masks"_a, "allowed"_a, "queries"_a, "k"_a, "beta"_a, "threads"_a,
        "batch_size"_a, "known_ids"_a.noconvert().none(), "known_scores"_a.noconvert().none());
    m.def(
        "range_segments",
        [](const std::vector<const SegmentIndex*>& indexes,
           const std::vector<std::optional<Bytes>>& masks, const std::vector<std::size_t>& allowed,
           const Matrix<float>& queries, double threshold, std::size_t threads) {
            Job job;
            job.range = true;
            job.threshold = threshold;
            const std::vector<Segment> segments = with_masks(indexes, masks, allowed);
            std::vector<Answer> answers =
                search_all_segments(segments, job, queries, threads, 0, {});
            return range_to_python(answers, entries_of(segments));
        },
        "indexes"_a, "masks"_a, "allowed"_a, "queries"_a, "threshold"_a, "threads"_a);
}

}  // namespace hiernorm
