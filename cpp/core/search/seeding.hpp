// The step "seed": entries that are settled first, so that there is a threshold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "search/cell_skipper.hpp"
#include "search/prepared_query.hpp"

namespace hiernorm {

class Seeding {
   public:
    void begin();

    // With cells: settles the best entries, by their codes, of the blocks that point the query's
    // way.
    void seed_from_cells(PreparedQuery& query, CellSkipper& cells);

    // Without: settles the best majors of the tile. Writes its other candidates, if the threshold
    // allows any, to `out` (room for all and one block more) and returns their number.
    std::size_t seed_from_tile(PreparedQuery& query, const Tile& tile, Candidate* out);

    // For a part of the search of a query: another part has settled the seeds, and counts them.
    void take_seeds(const Seeding& other) {
        seeds_ = other.seeds_;
        seeded_ = 0;
    }

    // Entries settled so far by either.
    std::uint64_t seeded() const { return seeded_; }

    // Whether an entry of a cell is settled already; the scan finds it again.
    bool is_seed(std::uint32_t position) const;

    // Whether one of the entries from `position` on is; marks their scores with kNoScore.
    bool has_seeds(std::uint32_t position, std::size_t entries) const {
        const auto seed = std::lower_bound(seeds_.begin(), seeds_.end(), position);
        return seed != seeds_.end() && *seed - position < entries;
    }
    void hide_seeds(std::int32_t* scores, std::uint32_t position, std::size_t entries) const;

   private:
    void fill_pool(const PreparedQuery& query, std::span<const std::uint32_t> blocks,
                   std::size_t best);
    std::span<const Contender> best_by_codes(const PreparedQuery& query, std::size_t wanted);

    std::vector<std::uint32_t> seeds_;  // positions of those that were settled, in order
    std::uint64_t seeded_ = 0;
};

}  // namespace hiernorm
