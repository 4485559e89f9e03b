// Bounds of a flat scan by panels.
//
// Rows and queries are shifted by a centre c, which makes them small: y = x - c, and z = q (ip) or
// q - c (l2). For cosine c = 0 and y = x / |x|. Then
//
//   ip       q.x = z.y + q.c
//   cosine   q.x / |x| = z.y
//   l2       -|q - x|^2 / 2 = z.y - |y|^2 / 2 - |z|^2 / 2
//
// so that an entry can be a hit only if z.y + offset(x) >= wanted(q). Let u = 2^-24 and B bound
// |z.y + offset|. Sums start at offset - cut. If |cut| <= 2 B, no partial sum exceeds 3 B, and d + 1
// of them round by at most 3 (d + 1) u B; if not, the sign of the sum is certain. Offsets round by
// (d + 1) u |y|^2 / 2. The rounding of y and z (u of each value), of the cut and of canonical scores
// adds less than 15 u B. With B = |z| |y| + |y|^2 / 2 <= (|z| + |y|)^2 / 2 for l2, all of it is within
//
//   ip       3 (d + 16) u |q| (|y| + |c|)
//   cosine   (4 d + 48) u |q|                              the norm of x takes d / 2 + 4 more
//   l2       2 (d + 16) u (|z| + |y|)^2
//
// In bytes, z = s a + e and y = t b + r with codes a and b, steps s and t, and measured |e|, |r|:
//
//   z.y = s t a.b + e.(t b) + z.r,   |z.y - s t a.b| <= |e| (|y| + |r|) + |z| |r|
//
// Integer sums are exact. Offsets are rounded to whole s t, which adds half of one.
#include "search/flat_panels.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/pack_queries.hpp"

