// The encoding: what turns a vector into codes, shared by entries and queries.
//
// The view of a vector x is y = x (HN: the major is the prefix), or y = R x (plain vectors: R is
// the fitted rotation), divided by |x| for the cosine metric. The first `major` dimensions of y
// are the major, the rest the minor. Codes are integers c with y_j ~ step * c_j. For the metric L2
// the last dimension of the major is the lift of lift.hpp: `dim` and `major` count it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "layout.hpp"

namespace hiernorm {

enum class Metric { kInnerProduct, kCosine, kL2 };

// "ip", "cosine" or "l2"; throws std::invalid_argument for any other name.
Metric metric_named(std::string_view name);
std::string_view name_of(Metric metric);

// A stage of the minor codes. Each but the last ends with a byte for the norm of what follows it,
// so that an entry can be ruled out after 64 bytes.
struct Stage {
    std::size_t first;  // dimension of the view
    std::size_t dims;
    std::size_t bytes;  // of an entry; dims, and one more unless it is the last stage
};

struct Encoding {
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
    double weight = 1.0;          // L2: of the lift in the query
    double base_norm = 0.0;       // L2: about the largest norm of an entry; above 0
    std::vector<Stage> stages;    // filled in by lay_out_stages()

    bool rotated() const { return !rotation.empty(); }
    std::size_t minor() const { return dim - major; }
    std::size_t lift_dims() const { return metric == Metric::kL2 ? 1 : 0; }
    std::size_t row_dim() const { return dim - lift_dims(); }
    std::size_t slots() const { return round_up(major + (entry_tails ? 1 : 0), kGroupSlots); }
    std::size_t groups() const { return slots() / kGroupSlots; }

    // Throws std::invalid_argument where a value is none that an encoding of rows of so many
    // dimensions can have.
    void check(std::size_t row_dimensions) const;

    void lay_out_stages();

    // Chooses steps (and whether tails differ enough to be kept per entry) from a sample of views.
    // Entries beyond `headroom` times the sample's largest values stay exact; they cost speed.
    void choose_steps(const double* views, std::size_t count, double headroom);
};

}  // namespace hiernorm
