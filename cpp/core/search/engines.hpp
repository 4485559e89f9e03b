// What all engines share: the job, the report, and the search of a group of queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "search/mask.hpp"
#include "search/results.hpp"
#include "store/store.hpp"

namespace hiernorm {

// What is asked of every query of a call: the k best, or (range) all from `threshold` up.
struct Job {
    std::size_t k = 1;
    bool range = false;
    double threshold = 0.0;
    bool soft = false;  // `beta` stands in for the minor's share in the first bound
    double beta = 0.0;
    bool use_cells = true;  // where there are any
    Mask mask;              // of the entries that may be returned
};

// What one query's search did and proved.
struct Report {
    std::uint64_t cells = 0;    // whose entries were scanned; 0 without cells
    std::uint64_t scanned = 0;  // entries whose major was read
    std::uint64_t sifted = 0;   // entries whose major could not rule them out (phase 2)
    std::uint64_t tightened =
        0;                      // of those, entries that the minor codes could not rule out either
    std::uint64_t settled = 0;  // canonical scores computed: float32 rows read
    double skipped_bound = -kInfinity;  // no entry without a canonical score scores higher
};

struct Answer {
    Results results;
    Report report;
};

// One empty answer per query, which knows what is wanted.
inline void ask(const Job& job, std::size_t count, std::vector<Answer>& answers) {
    answers.assign(count, {});
    for (Answer& answer : answers) {
        if (job.range) {
            answer.results.want_from(job.threshold);
        } else {
            answer.results.want_best(job.k);
        }
    }
}

// Searches a group of queries (rows of `queries`, one after the other). Engines are pure functions
// of the store; `answers` has one element per query, its results already told what they want.
void search_cascade(const Store& store, const Kernels& kernels, const Job& job,
                    const float* queries, std::span<Answer> answers);
void search_paper(const Store& store, const Kernels& kernels, double alpha, const Job& job,
                  const float* queries, std::span<Answer> answers);
void search_exhaustive(const Store& store, const Kernels& kernels, Metric metric, const Job& job,
                       const float* queries, std::span<Answer> answers);

}  // namespace hiernorm
