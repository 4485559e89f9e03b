// Exhaustive search: the canonical score of every entry that may be returned.
#include "encode/exact_query.hpp"
#include "interrupt.hpp"
#include "search/engines.hpp"

namespace hiernorm {

void search_exhaustive(const Store& store, const Kernels& kernels, Metric metric,
                       const SearchRequest& request, const float* queries,
                       std::span<Answer> answers) {
    ExactQuery query;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        Answer& answer = answers[i];
        query.prepare(kernels, metric, queries + i * store.dim(), store.dim());
        std::uint64_t scored = 0;
        for (std::size_t c = 0; c < store.chunks(); ++c) {
            poll_interrupt();
            const Chunk& chunk = store.chunk(c);
            const std::size_t entries = store.chunk_entries(c);
            request.mask.for_each(c * kChunkEntries, entries, [&](std::size_t entry) {
                store.require_row(c * kChunkEntries + entry);
                const double score = query.score(chunk.rows.data() + entry * store.dim());
                if (score >= answer.results.threshold()) {
                    store.require_id(c * kChunkEntries + entry);
                    answer.results.offer({score, chunk.ids[entry]});
                }
                ++scored;
            });
        }
        answer.stats = {
            .scanned = scored, .sifted = scored, .tightened = scored, .settled = scored};
    }
}

}  // namespace hiernorm
