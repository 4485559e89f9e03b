// The squared distance as an inner product with one more dimension.
//
//     -|q - x|^2 = 2 q.x + (centre - |x|^2) - (|q|^2 + centre)
//
// The entry's view gets the dimension (centre - |x|^2) / weight, the last of its major, and the
// query's view, which is doubled, gets `weight` there. All bounds on inner products then hold as
// they are; with the norms of the minors they are
//     -(|q_M - x_M|^2 + (|q_m| - |x_m|)^2):
// the distance of the majors plus the squared difference of the minor norms. What is left, the
// query's own |q|^2 + centre, is an offset between bounds and scores.
#pragma once

#include <cstdint>
#include <vector>

#include "encode/encoding.hpp"
#include "encode/query_view.hpp"

namespace hiernorm {

// The lift of an entry with the (canonical) squared norm `squares`.
double lift_of(const Encoding& encoding, double squares);

// What the lift's code of an entry adds to bounds, `entry_major` its slot 0; the lift itself is off
// by at most the residual of its major.
inline double coded_lift(const Encoding& encoding, const std::uint8_t* entry_major) {
    const int code = entry_major[slot_offset(encoding.major - 1)] - kCodeOffset;
    return encoding.weight * (encoding.major_step * code);
}

// Inserts the lift of an entry with the canonical squared norm `squares`; nothing for other
// metrics.
void lift_entry(const Encoding& encoding, double squares, std::vector<double>& view);

// Doubles the query's view and inserts the weight; sets offset and margin. `depth` is that of
// QueryView::prepare.
void lift_query(const Encoding& encoding, const ExactQuery& exact, double depth, QueryView& view);

}  // namespace hiernorm
