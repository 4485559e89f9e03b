// A search: what is asked, what is answered, and the work that it took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/mask.hpp"
#include "search/results.hpp"

namespace hiernorm {

// What is asked of every query of a call: the k best, or (range) all from `threshold` up.
struct SearchRequest {
    std::size_t k = 1;
    bool range = false;
    double threshold = 0.0;
    bool soft = false;  // `beta` stands in for the minor's share in the first bound
    double beta = 0.0;
    bool use_cells = true;  // where there are any
    Mask mask;              // of the entries that may be returned
};

// What one query's search did and proved: the counts of its certificate, named after the steps.
struct SearchStats {
    std::uint64_t cells = 0;            // that were not skipped; 0 without cells
    std::uint64_t scanned = 0;          // entries whose major was read
    std::uint64_t sifted = 0;           // entries whose major could not rule them out (phase 2)
    std::uint64_t tightened = 0;        // of those, entries that the minor codes could not rule out
    std::uint64_t settled = 0;          // canonical scores computed: float32 rows read
    double skipped_bound = -kInfinity;  // no entry without a canonical score scores higher

    // Takes in the search of other entries for the same query.
    void add(const SearchStats& other) {
        cells += other.cells;
        scanned += other.scanned;
        sifted += other.sifted;
        tightened += other.tightened;
        settled += other.settled;
        skipped_bound = std::max(skipped_bound, other.skipped_bound);
    }
};

struct Answer {
    Results results;
    SearchStats stats;
};

// One empty answer per query, which knows what is wanted.
inline std::vector<Answer> empty_answers(const SearchRequest& request, std::size_t count) {
    std::vector<Answer> answers(count);
    for (Answer& answer : answers) {
        if (request.range) {
            answer.results.want_from(request.threshold);
        } else {
            answer.results.want_best(request.k);
        }
    }
    return answers;
}

}  // namespace hiernorm
