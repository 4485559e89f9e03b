// Keeps the cones and lays them out for the kernels.
#include "cells.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hiernorm {
namespace {

constexpr float kNoCone = -2.0f;  // below every cosine, so that the query is always within

std::size_t padded(std::size_t cells) {
    return (cells + kBlockEntries - 1) / kBlockEntries * kBlockEntries;
}

float round_up(double value) {
    const auto nearest = static_cast<float>(value);
    return nearest < value ? std::nextafterf(nearest, std::numeric_limits<float>::infinity())
                           : nearest;
}

float round_down(double value) { return -round_up(-value); }

double share(double value, double largest) { return largest > 0.0 ? value / largest : 0.0; }

}  // namespace

void Cells::start_cell(std::size_t position, const Cone& cone) {
    starts_.push_back(static_cast<std::uint32_t>(position));
    cones_.push_back(cone);
}

void Cells::plan(const Grouping& grouping, std::size_t position, std::size_t dims) {
    const float* direction = grouping.directions.data();
    const std::size_t cells = starts_.size() + grouping.sizes.size();
    starts_.reserve(cells);
    cones_.reserve(cells);
    directions_.reserve(padded(cells) * dims);
    for (const std::uint32_t size : grouping.sizes) {
        const std::size_t cell = starts_.size();
        start_cell(position, {.open = false});
        directions_.resize(padded(cell + 1) * dims, 0.0f);
        for (std::size_t j = 0; j < dims; ++j) {
            directions_[(cell / kBlockEntries * dims + j) * kBlockEntries + cell % kBlockEntries] =
                *direction++;
        }
        position += size;
    }
    planned_end_ = position;
}

void Cells::include(std::size_t position, const double* major, std::size_t dims,
                    const TileNorms& norms, double view_error) {
    if (position >= planned_end_ && (position == planned_end_ || position % kTileEntries == 0)) {
        directions_.resize(padded(starts_.size() + 1) * dims, 0.0f);
        start_cell(position, {});
    }
    while (current_ + 1 < starts_.size() && starts_[current_ + 1] <= position) ++current_;
    Cone& cone = cones_[current_];
    double squares = 0.0;
    for (std::size_t j = 0; j < dims; ++j) squares += major[j] * major[j];
    cone.norm = std::max(cone.norm, std::sqrt(squares) * kRoundUp);
    cone.tail = std::max(cone.tail, norms.tail);
    view_error_ = std::max(view_error_, view_error);
    if (cone.open || squares == 0.0) return;
    double product = 0.0, direction_squares = 0.0;
    for (std::size_t j = 0; j < dims; ++j) {
        const double c = directions_[(current_ / kBlockEntries * dims + j) * kBlockEntries +
                                     current_ % kBlockEntries];
        product += c * major[j];
        direction_squares += c * c;
    }
    const double norm = std::sqrt(squares) * std::sqrt(direction_squares);
    // The sums err by less than dims 2^-52 of the product of the norms.
    const double cosine = norm > 0.0 ? product / norm - (kRoundUp - 1.0) : double{kNoCone};
    cone.cosine = std::min(cone.cosine, cosine);
}

void Cells::withdraw(std::size_t entries) {
    while (!starts_.empty() && starts_.back() >= entries) {
        starts_.pop_back();
        cones_.pop_back();
    }
    planned_end_ = std::min(planned_end_, entries);
    current_ = starts_.empty() ? 0 : starts_.size() - 1;
}

void Cells::copy_direction(std::size_t cell, std::size_t dims, float* out) const {
    for (std::size_t j = 0; j < dims; ++j) {
        out[j] =
            directions_[(cell / kBlockEntries * dims + j) * kBlockEntries + cell % kBlockEntries];
    }
}

void Cells::restore(std::vector<std::uint32_t> starts, std::vector<Cone> cones,
                    const float* directions, std::size_t dims, double view_error,
                    std::size_t entries) {
    starts_ = std::move(starts);
    cones_ = std::move(cones);
    directions_.assign(padded(starts_.size()) * dims, 0.0f);
    for (std::size_t cell = 0; cell < starts_.size(); ++cell) {
        for (std::size_t j = 0; j < dims; ++j) {
            directions_[(cell / kBlockEntries * dims + j) * kBlockEntries + cell % kBlockEntries] =
                *directions++;
        }
    }
    view_error_ = view_error;
    make_room();
    show(entries);
}

void Cells::make_room() {
    for (std::vector<float>* array : {&cosines_, &sines_, &norms_, &tails_}) {
        array->resize(padded(starts_.size()), 0.0f);
    }
}

void Cells::show(std::size_t entries) {
    const std::size_t before = seen_;
    entries_ = entries;
    seen_ = starts_.size();
    const Cone largest = largest_;
    // The last cell seen so far may have been open and have grown.
    const std::size_t changed = before == 0 ? 0 : before - 1;
    for (std::size_t cell = changed; cell < seen_; ++cell) {
        if (cell >= before && !cones_[cell].open) grouped_ += end(cell) - first(cell);
        largest_.norm = std::max(largest_.norm, cones_[cell].norm);
        largest_.tail = std::max(largest_.tail, cones_[cell].tail);
    }
    const bool rescaled = largest.norm != largest_.norm || largest.tail != largest_.tail;
    for (std::size_t cell = rescaled ? 0 : changed; cell < seen_; ++cell) write_arrays(cell);
}

void Cells::write_arrays(std::size_t cell) {
    const Cone& cone = cones_[cell];
    const float cosine = cone.open ? kNoCone : std::max(round_down(cone.cosine), kNoCone);
    cosines_[cell] = cosine;
    const double squares = std::max(0.0, 1.0 - double{cosine} * double{cosine});
    sines_[cell] = round_up(std::sqrt(squares) * kRoundUp);
    norms_[cell] = round_up(share(cone.norm, largest_.norm));
    tails_[cell] = round_up(share(cone.tail, largest_.tail));
}

std::size_t Cells::nbytes() const {
    return starts_.capacity() * sizeof(std::uint32_t) + cones_.capacity() * sizeof(Cone) +
           (directions_.capacity() + cosines_.capacity() + sines_.capacity() + norms_.capacity() +
            tails_.capacity()) *
               sizeof(float);
}

}  // namespace hiernorm
