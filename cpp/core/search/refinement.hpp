// The steps behind the scan, for the candidates of one query: sift, tighten, weigh, settle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "search/prepared_query.hpp"
#include "search/seeding.hpp"

namespace hiernorm {

class Refinement {
   public:
    void begin();

    // Sift: keeps the candidates of one tile that the present threshold leaves, and takes back what
    // their tails added to their scores. The scan found them under the threshold `scanned_at`.
    // Overwrites the candidates.
    std::span<Candidate> sift(PreparedQuery& query, const Chunk& chunk, const TileNorms& norms,
                              double scanned_at, std::span<Candidate> candidates);

    // Tighten: rules out candidates by the codes of their minors, stage by stage.
    void tighten(PreparedQuery& query, const Chunk& chunk, const TileNorms& norms,
                 std::span<const Candidate> candidates);

    // Weigh: where the major is a prefix of the row, its exact product replaces that of the codes.
    // What is certain to raise the threshold is settled at once; the others become finalists.
    void weigh(PreparedQuery& query, const Seeding& seeding, const Chunk& chunk,
               const TileNorms& norms);

    // Settle: the finalists, best bound first, until no bound reaches the threshold.
    void settle(PreparedQuery& query, const Seeding& seeding);

   private:
    struct Finalist {
        std::uint32_t position;
        double bound;
    };

    std::size_t left_ = 0;  // contenders of the tile under way, in the workspace
    bool minor_read_ = false;
    std::uint64_t found_again_ = 0;  // seeds, by the scan
    std::uint64_t weighed_in_ = 0;   // settled by weigh()
    std::vector<Finalist> finalists_;
};

}  // namespace hiernorm
