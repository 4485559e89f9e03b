// Which cells one query has to read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cone_query.hpp"
#include "engines/engine.hpp"

namespace hiernorm {

class CellChoice {
   public:
    // Bounds all cells; `view` is the query's.
    void begin(const Store& store, const Kernels& kernels, const QueryView& view);

    // A few cells with the best bounds, in order of position; together they have at least `entries`
    // (or are all there are).
    std::span<const Candidate> best(std::size_t entries);

    // Keeps the cells whose bound reaches the threshold; returns the number of their entries.
    std::size_t choose(double threshold);

    // Accounts for the others: they will not be read.
    void skip_others(Report& report) const { skip(skipped_, report); }

    // The chosen cells' blocks among the `entries` from `position` on, as numbers from there. Cells
    // that the present threshold rules out after all are left out. Calls go through the store in
    // order.
    std::span<const std::uint16_t> blocks(std::size_t position, std::size_t entries,
                                          double threshold, Report& report);

   private:
    std::size_t entries_of(std::size_t chosen) const;
    void skip(std::int32_t score, Report& report) const;

    const Cells* cells_ = nullptr;
    const Kernels* kernels_ = nullptr;
    ConeQuery query_;
    std::vector<std::int32_t> scores_;
    std::vector<std::int32_t> block_maxima_;
    std::vector<Candidate> chosen_;
    std::size_t chosen_count_ = 0;
    std::int32_t skipped_ = 0;  // largest score of the others
    std::size_t next_ = 0;      // of the chosen
    std::vector<std::uint16_t> list_;
};

}  // namespace hiernorm
