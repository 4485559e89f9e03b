// The passage of one query through the cascade; cascade.cpp names the steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "search/cell_skipper.hpp"
#include "search/engines.hpp"
#include "encode/query.hpp"

namespace hiernorm {

struct Tile {
    const Chunk& chunk;
    const TileNorms& norms;
    std::size_t first;  // entry within the chunk
    std::size_t entries;
    std::uint32_t position;  // of `first`, within the store
};

class Passage {
   public:
    void begin(const Store& store, const Kernels& kernels, const Job& job, const float* row,
               Answer& answer);

    // Chooses the blocks that scan() will read among the kRangeEntries of a chunk from `first` on,
    // where entries lie in cells.
    void enter_range(std::size_t chunk, std::size_t first);

    // Step 1 (and 2, on the first tiles): writes the tile's candidates to `out` (room for all),
    // asks for their minor codes and returns their number. Tiles of a range come in order.
    std::size_t scan(const Tile& tile, Candidate* out);

    // Steps 3 and 4 for candidates of one tile: sift by the present threshold, then tighten stage
    // by stage; who is left becomes a finalist. Overwrites the candidates.
    void refine(const Chunk& chunk, Candidate* candidates, std::size_t count);

    // Step 5: best bound first, until no bound reaches the threshold.
    void settle();

   private:
    static constexpr std::int32_t kDone = std::numeric_limits<std::int32_t>::min();  // settled

    struct Finalist {
        std::uint32_t position;
        double bound;
    };

    // Step 2 with cells: settles the best majors of the blocks that point the query's way.
    void seed_from_cells();
    bool is_seed(std::uint32_t position) const;
    void find_seeds(std::size_t first, std::size_t entries, std::size_t wanted);

    const std::uint8_t* stage_rows(const Chunk& chunk) const;
    std::size_t scan_all(const Tile& tile, Candidate* out);
    std::size_t scan_allowed(const Tile& tile, Candidate* out);
    std::size_t scan_listed(const Tile& tile, Candidate* out);
    std::size_t scan_blocks(const Tile& tile, std::span<const std::uint16_t> list,
                            std::size_t listed, Candidate* out);
    std::size_t seed_from_scratch(const Tile& tile, Candidate* out);
    std::int32_t nth_largest(std::size_t n, std::size_t entries);
    void settle_row(std::uint32_t position);
    void prefetch_row(std::uint32_t position) const;

    // The slack that proves, and the one that skips: smaller in soft mode.
    double proved_slack(const TileNorms& norms) const;
    double scan_slack(const TileNorms& norms) const;
    void skip(double bound);
    void skip_scores(std::int32_t largest, const TileNorms& norms);

    std::size_t sift(const Chunk& chunk, const TileNorms& norms, Candidate* candidates,
                     std::size_t count);
    std::size_t tighten(const Chunk& chunk, const TileNorms& norms, const Candidate* candidates,
                        std::size_t count);
    void weigh(const TileNorms& norms, std::size_t count, bool minor_read);

    // First what every scan reads.
    const Store* store_ = nullptr;
    const Kernels* kernels_ = nullptr;
    double threshold_ = 0.0;  // of the results so far, in the units of bounds: plus the offset
    bool uses_cells_ = false;
    bool listed_ = false;  // of the range entered, some blocks only
    bool soft_ = false;
    double beta_ = 0.0;
    Mask mask_;
    Answer* answer_ = nullptr;
    CodedQuery coded_;
    QueryView view_;
    ExactQuery exact_;
    std::vector<Contender> contenders_;
    CellChoice cells_;
    std::vector<Candidate> seeds_;
    std::uint64_t seeded_ = 0;  // settled before anything was sifted
    std::uint64_t found_again_ = 0;
    std::uint64_t weighed_in_ = 0;  // settled by weigh()
    std::vector<Finalist> finalists_;
    std::vector<std::int32_t> scores_;
    std::vector<std::int32_t> ranked_;
    std::vector<std::uint16_t> allowed_blocks_;
};

}  // namespace hiernorm
