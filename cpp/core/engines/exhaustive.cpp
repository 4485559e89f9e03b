// Exhaustive search: the canonical score of every entry.
#include "engines/engine.hpp"
#include "query.hpp"

namespace hiernorm {

void search_exhaustive(const Store& store, const Kernels& kernels, Metric metric,
                       const float* queries, std::span<Answer> answers) {
    ExactQuery query;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        Answer& answer = answers[i];
        query.prepare(kernels, metric, queries + i * store.dim(), store.dim());
        for (std::size_t c = 0; c < store.chunks(); ++c) {
            const Chunk& chunk = store.chunk(c);
            const std::size_t entries = store.chunk_entries(c);
            for (std::size_t entry = 0; entry < entries; ++entry) {
                const double score = query.score(chunk.rows.data() + entry * store.dim());
                if (score >= answer.results.threshold()) {
                    answer.results.offer({score, chunk.ids[entry]});
                }
            }
        }
        const std::uint64_t all = store.size();
        answer.report = {.scanned = all, .sifted = all, .tightened = all, .settled = all};
    }
}

}  // namespace hiernorm
