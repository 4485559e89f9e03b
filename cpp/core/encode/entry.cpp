// Encodes entries: codes, residuals and norms.
#include "encode/entry.hpp"

#include <algorithm>
#include <cmath>

#include "encode/rounding.hpp"

namespace hiernorm {
namespace {

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

TileNorms measure_entry(const Encoding& encoding, const double* view, double view_error) {
    TileNorms norms;
    norms.norm = norm_up(view, encoding.dim) + view_error;
    if (encoding.metric == Metric::kL2) {
        norms.norm =
            std::sqrt(norms.norm * norms.norm + encoding.base_norm * encoding.base_norm) * kRoundUp;
    }
    norms.tail = norm_up(view + encoding.major, encoding.minor()) + view_error;
    return norms;
}

TileNorms encode_entry(const Encoding& encoding, const double* view, double view_error,
                       const EntryCodes& codes) {
    TileNorms norms = measure_entry(encoding, view, view_error);
    const CodedPart major =
        encode_part(view, encoding.major, encoding.major_step,
                    [&](std::size_t j, std::uint8_t byte) { codes.major[slot_offset(j)] = byte; });
    norms.major_residual = root_up(major.residual) + view_error;
    norms.major_coded = root_up(major.coded);

    if (encoding.entry_tails) {
        codes.major[slot_offset(encoding.major)] =
            tail_code(norms.tail, encoding.tail_step, norms.uncoded_tail);
    } else {
        norms.uncoded_tail = norms.tail;
    }

    CodedPart minor;
    for (std::size_t s = 0; s < encoding.stages.size(); ++s) {
        const Stage& stage = encoding.stages[s];
        std::uint8_t* bytes = codes.stages[s] + codes.row * stage.bytes;
        const CodedPart part =
            encode_part(view + stage.first, stage.dims, encoding.minor_step,
                        [&](std::size_t j, std::uint8_t byte) { bytes[j] = byte; });
        minor.residual += part.residual;
        minor.coded += part.coded;
        if (s + 1 < encoding.stages.size()) {
            const std::size_t next = encoding.stages[s + 1].first;
            bytes[stage.dims] = tail_code(norm_up(view + next, encoding.dim - next) + view_error,
                                          encoding.tail_step, norms.stage_tail);
        }
    }
    norms.minor_residual = root_up(minor.residual) + view_error;
    norms.minor_coded = root_up(minor.coded);
    return norms;
}

}  // namespace hiernorm
