// The step "scan": the integer scores of the majors of a tile, and the entries above the cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "search/cell_skipper.hpp"
#include "search/prepared_query.hpp"
#include "search/seeding.hpp"

namespace hiernorm {

class TileScan {
   public:
    // Which blocks of the tiles to come are read: those that skip cells has left, or those with an
    // entry that may be returned, or all.
    void choose_blocks(const PreparedQuery& query, bool cells_skipped) {
        blocks_ = cells_skipped        ? Blocks::kListed
                  : query.mask().all() ? Blocks::kAll
                                       : Blocks::kAllowed;
    }

    // Writes the candidates of the tile to `out` (room for all and one block more), asks for their
    // minor codes and returns their number. Tiles come in order.
    std::size_t scan(PreparedQuery& query, CellSkipper& cells, const Tile& tile, Candidate* out);

    // The same in soft mode, which must know the largest score that it skips. Seeds are not skipped.
    std::size_t scan_soft(PreparedQuery& query, CellSkipper& cells, const Seeding& seeding,
                          const Tile& tile, Candidate* out);

    // Whether all blocks are read, and nothing but the candidates is asked for: then several
    // queries read a tile together.
    bool shares_tiles(const PreparedQuery& query) const {
        return blocks_ == Blocks::kAll && !query.soft();
    }

   private:
    enum class Blocks { kAll, kAllowed, kListed };

    std::size_t scan_all(PreparedQuery& query, const Tile& tile, Candidate* out);
    std::size_t scan_allowed(PreparedQuery& query, const Tile& tile, Candidate* out);
    std::size_t scan_listed(PreparedQuery& query, CellSkipper& cells, const Tile& tile,
                            Candidate* out);
    std::size_t scan_blocks(PreparedQuery& query, const Tile& tile,
                            std::span<const std::uint16_t> list, std::size_t listed,
                            Candidate* out);

    Blocks blocks_ = Blocks::kAll;
};

// Scans a tile for queries of one store that share it; the candidates of query i go to outs[i], as
// TileScan::scan writes them, and their number to counts[i].
void scan_together(std::span<PreparedQuery* const> queries, const Tile& tile,
                   std::span<Candidate* const> outs, std::span<std::size_t> counts);

}  // namespace hiernorm
