// The codes of a query, and the error norms that make bounds of their products.
//
// For an entry with view y, codes c (major) and query view z, codes e:
//     z.y = sum over the major + sum over the minor
//     major = scale * (c.e) + residual terms,   |residual terms| <= |z_M| |y - step c|_M
//                                                                 + |z - sq e|_M |step c|_M
//     minor <= |z_m| |y_m|                       (before it is read)
// The slacks below are those terms with the largest norms of a tile. docs/concepts/exactness.md
// proves them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "encode/encoding.hpp"
#include "encode/query_view.hpp"
#include "encode/tile_norms.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

// The query's side of a scan, and where it keeps its arrays.
struct QueryCodes {
    std::vector<std::int8_t> codes;
    std::vector<std::int16_t> half_corrections;
    ScanQuery query{};

    // Call once the codes are written: `offset_slots` of them meet codes stored plus kCodeOffset.
    void finish(std::size_t offset_slots);
};

class CodedQuery {
   public:
    // `largest` are the norms over all entries. With `soft` the coded tails are left out.
    void prepare(const Kernels& kernels, const Encoding& encoding, const QueryView& view,
                 const TileNorms& largest, bool soft);

    const ScanQuery& scan() const { return scan_.query; }
    double major_bound(std::int32_t score) const { return scale_ * score; }

    // Added to major_bound(score): nothing in the tile scores higher. Without the minor's share.
    double coded_slack(const TileNorms& tile) const {
        return view_->major_norm * tile.major_residual + major_error_ * tile.major_coded +
               view_->margin * tile.norm;
    }
    double margin(const TileNorms& tile) const { return view_->margin * tile.norm; }
    // The minor's share for entries whose minor has not been read.
    double tail_slack(const TileNorms& tile) const {
        return view_->minor_norm * (soft_ ? tile.tail : tile.uncoded_tail);
    }
    // The share of the minor's codes, for entries whose minor has been read.
    double minor_slack(const TileNorms& tile) const {
        return view_->minor_norm * tile.minor_residual + minor_error_ * tile.minor_coded +
               view_->minor_norm * tile.stage_tail;
    }

    // The largest cut such that score <= cut proves major_bound(score) + slack < threshold.
    std::int32_t cut(double threshold, double slack) const;

    // What the tail slot added to the score of an entry, to be taken back once its minor is read.
    std::int32_t tail_score(const Encoding& encoding, const std::uint8_t* entry_major) const {
        return tail_code_ == 0 ? 0 : tail_code_ * entry_major[slot_offset(encoding.major)];
    }

    // The arguments of a stage for entries of a tile; rows are the caller's.
    StageArguments stage_arguments(std::size_t stage, const TileNorms& tile) const {
        return {.query = minor_codes_.data() + stage * kStageBytes,
                .base = coded_slack(tile) + minor_slack(tile),
                .major_scale = scale_,
                .minor_scale = minor_scale_,
                .correction = stage_corrections_[stage],
                .tail_scale = stage_tails_[stage]};
    }

   private:
    void encode_major(const Kernels& kernels, const Encoding& encoding, const TileNorms& largest);
    void encode_minor(const Kernels& kernels, const Encoding& encoding);

    const QueryView* view_ = nullptr;
    bool soft_ = false;
    double scale_ = 1.0;
    double inverse_scale_ = 1.0;
    double major_error_ = 0.0;
    std::int32_t tail_code_ = 0;
    QueryCodes scan_;
    double minor_scale_ = 1.0;
    double minor_error_ = 0.0;
    std::vector<std::int8_t> minor_codes_;
    std::vector<std::int32_t> stage_corrections_;  // of all stages up to this one
    std::vector<double> stage_tails_;  // norm of the query behind a stage, times the tail step
};

}  // namespace hiernorm
