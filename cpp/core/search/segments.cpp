// Carries the hits of a query from segment to segment.
#include "search/segments.hpp"

#include <algorithm>

namespace hiernorm {
namespace {

void add_to(Report& total, const Report& report) {
    total.cells += report.cells;
    total.scanned += report.scanned;
    total.sifted += report.sifted;
    total.tightened += report.tightened;
    total.settled += report.settled;
    total.skipped_bound = std::max(total.skipped_bound, report.skipped_bound);
}

}  // namespace

void search_segments(const std::vector<Segment>& segments, const Job& job, const float* queries,
                     std::size_t count, std::size_t threads, std::size_t batch_size,
                     std::vector<Answer>& answers) {
    std::vector<Report> totals(count);
    for (const Segment& segment : segments) {
        Job here = job;
        here.mask = segment.mask;
        for (Answer& answer : answers) answer.report = {};
        segment.index->search_further(here, queries, count, threads, batch_size, answers);
        for (std::size_t i = 0; i < count; ++i) add_to(totals[i], answers[i].report);
    }
    for (std::size_t i = 0; i < count; ++i) answers[i].report = totals[i];
}

}  // namespace hiernorm
