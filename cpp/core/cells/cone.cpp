// Finds a narrow cone by moving its direction towards the member farthest from it.
#include "cells/cone.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "encode/rounding.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kStartRound = 8;  // the first step is one of 1 / 8 of the way

// Covers that float32 units err by 2^-24 a value and their norms by as much.
constexpr double kUnitError = 1e-6;

struct Member {
    const float* values;  // kBlockEntries apart
    double product;
};

// The member with the smallest product; the first of several.
Member farthest(const float* blocks, std::size_t block_count, std::size_t dims,
                const double* direction) {
    Member far{nullptr, HUGE_VAL};
    for (std::size_t b = 0; b < block_count; ++b) {
        const float* block = blocks + b * dims * kBlockEntries;
        double products[kBlockEntries] = {};
        for (std::size_t j = 0; j < dims; ++j) {
            const double value = direction[j];
            for (std::size_t i = 0; i < kBlockEntries; ++i) {
                products[i] += value * double{block[j * kBlockEntries + i]};
            }
        }
        for (std::size_t i = 0; i < kBlockEntries; ++i) {
            if (products[i] < far.product) far = {block + i, products[i]};
        }
    }
    return far;
}

double norm_of(const double* values, std::size_t count) {
    double squares = 0.0;
    for (std::size_t j = 0; j < count; ++j) squares += values[j] * values[j];
    return std::sqrt(squares);
}

void scale_to_unit(std::vector<double>& values) {
    const double norm = norm_of(values.data(), values.size());
    if (!(norm > 0.0)) return;
    for (double& value : values) value /= norm;
}

std::vector<double> middle(const float* blocks, std::size_t block_count, std::size_t dims) {
    std::vector<double> sum(dims, 0.0);
    for (std::size_t b = 0; b < block_count; ++b) {
        for (std::size_t j = 0; j < dims; ++j) {
            const float* values = blocks + (b * dims + j) * kBlockEntries;
            for (std::size_t i = 0; i < kBlockEntries; ++i) sum[j] += double{values[i]};
        }
    }
    scale_to_unit(sum);
    return sum;
}

// Badoiu and Clarkson's iteration for the smallest enclosing ball, kept on the sphere.
std::vector<double> narrowest(const float* blocks, std::size_t block_count, std::size_t dims,
                              std::size_t rounds) {
    std::vector<double> direction = middle(blocks, block_count, dims);
    std::vector<double> best = direction;
    double widest = -HUGE_VAL;
    for (std::size_t round = 0; round < rounds; ++round) {
        const Member far = farthest(blocks, block_count, dims, direction.data());
        if (far.product > widest) {
            widest = far.product;
            best = direction;
        }
        const double step = 1.0 / static_cast<double>(round + kStartRound);
        for (std::size_t j = 0; j < dims; ++j) {
            direction[j] += step * (double{far.values[j * kBlockEntries]} - direction[j]);
        }
        scale_to_unit(direction);
    }
    return best;
}

}  // namespace

double ConeLayout::largest_norm() const {
    return kConeNorm + 0.5 * std::sqrt(static_cast<double>(dims)) + 1.0;
}

// Direction zero and the widest angle: need * 127 + root * 127 is above every cut.
void open_cone(const ConeLayout& layout, std::int8_t* codes) {
    std::fill_n(codes, layout.slots(), std::int8_t{0});
    codes[layout.cosine_slot()] = -kCodeLimit;
    codes[layout.sine_slot()] = kCodeLimit;
}

void enclose(const ConeLayout& layout, const float* blocks, std::size_t block_count,
             std::size_t rounds, std::int8_t* codes) {
    std::vector<double> direction = narrowest(blocks, block_count, layout.dims, rounds);
    for (double& value : direction) value = std::nearbyint(value * kConeNorm);
    const double norm = norm_of(direction.data(), layout.dims);
    const double product = farthest(blocks, block_count, layout.dims, direction.data()).product;
    const double cosine = norm > 0.0 ? product / norm - kUnitError : 0.0;
    const double sine = std::sqrt(std::max(0.0, 1.0 - cosine * cosine));
    const double height = std::floor(norm * cosine);
    const double width = std::ceil(norm * sine * kRoundUp);
    if (!(cosine > 0.0) || width > kCodeLimit) {
        open_cone(layout, codes);
        return;
    }
    std::fill_n(codes, layout.slots(), std::int8_t{0});
    for (std::size_t j = 0; j < layout.dims; ++j) codes[j] = static_cast<std::int8_t>(direction[j]);
    codes[layout.cosine_slot()] = static_cast<std::int8_t>(std::min<double>(height, kCodeLimit));
    codes[layout.sine_slot()] = static_cast<std::int8_t>(width);
}

}  // namespace hiernorm
