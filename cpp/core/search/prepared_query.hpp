// One query of the cascade, made ready, and where it stands: its answer so far, and the threshold
// that an entry has to reach.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "encode/coded_query.hpp"
#include "encode/exact_query.hpp"
#include "encode/query_view.hpp"
#include "kernels/prefetch.hpp"
#include "search/request.hpp"
#include "search/workspace.hpp"
#include "store/store.hpp"

namespace hiernorm {

// No score of a scan is as low: stands for an entry that is settled, or that may not be returned.
inline constexpr std::int32_t kNoScore = std::numeric_limits<std::int32_t>::min();

// The entries of a chunk that share one set of norms.
struct Tile {
    const Chunk& chunk;
    const TileNorms& norms;
    std::size_t first;  // entry within the chunk
    std::size_t entries;
    std::uint32_t position;  // of `first`, within the store
};

class PreparedQuery {
   public:
    // Begin each of several queries, prepare their views together, finish each.
    void begin(const Store& store, const Kernels& kernels, const SearchRequest& request,
               const float* row, Answer& answer, Workspace& workspace) {
        store_ = &store;
        kernels_ = &kernels;
        soft_ = request.soft;
        beta_ = request.beta;
        mask_ = request.mask;
        answer_ = &answer;
        workspace_ = &workspace;
        exact_.prepare(kernels, encoding().metric, row, store.dim());
    }
    static void prepare_views(std::span<PreparedQuery* const> queries) {
        const ExactQuery* exact[kSharedQueries];
        QueryView* views[kSharedQueries];
        for (std::size_t i = 0; i < queries.size(); ++i) {
            exact[i] = &queries[i]->exact_;
            views[i] = &queries[i]->view_;
        }
        QueryView::prepare_together(*queries[0]->kernels_, queries[0]->encoding(), exact, views,
                                    queries.size());
    }
    void finish() {
        codes_.prepare(*kernels_, encoding(), view_, store_->largest(), soft_);
        threshold_ = results().threshold() + view_.offset;
    }

    const Store& store() const { return *store_; }
    const Encoding& encoding() const { return store_->encoding(); }
    const Kernels& kernels() const { return *kernels_; }
    const Mask& mask() const { return mask_; }
    bool soft() const { return soft_; }
    Workspace& workspace() const { return *workspace_; }
    const ExactQuery& exact() const { return exact_; }
    const QueryView& view() const { return view_; }
    const CodedQuery& codes() const { return codes_; }
    SearchStats& stats() { return answer_->stats; }
    const Results& results() const { return answer_->results; }

    // In the units of bounds: that of the results, plus the view's offset.
    double threshold() const { return threshold_; }

    // Entries to settle before there is a threshold.
    std::size_t missing() const { return results().missing(); }

    // The slack that proves, and the one that skips: smaller in soft mode.
    double proved_slack(const TileNorms& norms) const {
        return codes_.coded_slack(norms) + codes_.tail_slack(norms);
    }
    double scan_slack(const TileNorms& norms) const {
        const double tail = codes_.tail_slack(norms);
        return codes_.coded_slack(norms) + (soft_ ? std::min(tail, beta_) : tail);
    }

    // An entry of the tile whose score is not above this does not reach the threshold.
    std::int32_t cut(const TileNorms& norms) const {
        return codes_.cut(threshold_, scan_slack(norms));
    }

    // An entry is ruled out; its bound, or that of the largest score in a tile of such entries.
    void skip(double bound) { stats().skipped_bound = std::max(stats().skipped_bound, bound); }
    void skip_scores(std::int32_t largest, const TileNorms& norms) {
        if (largest != kNoScore) skip(codes_.major_bound(largest) + proved_slack(norms));
    }

    // The canonical score of an entry; it may raise the threshold.
    void settle(std::uint32_t position) {
        store_->require_row(position);
        store_->require_id(position);
        const double norm = row_norm(position);
        answer_->results.offer({exact_.score(store_->row(position), norm), store_->id(position)});
        ++stats().settled;
        threshold_ = results().threshold() + view_.offset;
    }
    // Exactly the part of the score that the first `major` dimensions of an entry make up.
    double major_product(std::uint32_t position, std::size_t major) const {
        store_->require_row(position);
        return exact_.major_product(store_->row(position), major, row_norm(position));
    }
    void prefetch_row(std::uint32_t position) const {
        const float* row = store_->row(position);
        for (std::size_t j = 0; j < store_->dim(); j += kLanes) prefetch(row + j);
    }

   private:
    double row_norm(std::uint32_t position) const {
        if (encoding().metric != Metric::kCosine) return 1.0;
        const double* const known = store_->known_norm(position);
        return known != nullptr ? *known
                                : canonical_norm(*kernels_, store_->row(position), store_->dim());
    }

    // First what every scan reads.
    const Store* store_ = nullptr;
    const Kernels* kernels_ = nullptr;
    double threshold_ = 0.0;
    bool soft_ = false;
    double beta_ = 0.0;
    Mask mask_;
    Answer* answer_ = nullptr;
    Workspace* workspace_ = nullptr;
    CodedQuery codes_;
    QueryView view_;
    ExactQuery exact_;
};

}  // namespace hiernorm
