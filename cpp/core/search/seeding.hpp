// The step "seed": entries that are settled first, so that there is a threshold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "search/cell_skipper.hpp"
#include "search/prepared_query.hpp"

namespace hiernorm {

class Seeding {
   public:
    void begin();

    // With cells: settles the best majors of the blocks that point the query's way.
    void seed_from_cells(PreparedQuery& query, CellSkipper& cells);

    // Without: settles the best majors of the tile. Writes its other candidates, if the threshold
    // allows any, to `out` (room for all and one block more) and returns their number.
    std::size_t seed_from_tile(PreparedQuery& query, const Tile& tile, Candidate* out);

    // Entries settled so far by either.
    std::uint64_t seeded() const { return seeded_; }

    // Whether an entry of a cell is settled already; the scan finds it again.
    bool is_seed(std::uint32_t position) const;

   private:
    void find_best(const PreparedQuery& query, std::size_t first, std::size_t entries,
                   std::size_t wanted);

    std::vector<std::uint32_t> seeds_;  // positions of those that were settled, in order
    std::uint64_t seeded_ = 0;
};

}  // namespace hiernorm
