// Encodes entries: codes, residuals and norms.
#include "encode/encoding.hpp"

#include <cmath>

namespace hiernorm {
namespace {

double norm_of(const double* values, std::size_t count) {
    double sum = 0.0;
    for (std::size_t j = 0; j < count; ++j) sum += values[j] * values[j];
    return std::sqrt(sum) * kRoundUp;
}

double step_for(double largest, double limit) { return largest > 0.0 ? largest / limit : 1.0; }

// The nearest code: adding 1.5 * 2^52 leaves no fraction bits, so the addition itself rounds.
double round_code(double value) {
    constexpr double kNoFraction = 6755399441055744.0;
    value = std::min(std::max(value, -double{kCodeLimit}), double{kCodeLimit});
    return (value + kNoFraction) - kNoFraction;
}

struct CodedPart {
    double residual = 0.0;
    double coded = 0.0;
};

// Quantises `count` values; `put(j, byte)` stores each. Sums are of squares.
template <class Put>
CodedPart encode_part(const double* values, std::size_t count, double step, Put put) {
    CodedPart part;
    const double inverse = 1.0 / step;
    for (std::size_t j = 0; j < count; ++j) {
        const double code = round_code(values[j] * inverse);
        const double coded = code * step;
        const double residual = values[j] - coded;
        part.residual += residual * residual;
        part.coded += coded * coded;
        put(j, static_cast<std::uint8_t>(static_cast<int>(code) + kCodeOffset));
    }
    return part;
}

// The smallest code whose value is not below `tail`; *excess is what 255 cannot express.
std::uint8_t tail_code(double tail, double step, double& excess) {
    double code = std::ceil(tail / step);
    if (code * step < tail) code += 1.0;
    if (code > kTailLimit) {
        code = kTailLimit;
        excess = std::max(excess, (tail - code * step) * kRoundUp);
    }
    return static_cast<std::uint8_t>(code);
}

}  // namespace

void Fit::lay_out_stages() {
    stages.clear();
    std::size_t first = major;
    for (; dim - first > kStageBytes; first += kStageDims) {
        stages.push_back({first, kStageDims, kStageBytes});
    }
    stages.push_back({first, dim - first, dim - first});
}

void TileNorms::include(const TileNorms& other) {
    norm = std::max(norm, other.norm);
    major_residual = std::max(major_residual, other.major_residual);
    minor_residual = std::max(minor_residual, other.minor_residual);
    major_coded = std::max(major_coded, other.major_coded);
    minor_coded = std::max(minor_coded, other.minor_coded);
    tail = std::max(tail, other.tail);
    uncoded_tail = std::max(uncoded_tail, other.uncoded_tail);
    stage_tail = std::max(stage_tail, other.stage_tail);
}

void choose_steps(Fit& fit, const double* views, std::size_t count, double headroom) {
    double largest_major = 0.0, largest_minor = 0.0, largest_tail = 0.0;
    double smallest_tail = count == 0 ? 0.0 : HUGE_VAL;
    for (std::size_t i = 0; i < count; ++i) {
        const double* view = views + i * fit.dim;
        for (std::size_t j = 0; j < fit.major; ++j) {
            largest_major = std::max(largest_major, std::abs(view[j]));
        }
        for (std::size_t j = fit.major; j < fit.dim; ++j) {
            largest_minor = std::max(largest_minor, std::abs(view[j]));
        }
        const double tail = norm_of(view + fit.major, fit.minor());
        largest_tail = std::max(largest_tail, tail);
        smallest_tail = std::min(smallest_tail, tail);
    }
    fit.major_step = step_for(headroom * largest_major, kCodeLimit);
    fit.minor_step = step_for(headroom * largest_minor, kCodeLimit);
    fit.tail_step = step_for(headroom * largest_tail, kTailLimit);
    // HN vectors all have the same tail: one number per tile says it. Others pay for a slot.
    fit.entry_tails = smallest_tail < 0.98 * largest_tail;
}

TileNorms measure_entry(const Fit& fit, const double* view, double view_error) {
    TileNorms norms;
    norms.norm = norm_of(view, fit.dim) + view_error;
    if (fit.metric == Metric::kL2) {
        norms.norm = std::sqrt(norms.norm * norms.norm + fit.base_norm * fit.base_norm) * kRoundUp;
    }
    norms.tail = norm_of(view + fit.major, fit.minor()) + view_error;
    return norms;
}

TileNorms encode_entry(const Fit& fit, const double* view, double view_error,
                       const EntryCodes& codes) {
    TileNorms norms = measure_entry(fit, view, view_error);
    const CodedPart major =
        encode_part(view, fit.major, fit.major_step,
                    [&](std::size_t j, std::uint8_t byte) { codes.major[slot_offset(j)] = byte; });
    norms.major_residual = std::sqrt(major.residual) * kRoundUp + view_error;
    norms.major_coded = std::sqrt(major.coded) * kRoundUp;

    if (fit.entry_tails) {
        codes.major[slot_offset(fit.major)] =
            tail_code(norms.tail, fit.tail_step, norms.uncoded_tail);
    } else {
        norms.uncoded_tail = norms.tail;
    }

    CodedPart minor;
    for (std::size_t s = 0; s < fit.stages.size(); ++s) {
        const Fit::Stage& stage = fit.stages[s];
        std::uint8_t* bytes = codes.stages[s] + codes.row * stage.bytes;
        const CodedPart part =
            encode_part(view + stage.first, stage.dims, fit.minor_step,
                        [&](std::size_t j, std::uint8_t byte) { bytes[j] = byte; });
        minor.residual += part.residual;
        minor.coded += part.coded;
        if (s + 1 < fit.stages.size()) {
            const std::size_t next = fit.stages[s + 1].first;
            bytes[stage.dims] = tail_code(norm_of(view + next, fit.dim - next) + view_error,
                                          fit.tail_step, norms.stage_tail);
        }
    }
    norms.minor_residual = std::sqrt(minor.residual) * kRoundUp + view_error;
    norms.minor_coded = std::sqrt(minor.coded) * kRoundUp;
    return norms;
}

}  // namespace hiernorm
