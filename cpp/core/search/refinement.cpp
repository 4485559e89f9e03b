// Reads more of fewer entries, step by step.
#include "search/refinement.hpp"

#include <algorithm>
#include <cmath>

#include "encode/lift.hpp"
#include "search/minor_reader.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kRowsAhead = 3;

}  // namespace

void Refinement::begin() {
    finalists_.clear();
    found_again_ = 0;
    weighed_in_ = 0;
}

std::span<Candidate> Refinement::sift(PreparedQuery& query, const Chunk& chunk,
                                      const TileNorms& norms, double scanned_at,
                                      std::span<Candidate> candidates) {
    if (query.threshold() != scanned_at) {
        const std::int32_t cut = query.cut(norms);
        std::size_t left = 0;
        std::int32_t skipped = kNoScore;
        for (const Candidate candidate : candidates) {
            candidates[left] = candidate;
            left += candidate.score > cut ? 1 : 0;
            skipped = std::max(skipped, candidate.score > cut ? kNoScore : candidate.score);
        }
        query.skip_scores(skipped, norms);
        candidates = candidates.first(left);
    }
    query.stats().sifted += candidates.size();
    take_back_tails(query, chunk, candidates);
    return candidates;
}

void Refinement::tighten(PreparedQuery& query, const Chunk& chunk, const TileNorms& norms,
                         std::span<const Candidate> candidates) {
    left_ = candidates.size();
    query.workspace().contenders.grow_geometrically(left_);
    Contender* const contenders = query.workspace().contenders.data();
    minor_read_ = reads_minor(query, norms);
    if (!minor_read_) {
        for (std::size_t i = 0; i < left_; ++i) {
            contenders[i] = {candidates[i].position, candidates[i].score, 0, 0.0};
        }
        return;
    }
    left_ = read_minors(query, chunk, norms, query.threshold(), candidates, contenders,
                        &query.stats().skipped_bound);
}

// What is left of the error bounds the score from below as well: bound - width.
void Refinement::weigh(PreparedQuery& query, const Seeding& seeding, const Chunk& chunk,
                       const TileNorms& norms) {
    const Encoding& encoding = query.encoding();
    const CodedQuery& codes = query.codes();
    const bool prefix = !encoding.rotated(), lifted = encoding.lift_dims() != 0;
    const double margin =
        codes.margin(norms) + (lifted ? encoding.weight * norms.major_residual : 0.0);
    const double slack = minor_read_ ? codes.minor_slack(norms) : codes.tail_slack(norms);
    const Contender* const contenders = query.workspace().contenders.data();
    for (std::size_t i = 0; i < left_; ++i) {
        const Contender& contender = contenders[i];
        if (seeding.is_seed(contender.position)) {
            ++found_again_;
            continue;
        }
        const double coded = codes.major_bound(contender.major);
        double bound = minor_read_ ? contender.bound : coded + query.proved_slack(norms);
        double width = 2.0 * (slack + codes.coded_slack(norms));
        if (prefix) {
            const double coded_part = coded + codes.coded_slack(norms);
            double exact =
                query.major_product(contender.position, encoding.major - encoding.lift_dims());
            if (lifted) {
                exact = 2.0 * exact +
                        coded_lift(encoding, chunk.major_codes.data() +
                                                 entry_offset(contender.position % kChunkEntries,
                                                              encoding.slots()));
            }
            bound = bound - coded_part + exact + margin;
            width = 2.0 * (slack + margin);
        }
        if (bound < query.threshold()) {
            query.skip(bound);
        } else if (bound - width > query.threshold()) {
            query.settle(contender.position);
            ++weighed_in_;
        } else {
            finalists_.push_back({contender.position, bound});
        }
    }
}

void Refinement::settle(PreparedQuery& query, const Seeding& seeding) {
    SearchStats& stats = query.stats();
    stats.sifted = std::min<std::uint64_t>(stats.sifted + seeding.seeded() - found_again_,
                                           query.store().size());
    stats.tightened = finalists_.size() + weighed_in_ + seeding.seeded();
    std::sort(finalists_.begin(), finalists_.end(), [](const Finalist& a, const Finalist& b) {
        return a.bound > b.bound || (a.bound == b.bound && a.position < b.position);
    });
    for (std::size_t i = 0; i < std::min(kRowsAhead, finalists_.size()); ++i) {
        query.prefetch_row(finalists_[i].position);
    }
    for (std::size_t i = 0; i < finalists_.size(); ++i) {
        if (finalists_[i].bound < query.threshold()) {
            query.skip(finalists_[i].bound);
            break;
        }
        if (i + kRowsAhead < finalists_.size()) {
            query.prefetch_row(finalists_[i + kRowsAhead].position);
        }
        query.settle(finalists_[i].position);
    }
    stats.skipped_bound -= query.view().offset;
    // What exact search skips was proved to score below the threshold, however the difference is
    // rounded.
    if (!query.soft()) {
        stats.skipped_bound =
            std::min(stats.skipped_bound, std::nextafter(query.results().threshold(), -kInfinity));
    }
}

}  // namespace hiernorm
