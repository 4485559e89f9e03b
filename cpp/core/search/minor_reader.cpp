// Checks the rows of a stage, then calls its kernel.
#include "search/minor_reader.hpp"

#include <algorithm>

namespace hiernorm {
namespace {

// Checks the rows of a stage that are about to be read, those of `entries` in ascending order.
template <class Entry>
void require_stage(const Store& store, const StageArguments& stage, std::size_t number,
                   std::span<const Entry> entries) {
    const std::vector<const BlockChecks*>& all = store.checks().stage_codes;
    if (number >= all.size() || all[number] == nullptr) return;
    const BlockChecks& checks = *all[number];
    const auto row_of = [&](const Entry& entry) {
        return stage.rows + (entry.position - stage.first_position) * stage.row_bytes;
    };
    const std::size_t spanned = entries.back().position - entries.front().position + 1;
    if (checks.knows(row_of(entries.front()), spanned * stage.row_bytes)) return;
    for (const Entry& entry : entries) checks.require(row_of(entry), stage.row_bytes);
}

}  // namespace

bool reads_minor(const PreparedQuery& query, const TileNorms& norms) {
    return query.encoding().entry_tails || query.encoding().rotated() ||
           query.codes().tail_slack(norms) >= query.codes().coded_slack(norms);
}

void take_back_tails(const PreparedQuery& query, const Chunk& chunk,
                     std::span<Candidate> candidates) {
    const Encoding& encoding = query.encoding();
    if (!encoding.entry_tails) return;
    const std::uint8_t* codes = chunk.major_codes.data();
    for (Candidate& candidate : candidates) {
        const std::size_t entry = candidate.position % kChunkEntries;
        candidate.score -=
            query.codes().tail_score(encoding, codes + entry_offset(entry, encoding.slots()));
    }
}

std::size_t read_minors(const PreparedQuery& query, const Chunk& chunk, const TileNorms& norms,
                        double threshold, std::span<const Candidate> candidates,
                        Contender* contenders, double* skipped, const MinorsRead& what) {
    const Kernels& kernels = query.kernels();
    const std::vector<Stage>& stages = query.encoding().stages;
    const auto first =
        static_cast<std::uint32_t>(candidates[0].position / kChunkEntries * kChunkEntries);
    std::size_t left = candidates.size();
    for (std::size_t s = 0; s < std::min(stages.size(), what.stages) && left != 0; ++s) {
        StageArguments stage = query.codes().stage_arguments(s, norms);
        stage.rows = chunk.stage_codes[s].data();
        stage.row_bytes = stages[s].bytes;
        stage.first_position = first;
        if (s != 0) {
            require_stage<Contender>(query.store(), stage, s, {contenders, left});
            left = kernels.tighten_next_u8i8(stage, threshold, contenders, left, skipped);
            continue;
        }
        require_stage<Candidate>(query.store(), stage, s, candidates);
        left = kernels.tighten_first_u8i8(stage, threshold, candidates.data(), left, contenders,
                                          skipped);
        for (std::size_t i = 0; i < left && what.fetch_rows; ++i) {
            prefetch(query.store().row(contenders[i].position));
            const double* const norm = query.store().known_norm(contenders[i].position);
            if (norm != nullptr) prefetch(norm);
        }
    }
    return left;
}

}  // namespace hiernorm
