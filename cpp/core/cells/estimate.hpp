// What cells would bring: the share of the entries that a search would still read.
#pragma once

#include "cells/grouping.hpp"

namespace hiernorm {

// Takes a few entries as queries for their nearest neighbours. An estimate: no bound rests on it.
double estimate_read_share(const Grouping& grouping, const ConeVectors& vectors,
                           const GroupingData& data);

}  // namespace hiernorm
