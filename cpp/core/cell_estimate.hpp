// What cells would bring: the share of the entries that a search would still read.
#pragma once

#include <cstddef>

#include "grouping.hpp"

namespace hiernorm {

struct GroupingData {
    const float* rows;
    std::size_t dim;
    const float* majors;  // of the views, `stride` apart, before any division by a norm
    std::size_t stride;
    std::size_t major;
    std::size_t count;
    bool cosine;
};

// Takes a few entries as queries for their nearest neighbours. An estimate: no bound rests on it.
double estimate_read_share(const Grouping& grouping, const GroupingData& data);

}  // namespace hiernorm
