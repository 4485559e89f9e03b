// Reads the codes of minors, stage by stage: the work of the step tighten, and of seeding.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include "search/prepared_query.hpp"

namespace hiernorm {

// Whether the minor's codes are worth reading: they take away the tail's share, the row's major the
// errors of the codes. A tail that is smaller than those (alpha = 0, say) is not.
bool reads_minor(const PreparedQuery& query, const TileNorms& norms);

// Takes back what the tails of the candidates, entries of one chunk, added to their scores.
void take_back_tails(const PreparedQuery& query, const Chunk& chunk,
                     std::span<Candidate> candidates);

struct MinorsRead {
    std::size_t stages = std::numeric_limits<std::size_t>::max();  // the first ones; all of them
    bool fetch_rows = true;  // asks for the rows of those that the first stage leaves
};

// Candidates of one chunk whose bound after every stage reaches `threshold` become contenders, in
// order (room for all); returns their number, and raises *skipped to the largest bound among the
// others.
std::size_t read_minors(const PreparedQuery& query, const Chunk& chunk, const TileNorms& norms,
                        double threshold, std::span<const Candidate> candidates,
                        Contender* contenders, double* skipped, const MinorsRead& what = {});

}  // namespace hiernorm
