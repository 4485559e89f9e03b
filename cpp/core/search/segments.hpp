// Search over several indexes as if they were one.
#pragma once

#include <cstddef>
#include <vector>

#include "index.hpp"

namespace hiernorm {

struct Segment {
    const Index* index;
    Mask mask;
};

// Answers `count` queries over all segments. What one segment finds is the threshold in the next,
// and (score, id) order does not know segments: the answer is that of one index with all entries.
// `answers` were asked already, and may hold hits of entries that are elsewhere: the best of all
// are left. Work of the reports is summed, the skipped bound is the largest.
void search_segments(const std::vector<Segment>& segments, const Job& job, const float* queries,
                     std::size_t count, std::size_t threads, std::size_t batch_size,
                     std::vector<Answer>& answers);

}  // namespace hiernorm
