// Splits level by level until all cells are small.
#include "cells/sphere_kmeans.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "interrupt.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

bool make_unit(double* values, std::size_t count) {
    double squares = 0.0;
    for (std::size_t j = 0; j < count; ++j) squares += values[j] * values[j];
    if (!(squares > 0.0)) return false;
    const double norm = std::sqrt(squares);
    for (std::size_t j = 0; j < count; ++j) values[j] /= norm;
    return true;
}

namespace {

constexpr std::size_t kMostParts = 128;      // of one split
constexpr std::size_t kRounds = 6;           // of k-means
constexpr std::size_t kSampledPerPart = 32;  // members on which the rounds are run

// Directions in blocks of 16, as Kernels::score_f32 reads them.
class Centres {
   public:
    Centres(std::size_t count, std::size_t dims)
        : count_(count),
          dims_(dims),
          blocks_((count + kBlockEntries - 1) / kBlockEntries * kBlockEntries * dims, 0.0f),
          scores_((count + kBlockEntries - 1) / kBlockEntries * kBlockEntries) {}

    void set(std::size_t centre, const double* direction) {
        for (std::size_t j = 0; j < dims_; ++j) {
            at(centre, j) = static_cast<float>(direction[j]);
        }
    }
    void set(std::size_t centre, const float* direction) {
        for (std::size_t j = 0; j < dims_; ++j) at(centre, j) = direction[j];
    }

    // The nearest centre; the first of several.
    std::size_t nearest(const Kernels& kernels, const float* vector) {
        kernels.score_f32(blocks_.data(), count_, vector, dims_, scores_.data());
        std::size_t best = 0;
        for (std::size_t i = 1; i < count_; ++i) {
            if (scores_[i] > scores_[best]) best = i;
        }
        return best;
    }

   private:
    float& at(std::size_t centre, std::size_t dim) {
        return blocks_[(centre / kBlockEntries * dims_ + dim) * kBlockEntries +
                       centre % kBlockEntries];
    }

    std::size_t count_, dims_;
    std::vector<float> blocks_, scores_;
};

class Splitter {
   public:
    Splitter(const float* units, std::size_t dims, std::size_t cell_entries, std::size_t parts)
        : kernels_(active_kernels()),
          units_(units),
          dims_(dims),
          cell_entries_(cell_entries),
          parts_(parts) {}

    // Splits the members until all cells are small; members are rearranged so that cells are
    // contiguous.
    void split(std::uint32_t* members, std::size_t count, std::vector<std::size_t>& sizes) {
        if (count <= cell_entries_ + cell_entries_ / 2) {
            if (count != 0) sizes.push_back(count);
            return;
        }
        const std::size_t parts =
            std::min(parts_, std::max<std::size_t>(2, (count + cell_entries_ / 2) / cell_entries_));
        const std::vector<std::size_t> part_sizes = part(members, count, parts);
        if (std::find(part_sizes.begin(), part_sizes.end(), count) != part_sizes.end()) {
            chop(count, sizes);  // all alike
            return;
        }
        for (const std::size_t size : part_sizes) {
            split(members, size, sizes);
            members += size;
        }
    }

   private:
    void chop(std::size_t count, std::vector<std::size_t>& sizes) const {
        for (; count > cell_entries_; count -= cell_entries_) {
            sizes.push_back(cell_entries_);
        }
        sizes.push_back(count);
    }

    // One k-means; returns the sizes of the parts.
    std::vector<std::size_t> part(std::uint32_t* members, std::size_t count, std::size_t parts) {
        const std::size_t sampled = std::min(count, parts * kSampledPerPart);
        const auto sample = [&](std::size_t i) { return unit(members[i * count / sampled]); };
        Centres centres(parts, dims_);
        for (std::size_t p = 0; p < parts; ++p) centres.set(p, sample(p * sampled / parts));
        for (std::size_t round = 0; round < kRounds; ++round) {
            sums_.assign(parts * dims_, 0.0);
            for (std::size_t i = 0; i < sampled; ++i) {
                if (i % kPolledEvery == 0) poll_interrupt();
                const float* vector = sample(i);
                double* sum = sums_.data() + centres.nearest(kernels_, vector) * dims_;
                for (std::size_t j = 0; j < dims_; ++j) sum[j] += double{vector[j]};
            }
            for (std::size_t p = 0; p < parts; ++p) {
                double* sum = sums_.data() + p * dims_;
                if (make_unit(sum, dims_)) centres.set(p, sum);
            }
        }
        return distribute(members, count, parts, centres);
    }

    // Sorts the members by their nearest centre, keeping their order within it.
    std::vector<std::size_t> distribute(std::uint32_t* members, std::size_t count,
                                        std::size_t parts, Centres& centres) {
        std::vector<std::size_t> sizes(parts, 0);
        nearest_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            if (i % kPolledEvery == 0) poll_interrupt();
            nearest_[i] = static_cast<std::uint32_t>(centres.nearest(kernels_, unit(members[i])));
            ++sizes[nearest_[i]];
        }
        std::vector<std::size_t> next(parts, 0);
        std::partial_sum(sizes.begin(), sizes.end() - 1, next.begin() + 1);
        sorted_.resize(count);
        for (std::size_t i = 0; i < count; ++i) sorted_[next[nearest_[i]]++] = members[i];
        std::copy(sorted_.begin(), sorted_.end(), members);
        return sizes;
    }

    const float* unit(std::uint32_t member) const { return units_ + std::size_t{member} * dims_; }

    const Kernels& kernels_;
    const float* units_;
    std::size_t dims_, cell_entries_, parts_;
    std::vector<double> sums_;
    std::vector<std::uint32_t> nearest_, sorted_;
};

}  // namespace

std::vector<std::size_t> split_by_direction(const float* units, std::size_t dims,
                                            std::uint32_t* members, std::size_t count,
                                            std::size_t cell_entries) {
    // Two levels of equal splits, three above a million entries or so.
    const double cells = static_cast<double>(count) / static_cast<double>(cell_entries);
    const auto parts = static_cast<std::size_t>(std::ceil(std::sqrt(cells)));
    std::vector<std::size_t> sizes;
    Splitter(units, dims, cell_entries, std::clamp<std::size_t>(parts, 2, kMostParts))
        .split(members, count, sizes);
    return sizes;
}

}  // namespace hiernorm
