// Scans all blocks of a tile, or a list of them.
#include "search/tile_scan.hpp"

#include <algorithm>

namespace hiernorm {
namespace {

// The rows of the first stage, where they are of 64 bytes.
const std::uint8_t* stage_rows(const Encoding& encoding, const Chunk& chunk) {
    if (encoding.stages[0].bytes != kStageBytes) return nullptr;
    return chunk.stage_codes[0].data();
}

// The same from the tile on, and its major codes.
const std::uint8_t* stage_rows_of(const PreparedQuery& query, const Tile& tile) {
    const std::uint8_t* rows = stage_rows(query.encoding(), tile.chunk);
    return rows == nullptr ? nullptr : rows + tile.first * kStageBytes;
}
const std::uint8_t* codes_of(const PreparedQuery& query, const Tile& tile) {
    return tile.chunk.major_codes.data() + tile.first * query.encoding().slots();
}

}  // namespace

std::size_t TileScan::scan(PreparedQuery& query, CellSkipper& cells, const Tile& tile,
                           Candidate* out) {
    switch (blocks_) {
        case Blocks::kListed: return query.mask().keep(out, scan_listed(query, cells, tile, out));
        case Blocks::kAllowed: return query.mask().keep(out, scan_allowed(query, tile, out));
        case Blocks::kAll: break;
    }
    return scan_all(query, tile, out);
}

std::size_t TileScan::scan_all(PreparedQuery& query, const Tile& tile, Candidate* out) {
    // Exact search need not know the largest score it skips: the cut bounds it, and what the cut
    // proves is below the threshold. Soft mode must know.
    const std::int32_t cut = query.cut(tile.norms);
    std::int32_t skipped = kNoScore;
    const std::uint8_t* codes = codes_of(query, tile);
    query.store().require_major_codes(codes, tile.entries);
    const std::size_t count = query.kernels().scan_u8i8(
        codes, tile.entries, query.codes().scan(), cut, tile.position, stage_rows_of(query, tile),
        out, query.soft() ? &skipped : nullptr);
    query.stats().scanned += tile.entries;
    if (count < tile.entries) query.skip_scores(query.soft() ? skipped : cut, tile.norms);
    return count;
}

std::size_t TileScan::scan_soft(PreparedQuery& query, CellSkipper& cells, const Seeding& seeding,
                                const Tile& tile, Candidate* out) {
    if (blocks_ == Blocks::kAll && !seeding.has_seeds(tile.position, tile.entries)) {
        return scan_all(query, tile, out);
    }
    const std::size_t slots = query.encoding().slots(), end = tile.first + tile.entries;
    query.workspace().scores.grow_geometrically(round_up(tile.entries, kBlockEntries));
    std::int32_t* const scores = query.workspace().scores.data();
    std::size_t found = 0;
    const auto scan_entries = [&](std::size_t first, std::size_t entries) {
        const auto position = tile.position + static_cast<std::uint32_t>(first - tile.first);
        if (query.mask().count(position, entries) == 0) return;
        const std::uint8_t* codes = tile.chunk.major_codes.data() + first * slots;
        query.store().require_major_codes(codes, entries);
        query.kernels().score_u8i8(codes, entries, query.codes().scan(), scores);
        query.stats().scanned += entries;
        query.mask().hide(scores, position, entries, kNoScore);
        seeding.hide_seeds(scores, position, entries);
        std::int32_t skipped = kNoScore;
        found += query.kernels().sift_i32(scores, entries, query.cut(tile.norms), position,
                                          out + found, &skipped);
        query.skip_scores(skipped, tile.norms);
    };
    if (blocks_ != Blocks::kListed) {
        scan_entries(tile.first, tile.entries);
        return found;
    }
    for (const std::size_t block : cells.blocks_before(end)) {
        const std::size_t first = block * kBlockEntries;
        scan_entries(first, std::min(kBlockEntries, end - first));
    }
    return found;
}

void scan_together(std::span<PreparedQuery* const> queries, const Tile& tile,
                   std::span<Candidate* const> outs, std::span<std::size_t> counts) {
    ScanQuery codes[kSharedQueries];
    std::int32_t cuts[kSharedQueries];
    for (std::size_t i = 0; i < queries.size(); ++i) {
        codes[i] = queries[i]->codes().scan();
        cuts[i] = queries[i]->cut(tile.norms);
    }
    PreparedQuery& first = *queries[0];
    const std::uint8_t* major_codes = codes_of(first, tile);
    first.store().require_major_codes(major_codes, tile.entries);
    first.kernels().scan_shared_u8i8(major_codes, tile.entries, codes, queries.size(), cuts,
                                     tile.position, stage_rows_of(first, tile), outs.data(),
                                     counts.data());
    for (std::size_t i = 0; i < queries.size(); ++i) {
        queries[i]->stats().scanned += tile.entries;
        if (counts[i] < tile.entries) queries[i]->skip_scores(cuts[i], tile.norms);
    }
}

// Reads the blocks only that hold an entry which may be returned, where they are few.
std::size_t TileScan::scan_allowed(PreparedQuery& query, const Tile& tile, Candidate* out) {
    Buffer<std::uint16_t>& allowed = query.workspace().allowed_blocks;
    allowed.grow_geometrically(kTileEntries / kBlockEntries);
    const std::size_t blocks = query.mask().blocks(tile.position, tile.entries,
                                                   tile.first / kBlockEntries, allowed.data());
    if (blocks == 0) return 0;
    if (blocks * kBlockEntries >= tile.entries / 2) return scan_all(query, tile, out);
    return scan_blocks(query, tile, {allowed.data(), blocks}, blocks, out);
}

std::size_t TileScan::scan_listed(PreparedQuery& query, CellSkipper& cells, const Tile& tile,
                                  Candidate* out) {
    std::size_t listed = cells.blocks_left();
    std::span<const std::uint16_t> list = cells.blocks_before(tile.first + tile.entries);
    if (!query.mask().all()) {
        Buffer<std::uint16_t>& allowed = query.workspace().allowed_blocks;
        allowed.grow_geometrically(kTileEntries / kBlockEntries);
        listed = query.mask().keep_blocks(tile.position - tile.first, list, allowed.data());
        list = {allowed.data(), listed};
    }
    return list.empty() ? 0 : scan_blocks(query, tile, list, listed, out);
}

// Scans the blocks of `list`; behind them it goes on to `listed` blocks with those of later tiles.
std::size_t TileScan::scan_blocks(PreparedQuery& query, const Tile& tile,
                                  std::span<const std::uint16_t> list, std::size_t listed,
                                  Candidate* out) {
    const Kernels& kernels = query.kernels();
    const ScanQuery& codes = query.codes().scan();
    const std::size_t end = tile.first + tile.entries;
    // Behind the last entry of the store a block is not whole.
    const bool partial = (list.back() + std::size_t{1}) * kBlockEntries > end;
    if (partial) list = list.first(list.size() - 1);
    const std::size_t rest = partial ? end % kBlockEntries : 0;
    const std::uint8_t* major_codes = tile.chunk.major_codes.data();
    const std::size_t slots = query.encoding().slots();
    query.store().require_major_codes(major_codes, list);
    const auto position = tile.position - static_cast<std::uint32_t>(tile.first);
    const std::int32_t cut = query.cut(tile.norms);
    std::size_t count =
        kernels.scan_list_u8i8(major_codes, list.data(), list.size(), listed, codes, cut, position,
                               stage_rows(query.encoding(), tile.chunk), out);
    if (partial) {
        const std::size_t whole = end - rest;
        query.store().require_major_codes(major_codes + whole * slots, rest);
        count += kernels.scan_u8i8(major_codes + whole * slots, rest, codes, cut,
                                   position + static_cast<std::uint32_t>(whole), nullptr,
                                   out + count, nullptr);
    }
    const std::size_t scanned = list.size() * kBlockEntries + rest;
    query.stats().scanned += scanned;
    if (count < scanned) query.skip_scores(cut, tile.norms);
    return count;
}

}  // namespace hiernorm
