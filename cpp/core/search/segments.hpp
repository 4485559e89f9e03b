// Search over several indexes as if they were one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "index.hpp"

namespace hiernorm {

// An index over the tensors of a segment file, which the caller keeps alive. Without an encoding it
// has no codes and is searched exhaustively. What a search reads passes `checks`, which the caller
// keeps alive too. Throws std::invalid_argument that says what is wrong with the tensors.
std::unique_ptr<Index> open_segment(const Settings& like, std::optional<Encoding> encoding,
                                    const NamedTensors& tensors, std::size_t entries,
                                    const NamedChecks& checks = {});

struct Segment {
    const Index* index;
    Mask mask;
};

// Answers `count` queries over all segments. What one segment finds is the threshold in the next,
// and (score, id) order does not know segments: the answer is that of one index with all entries.
// `answers` are of this request, and may hold hits of entries that are elsewhere: the best of
// all are left. Work is summed, the skipped bound is the largest.
void search_segments(const std::vector<Segment>& segments, const SearchRequest& request,
                     const float* queries, std::size_t count, std::size_t threads,
                     std::size_t batch_size, Answers& answers);

}  // namespace hiernorm
