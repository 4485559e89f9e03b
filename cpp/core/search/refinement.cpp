// Reads more of fewer entries, step by step.
#include "search/refinement.hpp"

#include <algorithm>
#include <cmath>

namespace hiernorm {
namespace {

constexpr std::size_t kRowsAhead = 3;

// The minor's codes take away the tail's share, the row's major the errors of the codes. A tail
// that is smaller than those (alpha = 0, say) is not worth reading.
bool reads_minor(const PreparedQuery& query, const TileNorms& norms) {
    return query.encoding().entry_tails || query.encoding().rotated() ||
           query.codes().tail_slack(norms) >= query.codes().coded_slack(norms);
}

// Checks the rows of a stage that are about to be read, those of `entries` in ascending order.
template <class Entries>
void require_stage(const Store& store, const StageArguments& stage, std::size_t number,
                   const Entries& entries) {
    const std::vector<const BlockChecks*>& all = store.checks().stage_codes;
    if (number >= all.size() || all[number] == nullptr) return;
    const BlockChecks& checks = *all[number];
    const auto row_of = [&](const auto& entry) {
        return stage.rows + (entry.position - stage.first_position) * stage.row_bytes;
    };
    const std::size_t spanned = entries.back().position - entries.front().position + 1;
    if (checks.knows(row_of(entries.front()), spanned * stage.row_bytes)) return;
    for (const auto& entry : entries) checks.require(row_of(entry), stage.row_bytes);
}

}  // namespace

void Refinement::begin() {
    finalists_.clear();
    found_again_ = 0;
    weighed_in_ = 0;
}

std::span<Candidate> Refinement::sift(PreparedQuery& query, const Chunk& chunk,
                                      const TileNorms& norms, std::span<Candidate> candidates) {
    const Encoding& encoding = query.encoding();
    const std::int32_t cut = query.cut(norms);
    std::size_t left = 0;
    std::int32_t skipped = kNoScore;
    for (const Candidate candidate : candidates) {
        candidates[left] = candidate;
        left += candidate.score > cut ? 1 : 0;
        skipped = std::max(skipped, candidate.score > cut ? kNoScore : candidate.score);
    }
    query.skip_scores(skipped, norms);
    query.stats().sifted += left;
    candidates = candidates.first(left);
    if (!encoding.entry_tails) return candidates;
    const std::uint8_t* codes = chunk.major_codes.data();
    for (Candidate& candidate : candidates) {
        const std::size_t entry = candidate.position % kChunkEntries;
        candidate.score -=
            query.codes().tail_score(encoding, codes + entry_offset(entry, encoding.slots()));
    }
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
    const Kernels& kernels = query.kernels();
    const std::vector<Stage>& stages = query.encoding().stages;
    double* const skipped = &query.stats().skipped_bound;
    const auto first =
        static_cast<std::uint32_t>(candidates[0].position / kChunkEntries * kChunkEntries);
    for (std::size_t s = 0; s < stages.size() && left_ != 0; ++s) {
        StageArguments stage = query.codes().stage_arguments(s, norms);
        stage.rows = chunk.stage_codes[s].data();
        stage.row_bytes = stages[s].bytes;
        stage.first_position = first;
        if (s != 0) {
            require_stage(query.store(), stage, s, std::span(contenders, left_));
            left_ = kernels.tighten_next_u8i8(stage, query.threshold(), contenders, left_,
                                              skipped);
            continue;
        }
        require_stage(query.store(), stage, s, candidates);
        left_ = kernels.tighten_first_u8i8(stage, query.threshold(), candidates.data(), left_,
                                           contenders, skipped);
        for (std::size_t i = 0; i < left_; ++i) {
            prefetch(query.store().row(contenders[i].position));
        }
    }
}

// What is left of the error bounds the score from below as well: bound - width.
void Refinement::weigh(PreparedQuery& query, const Seeding& seeding, const TileNorms& norms) {
    const Encoding& encoding = query.encoding();
    const CodedQuery& codes = query.codes();
    const bool prefix = !encoding.rotated() && encoding.lift_dims() == 0;
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
            query.store().require_row(contender.position);
            const double coded_part = coded + codes.coded_slack(norms);
            const double exact =
                query.exact().major_product(query.store().row(contender.position), encoding.major);
            const double margin = codes.margin(norms);
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
