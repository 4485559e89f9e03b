// Appends entries and their codes; borrows those of a file.
#include "store/store.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "encode/entry.hpp"
#include "encode/exact_query.hpp"
#include "encode/lift.hpp"
#include "kernels/kernels.hpp"
#include "per_thread.hpp"
#include "store/segment_file.hpp"

namespace hiernorm {
namespace {

[[noreturn]] void refuse(const char* what) { throw std::invalid_argument(what); }

bool aligned(const std::uint8_t* codes) {
    return reinterpret_cast<std::uintptr_t>(codes) % kLineBytes == 0;
}

void check_arrays(const SegmentArrays& arrays, const Store& store) {
    if (arrays.entries == 0 || arrays.entries > kMaxEntries) refuse("a segment has no entries");
    if (store.layout() == Layout::kFloatMajors) refuse("this engine searches no segments");
    if (store.layout() != Layout::kCodes) return;
    if (!aligned(arrays.major_codes)) {
        refuse("the major codes of a segment are not aligned to 64 bytes");
    }
    if (arrays.stage_codes.size() != store.encoding().stages.size()) {
        refuse("a segment has not the stages of its encoding");
    }
    if (arrays.tiles.size() != tiles_of(arrays.entries)) {
        refuse("a segment has not one set of norms per tile");
    }
    if (!std::all_of(arrays.cones.begin(), arrays.cones.end(), aligned)) {
        refuse("the cones of a segment are not aligned to 64 bytes");
    }
}

}  // namespace

// A chunk starts as large as what is being added and doubles after that, up to its full size, so
// that one large addition wastes nothing and many small ones stay linear.
Chunk& Store::chunk_with_room(std::size_t position, std::size_t entries) {
    const std::size_t index = position / kChunkEntries;
    if (index == chunks_.size()) chunks_.push_back(std::make_unique<Chunk>());
    Chunk& chunk = *chunks_[index];
    const std::size_t used = position % kChunkEntries;
    const std::size_t have = chunk.ids.capacity();
    const std::size_t need = std::min(kChunkEntries, used + entries);
    if (need <= have) return chunk;
    const std::size_t room =
        round_up(std::min(kChunkEntries, std::max(need, 2 * have)), kBlockEntries);
    chunk.rows.grow(room * dim_);
    chunk.tiles.resize(tiles_of(room));
    if (layout_ == Layout::kCodes) {
        chunk.major_codes.grow_zeroed(room * encoding_.slots());
        if (encoding_.metric == Metric::kCosine) chunk.row_norms.grow(room);
        chunk.stage_codes.resize(encoding_.stages.size());
        for (std::size_t stage = 0; stage < encoding_.stages.size(); ++stage) {
            // Kernels read kStageBytes from the start of any row.
            chunk.stage_codes[stage].grow_zeroed(room * encoding_.stages[stage].bytes +
                                                 kStageBytes);
        }
    } else if (layout_ == Layout::kFloatMajors) {
        chunk.float_majors.grow_zeroed(room * encoding_.major);
    }
    chunk.ids.grow(room);  // last: its capacity tells that the others have grown
    return chunk;
}

void Store::begin(Grouping grouping) {
    cells_.withdraw(size_);
    positions_.resize(std::min(positions_.size(), size_));
    if (!grouping.order.empty()) {
        cells_.plan(encoding_, size_ + grouping.lead, size_ + grouping.order.size());
    }
    order_ = std::move(grouping.order);
}

void Store::number(std::size_t count) {
    if (order_.empty()) return;
    for (std::size_t number = positions_.size(); number < size_; ++number) {
        positions_.push_back(static_cast<std::uint32_t>(number));
    }
    positions_.resize(size_ + count);
    for (std::size_t place = 0; place < count; ++place) {
        positions_[size_ + order_[place]] = static_cast<std::uint32_t>(size_ + place);
    }
}

void Store::publish(std::size_t count) {
    size_ += count;
    cells_.show(size_);
    order_ = {};
}

void Store::write(std::size_t ahead, const float* rows, const std::int64_t* ids,
                  const double* views, std::size_t count, std::size_t more_to_come) {
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t position = size_ + ahead + i;
        if (i == 0 || position % kChunkEntries == 0) {
            chunk_with_room(position, count - i + more_to_come);
        }
        write_entry(position, rows + i * dim_, ids[i],
                    views == nullptr ? nullptr : views + i * dim_);
    }
}

