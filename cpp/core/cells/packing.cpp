// Packs greedily within cells of k-means.
#include "cells/packing.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "cells/sphere_kmeans.hpp"
#include "interrupt.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kGroup = kBlockEntries;
constexpr std::size_t kCellEntries = 128;

class Packer {
   public:
    Packer(const float* units, std::size_t dims) : units_(units), dims_(dims) {}

    void pack(std::uint32_t* members, std::size_t count) {
        const std::vector<std::size_t> sizes =
            split_by_direction(units_, dims_, members, count, kCellEntries);
        std::vector<std::uint32_t> packed, left_over;
        packed.reserve(count);
        const std::uint32_t* cell = members;
        for (const std::size_t size : sizes) {
            poll_interrupt();
            pack_cell({cell, size}, packed, left_over);
            cell += size;
        }
        std::copy(packed.begin(), packed.end(), members);
        std::copy(left_over.begin(), left_over.end(), members + packed.size());
        // What the cells left over is packed among itself; most of it means that nothing helps.
        if (left_over.size() >= kGroup && left_over.size() <= count / 2) {
            pack(members + packed.size(), left_over.size());
        }
    }

   private:
    // Groups of a member far from the middle and its nearest, so that none is left with outliers.
    void pack_cell(std::span<const std::uint32_t> cell, std::vector<std::uint32_t>& packed,
                   std::vector<std::uint32_t>& left_over) {
        lay_out(cell);
        left_.assign(cell.size(), 0);
        for (std::size_t i = 0; i < cell.size(); ++i) left_[i] = static_cast<std::uint32_t>(i);
        while (left_.size() > kGroup) {
            score(sum_of_left());
            const auto far = *std::min_element(
                left_.begin(), left_.end(),
                [&](std::uint32_t a, std::uint32_t b) { return scores_[a] < scores_[b]; });
            score(column(far));
            nearest_ = left_;
            std::nth_element(nearest_.begin(), nearest_.begin() + (kGroup - 1), nearest_.end(),
                             [&](std::uint32_t a, std::uint32_t b) { return before(a, b); });
            const std::uint32_t last = nearest_[kGroup - 1];
            std::size_t kept = 0;
            for (const std::uint32_t i : left_) {
                if (before(last, i)) {
                    left_[kept++] = i;
                } else {
                    packed.push_back(cell[i]);
                }
            }
            left_.resize(kept);
        }
        std::vector<std::uint32_t>& rest = left_.size() == kGroup ? packed : left_over;
        for (const std::uint32_t i : left_) rest.push_back(cell[i]);
    }

    bool before(std::uint32_t a, std::uint32_t b) const {
        return scores_[a] > scores_[b] || (scores_[a] == scores_[b] && a < b);
    }

    // Dimension by dimension, so that all members are scored at once.
    void lay_out(std::span<const std::uint32_t> cell) {
        count_ = cell.size();
        columns_.resize(dims_ * count_);
        for (std::size_t i = 0; i < count_; ++i) {
            const float* unit = units_ + std::size_t{cell[i]} * dims_;
            for (std::size_t j = 0; j < dims_; ++j) columns_[j * count_ + i] = unit[j];
        }
    }

    const std::vector<float>& sum_of_left() {
        direction_.assign(dims_, 0.0f);
        for (std::size_t j = 0; j < dims_; ++j) {
            for (const std::uint32_t i : left_) direction_[j] += columns_[j * count_ + i];
        }
        return direction_;
    }

    const std::vector<float>& column(std::uint32_t member) {
        direction_.resize(dims_);
        for (std::size_t j = 0; j < dims_; ++j) direction_[j] = columns_[j * count_ + member];
        return direction_;
    }

    void score(const std::vector<float>& direction) {
        scores_.assign(count_, 0.0f);
        for (std::size_t j = 0; j < dims_; ++j) {
            const float value = direction[j];
            const float* column = columns_.data() + j * count_;
            for (std::size_t i = 0; i < count_; ++i) scores_[i] += value * column[i];
        }
    }

    const float* units_;
    std::size_t dims_;
    std::size_t count_ = 0;  // members of the cell
    std::vector<float> columns_, direction_, scores_;
    std::vector<std::uint32_t> left_, nearest_;
};

}  // namespace

void pack_by_direction(const float* units, std::size_t dims, std::uint32_t* members,
                       std::size_t count) {
    if (count >= kGroup) Packer(units, dims).pack(members, count);
}

}  // namespace hiernorm
