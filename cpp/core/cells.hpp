// Entries that point the same way lie side by side in a cell, and a cone around the cell bounds
// what any of them can score: a search reads only the cells whose bound reaches its threshold.
//
// The cone of a cell: a direction c and the smallest cosine of a member's major with it. For a
// query at angle theta to c and members within sigma of it,
//     major product <= |q_M| |y_M| cos(max(0, theta - sigma)).
// Entries that were added a few at a time lie in open cells, which have no cone: they are always
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fit.hpp"
#include "grouping.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {

// Largest (and smallest) values over the members of a cell.
struct Cone {
    bool open = true;
    double cosine = 1.0;
    double norm = 0.0;  // of the major
    double tail = 0.0;  // of the minor
};

class Cells {
   public:
    // No entry that can be seen lies in a cone: there is nothing to skip.
    bool all_open() const { return grouped_ == 0; }
    std::size_t grouped_entries() const { return grouped_; }

    // What can be seen: cells 0 .. count() - 1, in order of position.
    std::size_t count() const { return seen_; }
    std::size_t first(std::size_t cell) const { return starts_[cell]; }
    std::size_t end(std::size_t cell) const {
        return cell + 1 < seen_ ? starts_[cell + 1] : entries_;
    }
    const float* directions() const { return directions_.data(); }  // blocks[dim][cell]
    ConeArrays arrays() const {
        return {cosines_.data(), sines_.data(), norms_.data(), tails_.data()};
    }
    const Cone& largest() const { return largest_; }
    double view_error() const { return view_error_; }

    // The next entries to be written, from `position` on, lie in the cells of `grouping`.
    void plan(const Grouping& grouping, std::size_t position, std::size_t dims);

    // Takes in the entry written at `position`; `major` is its view's.
    void include(std::size_t position, const double* major, std::size_t dims,
                 const TileNorms& norms, double view_error);

    // Forgets what was written behind the first `entries` and never shown.
    void withdraw(std::size_t entries);

    // Shows the first `entries`; after make_room() it cannot fail.
    void make_room();
    void show(std::size_t entries);

    // The parts that the rest follows from, to be kept in a file and brought back.
    const std::vector<std::uint32_t>& starts() const { return starts_; }
    const std::vector<Cone>& cones() const { return cones_; }
    void copy_direction(std::size_t cell, std::size_t dims, float* out) const;
    // `directions` are one after the other, `entries` those of all cells.
    void restore(std::vector<std::uint32_t> starts, std::vector<Cone> cones,
                 const float* directions, std::size_t dims, double view_error, std::size_t entries);

    std::size_t nbytes() const;

   private:
    void start_cell(std::size_t position, const Cone& cone);
    void write_arrays(std::size_t cell);

    std::size_t seen_ = 0;
    std::size_t entries_ = 0;
    std::size_t grouped_ = 0;      // entries seen in cells that are not open
    std::size_t planned_end_ = 0;  // open cells begin from here
    std::size_t current_ = 0;      // the cell of the last entry written
    std::vector<std::uint32_t> starts_;
    std::vector<Cone> cones_;
    std::vector<float> directions_;
    Cone largest_;  // over the cells seen
    double view_error_ = 0.0;
    // Of the cells seen, as the kernels want them: padded to whole blocks, norms over the largest.
    std::vector<float> cosines_, sines_, norms_, tails_;
};

}  // namespace hiernorm