void Store::write_entry(std::size_t position, const float* row, std::int64_t id,
                        const double* view) {
    Chunk& chunk = *chunks_[position / kChunkEntries];
    const std::size_t entry = position % kChunkEntries;
    chunk.ids[entry] = id;
    std::memcpy(chunk.rows.data() + entry * dim_, row, dim_ * sizeof(float));
    if (layout_ == Layout::kRowsOnly) {  // for the flat scan
        const double norm = canonical_norm(active_kernels(), row, dim_);
        double& largest = chunk.tiles[entry / kTileEntries].norm;
        largest = std::max(largest, norm * (1.0 + 0x1p-30));
        return;
    }

    // The rotation came from outside, where denormal float32 may have been flushed to zero.
    double view_error = view == nullptr ? 0.0 : std::sqrt(static_cast<double>(dim_)) * 0x1p-125;
    std::vector<double>& own_view = kept_by_thread<std::vector<double>, Store>();
    if (view == nullptr) {
        own_view.assign(row, row + dim_);
    } else {
        own_view.assign(view, view + dim_);
    }
    if (encoding_.metric == Metric::kCosine) {
        const double norm = canonical_norm(active_kernels(), row, dim_);
        if (layout_ == Layout::kCodes) chunk.row_norms[entry] = norm;
        for (double& value : own_view) value /= norm;
        view_error /= norm;
    } else if (encoding_.metric == Metric::kL2) {
        const double norm = canonical_norm(active_kernels(), row, dim_);
        lift_entry(encoding_, norm * norm, own_view);
    }

    TileNorms norms;
    if (layout_ == Layout::kCodes) {
        std::vector<std::uint8_t*>& stages = kept_by_thread<std::vector<std::uint8_t*>>();
        stages.clear();
        for (Buffer<std::uint8_t>& stage : chunk.stage_codes) stages.push_back(stage.data());
        norms = encode_entry(
            encoding_, own_view.data(), view_error,
            {.major = chunk.major_codes.data() + entry_offset(entry, encoding_.slots()),
             .stages = stages.data(),
             .row = entry});
        cells_.include(position, own_view.data(), norms, view_error);
    } else {
        float* majors = chunk.float_majors.data() +
                        entry / kBlockEntries * kBlockEntries * encoding_.major +
                        entry % kBlockEntries;
        for (std::size_t j = 0; j < encoding_.major; ++j) {
            majors[j * kBlockEntries] = static_cast<float>(own_view[j]);
        }
        norms = measure_entry(encoding_, own_view.data(), view_error);
    }
    chunk.tiles[entry / kTileEntries].include(norms);
    largest_.include(norms);
}

Chunk Store::take_chunk(std::size_t index) {
    if (index >= chunks_.size()) throw std::out_of_range("no such chunk was written");
    return std::exchange(*chunks_[index], Chunk{});
}

void Store::attach(const SegmentArrays& arrays) {
    if (size_ != 0 || !chunks_.empty()) throw std::logic_error("the store is not empty");
    check_arrays(arrays, *this);
    size_ = arrays.entries;
    attached_ = true;
    checks_ = arrays.checks;
    for (std::size_t c = 0; c < chunks(); ++c) {
        const std::size_t first = c * kChunkEntries;
        const std::size_t entries = chunk_entries(c);
        auto chunk = std::make_unique<Chunk>();
        chunk->ids = Buffer<std::int64_t>::borrow(arrays.ids + first, entries);
        chunk->rows = Buffer<float>::borrow(arrays.rows + first * dim_, entries * dim_);
        if (layout_ == Layout::kCodes) {
            const std::size_t slots = encoding_.slots();
            chunk->major_codes = Buffer<std::uint8_t>::borrow(
                arrays.major_codes + first * slots, blocks_of(entries) * kBlockEntries * slots);
            for (std::size_t stage = 0; stage < encoding_.stages.size(); ++stage) {
                const std::size_t bytes = encoding_.stages[stage].bytes;
                chunk->stage_codes.push_back(Buffer<std::uint8_t>::borrow(
                    arrays.stage_codes[stage] + first * bytes, entries * bytes));
            }
            const auto tile =
                arrays.tiles.begin() + static_cast<std::ptrdiff_t>(first / kTileEntries);
            chunk->tiles.assign(tile, tile + static_cast<std::ptrdiff_t>(tiles_of(entries)));
        }
        chunks_.push_back(std::move(chunk));
    }
    for (const TileNorms& tile : arrays.tiles) largest_.include(tile);
    if (arrays.has_cones()) cells_.borrow(encoding_, arrays.cones, arrays.cone_norms, size_);
}

std::size_t Store::nbytes() const {
    std::size_t total = encoding_.rotation.size() * sizeof(float) + cells_.nbytes() +
                        positions_.capacity() * sizeof(std::uint32_t);
    for (const auto& chunk : chunks_) {
        total += chunk->ids.nbytes() + chunk->rows.nbytes() + chunk->major_codes.nbytes() +
                 chunk->float_majors.nbytes() + chunk->row_norms.nbytes() + chunk->tiles.size() * sizeof(TileNorms);
        for (const Buffer<std::uint8_t>& stage : chunk->stage_codes) total += stage.nbytes();
    }
    return total;
}

}  // namespace hiernorm
