// Opens segments, and carries the hits of a query from one to the next.
#include "search/segments.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace hiernorm {

std::unique_ptr<Index> open_segment(const Settings& like, std::optional<Encoding> encoding,
                                    const NamedTensors& tensors, std::size_t entries,
                                    const NamedChecks& checks) {
    Settings settings = like;
    settings.engine = encoding ? EngineKind::kCascade : EngineKind::kExhaustive;
    auto index = std::make_unique<Index>(settings);
    if (encoding) {
        if (encoding->metric != settings.metric) {
            throw std::invalid_argument("a segment has codes for metric " +
                                        std::string(name_of(encoding->metric)));
        }
        encoding->check(settings.dim);
        encoding->lay_out_stages();
    }
    const SegmentArrays arrays =
        arrays_of(tensors, settings.dim, entries, encoding ? &*encoding : nullptr, checks);
    if (encoding) index->set_encoding(std::move(*encoding));
    index->attach(arrays);
    return index;
}

void search_segments(const std::vector<Segment>& segments, const SearchRequest& request,
                     const float* queries, std::size_t count, std::size_t threads,
                     std::size_t batch_size, Answers& answers) {
    std::vector<SearchStats> totals(count);
    for (const Segment& segment : segments) {
        SearchRequest here = request;
        here.mask = segment.mask;
        for (Answer& answer : answers) answer.stats = {};
        segment.index->search_further(here, queries, count, threads, batch_size, answers);
        for (std::size_t i = 0; i < count; ++i) totals[i].add(answers[i].stats);
    }
    for (std::size_t i = 0; i < count; ++i) answers[i].stats = totals[i];
}

}  // namespace hiernorm
