// How vectors are turned into codes: the parameters that entries and queries share.
//
// The view of a vector x is y = x (HN: the major is the prefix), or y = R x (plain vectors: R is
// the fitted rotation), divided by |x| for the cosine metric. The first `major` dimensions of y
// are the major, the rest the minor. Codes are integers c with y_j ~ step * c_j. For the metric L2
// the last dimension of the major is the level of level.hpp: `dim` and `major` count it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernels.hpp"

namespace hiernorm {

enum class Metric { kInnerProduct, kCosine, kL2 };

struct Fit {
    std::size_t dim = 0;
    std::size_t major = 0;
    Metric metric = Metric::kInnerProduct;
    bool entry_tails = false;  // a slot of the major codes holds each entry's own tail norm
    double major_step = 1.0;
    double minor_step = 1.0;
    double tail_step = 1.0;       // of the tail norms, rounded up to multiples of it
    std::vector<float> rotation;  // dim x dim, row r makes dimension r of the view; empty: none
    double rotation_error = 0.0;  // |q.x - (Rq).(Rx)| and the rounding of R x, over |q| |x|
    double centre = 0.0;          // L2: of the squared norms
    double weight = 1.0;          // L2: of the level in the query
    double base_norm = 0.0;       // L2: about the largest norm of an entry; above 0

    bool rotated() const { return !rotation.empty(); }
    std::size_t minor() const { return dim - major; }
    std::size_t levels() const { return metric == Metric::kL2 ? 1 : 0; }
    std::size_t row_dim() const { return dim - levels(); }
    std::size_t slots() const {
        return (major + (entry_tails ? 1 : 0) + kGroupSlots - 1) / kGroupSlots * kGroupSlots;
    }
    std::size_t groups() const { return slots() / kGroupSlots; }

    // Minor codes are read in stages. Each stage but the last ends with a byte for the norm of
    // what follows it, so that an entry can be ruled out after 64 bytes.
    struct Stage {
        std::size_t first;  // dimension of the view
        std::size_t dims;
        std::size_t bytes;  // of an entry; dims, and one more unless it is the last stage
    };
    std::vector<Stage> stages;  // filled in by lay_out_stages()
    void lay_out_stages();

    static constexpr std::size_t kStageDims = kStageBytes - 1;
};

inline constexpr int kCodeLimit = 127;  // codes lie in [-127, 127] and are stored plus kCodeOffset
inline constexpr int kCodeOffset = 128;
inline constexpr int kTailLimit = 255;

// Makes up for the rounding of a norm or a bound computed in float64: n additions err by less than
// n 2^-52 of the sum of absolute values, and n stays far below 2^22.
inline constexpr double kRoundUp = 1.0 + 1e-9;

// Chooses steps (and whether tails differ enough to be kept per entry) from a sample of views.
// Entries beyond `headroom` times the sample's largest values stay exact; they cost speed.
void choose_steps(Fit& fit, const double* views, std::size_t count, double headroom);

// Largest values over a tile of entries: all that the bounds need to know about its entries.
struct TileNorms {
    double norm = 0.0;            // |x| (1 for cosine)
    double major_residual = 0.0;  // |y - step c| over the major
    double minor_residual = 0.0;  // the same over the minor
    double major_coded = 0.0;     // |step c| over the major
    double minor_coded = 0.0;
    double tail = 0.0;          // norm of the minor
    double uncoded_tail = 0.0;  // the part of it that no slot of the major codes covers
    double stage_tail = 0.0;    // what stage tail codes could not express

    void include(const TileNorms& other);
};

// Where the codes of one entry go: slot 0 of the entry within its block, and its row in each stage.
struct EntryCodes {
    std::uint8_t* major;
    std::uint8_t* const* stages;
    std::size_t row;
};

// Writes the codes of one view; returns the entry's norms. `view_error` bounds the distance of the
// view from its true value beyond Fit::rotation_error; the norms include it.
TileNorms encode_entry(const Fit& fit, const double* view, double view_error,
                       const EntryCodes& codes);

// The norms alone, for engines without codes.
TileNorms measure_entry(const Fit& fit, const double* view, double view_error);

// Offset of a slot from slot 0 of the same entry.
inline std::size_t slot_offset(std::size_t slot) {
    return slot / kGroupSlots * kGroupSlots * kBlockEntries + slot % kGroupSlots;
}

}  // namespace hiernorm