namespace hiernorm {
namespace {

using namespace flat;

constexpr std::size_t kMostDims = 1 << 16;       // d u stays below 0.004
constexpr std::size_t kMostByteDims = 1 << 12;   // a sum of products stays below 2^27
constexpr std::size_t kLeastByteDims = 16;       // floats are as fast below
constexpr std::size_t kCentreRows = 64;          // whose mean is the centre
constexpr double kLeastStep = 0x1p-50;           // squares of residuals do not underflow
constexpr double kMostOffset = 0x1p27;
constexpr double kAllCut = 0x1p29;               // below it: all rows; above it: none
constexpr std::int32_t kNoOffset = -(1 << 30);   // of padding: below every cut
constexpr float kAllFloatCut = 0x1p110f;         // the same in floats
constexpr float kNoFloatOffset = -0x1p120f;
constexpr double kMostCode = 127.0;
// Pairs of a query that bytes may leave and that are no hits of their time: so many, and for each
// hit wanted (the threshold is low at first), and one of so many that were read.
constexpr std::uint64_t kMostUnclear = 256;
constexpr std::uint64_t kUnclearPerHit = 16;
constexpr std::uint64_t kUnclearOf = 64;

}  // namespace

void FlatPanels::begin(const Store& store, const Kernels& kernels, Metric metric,
                       const float* rows, std::span<FlatQuery> queries) {
    kernels_ = &kernels;
    metric_ = metric;
    dim_ = store.dim();
    queries_ = queries;
    read_ = unclear_ = most_unclear_ = 0;
    for (const FlatQuery& query : queries) {
        most_unclear_ += kMostUnclear + kUnclearPerHit * query.hits_wanted();
    }
    bounded_ = dim_ <= kMostDims;
    choose_centre(store);
    prepare_queries(rows);
    pairs_.resize(round_up(queries.size(), kFewQueries) * kPanelRows);
}

// Any centre is right. The mean of some rows makes the others small.
void FlatPanels::choose_centre(const Store& store) {
    centre_.assign(dim_, 0.0f);
    centre_norm_ = 0.0;
    if (metric_ == Metric::kCosine) return;
    const std::size_t count = std::min(kCentreRows, divide_up(store.size(), kCentreRows));
    std::vector<double> sums(dim_);
    for (std::size_t i = 0; i < count; ++i) {
        const float* row = store.row(store.size() / count * i);
        for (std::size_t j = 0; j < dim_; ++j) sums[j] += static_cast<double>(row[j]);
    }
    double square = 0.0;
    for (std::size_t j = 0; j < dim_; ++j) {
        centre_[j] = static_cast<float>(sums[j] / static_cast<double>(count));
        square += static_cast<double>(centre_[j]) * static_cast<double>(centre_[j]);
    }
    centre_norm_ = std::sqrt(square);
    bounded_ = bounded_ && square < kMostSquare;
}

void FlatPanels::prepare_queries(const float* rows) {
    const std::size_t count = queries_.size();
    std::vector<float> shifted(rows, rows + count * dim_);
    sides_.assign(count, {});
    float largest = 0.0f;
    for (std::size_t i = 0; i < count; ++i) {
        float* values = shifted.data() + i * dim_;
        double square = 0.0, product = 0.0;
        for (std::size_t j = 0; j < dim_; ++j) {
            const auto centre = static_cast<double>(centre_[j]);
            product += static_cast<double>(values[j]) * centre;
            if (metric_ == Metric::kL2) {
                values[j] = static_cast<float>(static_cast<double>(values[j]) - centre);
            }
            square += static_cast<double>(values[j]) * static_cast<double>(values[j]);
            largest = std::max(largest, std::abs(values[j]));
        }
        sides_[i].norm = std::sqrt(square);
        sides_[i].start = metric_ == Metric::kL2 ? 0.0 - square / 2 : product;
        bounded_ = bounded_ && square < kMostSquare &&
                   (metric_ != Metric::kCosine || square >= kLeastSquare);
    }
    const std::size_t padded = round_up(count, kFewQueries);
    packed_.assign(padded * dim_, 0.0f);
    pack_panel_queries(shifted.data(), count, dim_, 1, packed_.data());
    float_cuts_.assign(padded, kAllFloatCut);
    bytes_ = bounded_ && kernels_->sift_panel_u8i8 != nullptr && dim_ >= kLeastByteDims &&
             dim_ <= kMostByteDims;
    if (bytes_) code_queries(shifted, largest);
}

void FlatPanels::code_queries(const std::vector<float>& shifted, float largest) {
    query_step_ = largest / static_cast<float>(kMostCode);
    bytes_ = static_cast<double>(query_step_) >= kLeastStep;
    if (!bytes_) return;
    const auto step = static_cast<double>(query_step_);
    const std::size_t count = queries_.size(), groups = divide_up(dim_, kGroupSlots);
    std::vector<std::int8_t> codes(count * groups * kGroupSlots);
    for (std::size_t i = 0; i < count; ++i) {
        std::int8_t* out = codes.data() + i * groups * kGroupSlots;
        double rest = 0.0;
        for (std::size_t j = 0; j < dim_; ++j) {
            const auto value = static_cast<double>(shifted[i * dim_ + j]);
            const double code = std::clamp(std::nearbyint(value / step), -kMostCode, kMostCode);
            out[j] = static_cast<std::int8_t>(code);
            sides_[i].code_sum += out[j];
            rest += (value - step * code) * (value - step * code);
        }
        sides_[i].residual = std::sqrt(rest) * kCare;
    }
    const std::size_t padded = round_up(count, kFewQueries);
    packed_codes_.assign(padded * groups * kGroupSlots, 0);
    pack_panel_queries(codes.data(), count, groups, kGroupSlots, packed_codes_.data());
    cuts_.assign(padded, static_cast<std::int32_t>(kAllCut));
}

bool FlatPanels::read(const Strip& strip) {
    if (!bounded_ || !pack(strip)) return false;
    for (FlatQuery& query : queries_) query.count(strip);
    read_ += strip.entries * queries_.size();
    if (bytes_ && fits_bytes()) {
        sift_bytes(strip);
        bytes_ = unclear_ <= most_unclear_ + read_ / kUnclearOf;
    } else {
        sift_floats(strip);
    }
    return true;
}

// Panels of the shifted rows, their offsets, and what bounds them; false if the bounds do not hold.
bool FlatPanels::pack(const Strip& strip) {
    const std::size_t panels = divide_up(strip.entries, kPanelRows);
    panels_.resize(panels * dim_ * kPanelRows);
    squares_.resize(panels * kPanelRows);
    float_offsets_.resize(panels * kPanelRows);
    extent_ = {};
    float smallest = static_cast<float>(kMostSquare), largest = 0.0f;
    for (std::size_t p = 0; p < panels; ++p) {
        const std::size_t first = p * kPanelRows;
        const std::size_t entries = std::min(kPanelRows, strip.entries - first);
        float* panel = panels_.data() + first * dim_;
        float* squares = squares_.data() + first;
        float scales[kPanelRows];
        std::fill_n(scales, kPanelRows, 1.0f);
        kernels_->pack_panel_f32(strip.rows + first * dim_, entries, dim_, panel, squares);
        if (metric_ == Metric::kCosine) {
            for (std::size_t i = 0; i < entries; ++i) {
                smallest = std::min(smallest, squares[i]);
                largest = std::max(largest, squares[i]);
                scales[i] = 1.0f / std::sqrt(squares[i]);
            }
        }
        extent_.largest = std::max(extent_.largest,
                                   kernels_->shift_panel_f32(panel, dim_, scales, centre_.data(),
                                                             squares));
        for (std::size_t i = 0; i < entries; ++i) {
            extent_.norm = std::max(extent_.norm, static_cast<double>(squares[i]));
            float_offsets_[first + i] = metric_ == Metric::kL2 ? -0.5f * squares[i] : 0.0f;
        }
        std::fill(float_offsets_.begin() + static_cast<std::ptrdiff_t>(first + entries),
                  float_offsets_.begin() + static_cast<std::ptrdiff_t>(first + kPanelRows),
                  kNoFloatOffset);
    }
    const bool fits = extent_.norm < kMostSquare &&
                      (metric_ != Metric::kCosine ||
                       (static_cast<double>(smallest) >= kLeastSquare &&
                        static_cast<double>(largest) <= kMostSquare));
    extent_.norm = kCare * std::sqrt(extent_.norm) + kUnderflow * static_cast<double>(dim_);
    return fits;
}

// What z.y + offset must reach, in real arithmetic.
double FlatPanels::wanted(const FlatQuery& query, const Side& side) const {
    switch (metric_) {
        case Metric::kInnerProduct: return query.threshold() - side.start;
        case Metric::kCosine: return query.threshold() * query.norm();
        case Metric::kL2: return query.threshold() / 2 - side.start;
    }
    return 0.0;
}

double FlatPanels::rounding(const Side& side) const {
    const auto d = static_cast<double>(dim_);
    const double unit = kCare * kUnit, underflow = 4 * kUnderflow * d;
    switch (metric_) {
        case Metric::kInnerProduct:
            return 3 * (d + 16) * unit * side.norm * (extent_.norm + centre_norm_) + underflow;
        case Metric::kCosine: return (4 * d + 48) * unit * side.norm + underflow;
        case Metric::kL2: {
            const double sum = side.norm + extent_.norm;
            return 2 * (d + 16) * unit * sum * sum + underflow;
        }
    }
    return kInfinity;
}

void FlatPanels::sift_floats(const Strip& strip) {
    for (std::size_t i = 0; i < queries_.size(); ++i) {
        const double cut = wanted(queries_[i], sides_[i]) - rounding(sides_[i]);
        const auto most = static_cast<double>(kAllFloatCut);
        float_cuts_[i] =
            queries_[i].has_threshold() ? rounded_down(std::clamp(cut, -most, most)) : -kAllFloatCut;
    }
    for (std::size_t first = 0; first < strip.entries; first += kPanelRows) {
        settle(strip, first,
               kernels_->sift_panel_f32(panels_.data() + first * dim_, dim_,
                                        float_offsets_.data() + first, packed_.data(),
                                        queries_.size(), float_cuts_.data(), pairs_.data()));
    }
}

bool FlatPanels::fits_bytes() const {
    const double step = static_cast<double>(extent_.largest) / kMostCode;
    const double both = step * static_cast<double>(query_step_);
    return step >= kLeastStep &&
           (metric_ != Metric::kL2 || extent_.norm * extent_.norm <= kMostOffset * both);
}

void FlatPanels::sift_bytes(const Strip& strip) {
    const float step = extent_.largest / static_cast<float>(kMostCode);
    const double both = static_cast<double>(step) * static_cast<double>(query_step_);
    const std::size_t groups = divide_up(dim_, kGroupSlots);
    const std::size_t rows = round_up(strip.entries, kPanelRows);
    codes_.resize(rows * groups * kGroupSlots);
    offsets_.resize(rows);
    float largest_rest = 0.0f;
    for (std::size_t first = 0; first < strip.entries; first += kPanelRows) {
        float rests[kPanelRows];
        kernels_->code_panel_u8(panels_.data() + first * dim_, dim_, step,
                                codes_.data() + first * groups * kGroupSlots, rests);
        for (const float rest : rests) largest_rest = std::max(largest_rest, rest);
    }
    for (std::size_t i = 0; i < rows; ++i) {
        const double offset = static_cast<double>(float_offsets_[i]) / both;
        offsets_[i] = i < strip.entries ? static_cast<std::int32_t>(std::floor(offset + 0.5))
                                        : kNoOffset;
    }
    // The squares of what codes leave round, and so does what they leave: by 2 u of a value.
    extent_.residual = kCare * std::sqrt(static_cast<double>(largest_rest)) +
                       4 * kUnit * extent_.norm;
    for (std::size_t i = 0; i < queries_.size(); ++i) {
        const Side& side = sides_[i];
        const double slack = side.residual * (extent_.norm + extent_.residual) +
                             side.norm * extent_.residual + rounding(side) + both;
        const double cut = (wanted(queries_[i], side) - slack) / both +
                           static_cast<double>(kCodeOffset) * side.code_sum;
        cuts_[i] = static_cast<std::int32_t>(
            queries_[i].has_threshold() ? std::clamp(std::floor(cut), -kAllCut, kAllCut)
                                        : -kAllCut);
    }
    for (std::size_t first = 0; first < strip.entries; first += kPanelRows) {
        settle(strip, first,
               kernels_->sift_panel_u8i8(codes_.data() + first * groups * kGroupSlots, groups,
                                         offsets_.data() + first, packed_codes_.data(),
                                         queries_.size(), cuts_.data(), pairs_.data()));
    }
}

void FlatPanels::settle(const Strip& strip, std::size_t first, std::size_t found) {
    for (std::size_t i = 0; i < found; ++i) {
        const bool reached = queries_[pairs_[i].query].consider(strip, first + pairs_[i].row);
        unclear_ += reached ? 0 : 1;
    }
}

}  // namespace hiernorm
