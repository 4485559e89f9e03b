// Draws the cones while entries are written.
#include "cells/cells.hpp"

#include <algorithm>
#include <cmath>

#include "encode/rounding.hpp"

namespace hiernorm {
namespace {

// Of the iteration that narrows a cone: the lowest level rules out most.
constexpr std::array<std::size_t, kConeLevels> kRounds = {40, 20, 12};

constexpr std::size_t kUnderWay = entries_per_cone(kConeLevels - 1);
static_assert(kChunkEntries % kUnderWay == 0);

// Writes the codes of a cone into its place among `blocks`.
void write_cone(const ConeLayout& layout, const std::int8_t* codes, std::size_t cone,
                std::uint8_t* blocks) {
    std::uint8_t* first = blocks + cone / kBlockEntries * kBlockEntries * layout.slots() +
                          cone % kBlockEntries * kGroupSlots;
    for (std::size_t slot = 0; slot < layout.slots(); ++slot) {
        first[slot_offset(slot)] = static_cast<std::uint8_t>(codes[slot] + kCodeOffset);
    }
}

}  // namespace

ConeLayout cone_layout(const Encoding& encoding) {
    return {encoding.major + (encoding.entry_tails ? 1 : 0)};
}

std::size_t cone_bytes(const ConeLayout& layout, std::size_t level, std::size_t entries) {
    const std::size_t in_block = entries_per_cone(level + 1);
    return (entries + in_block - 1) / in_block * kBlockEntries * layout.slots();
}

void Cells::plan(const Encoding& encoding, std::size_t first, std::size_t end) {
    major_ = encoding.major;
    entry_tails_ = encoding.entry_tails;
    layout_ = cone_layout(encoding);
    planned_ = {first, std::max(first, end / kBlockEntries * kBlockEntries)};
    if (planned_.end == planned_.first) return;
    units_.assign(kUnderWay * layout_.dims, 0.0f);
    for (std::size_t c = first / kChunkEntries; c * kChunkEntries < planned_.end; ++c) add_chunk(c);
    closed_.push_back(planned_);
}

void Cells::add_chunk(std::size_t index) {
    if (chunks_.size() <= index) chunks_.resize(index + 1);
    if (chunks_[index] != nullptr) return;
    auto cones = std::make_unique<ChunkCones>();
    std::vector<std::int8_t> open(layout_.slots());
    open_cone(layout_, open.data());
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        (*cones)[level].grow_zeroed(kChunkEntries / entries_per_cone(level) * layout_.slots());
    }
    chunks_[index] = std::move(cones);
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        const std::size_t count = kChunkEntries / entries_per_cone(level);
        for (std::size_t cone = 0; cone < count; ++cone) {
            store(level, index * count + cone, open.data());
        }
    }
}

void Cells::store(std::size_t level, std::size_t cone, const std::int8_t* codes) {
    const std::size_t count = kChunkEntries / entries_per_cone(level);
    write_cone(layout_, codes, cone % count, (*chunks_[cone / count])[level].data());
}

void Cells::include(std::size_t position, const double* view, const TileNorms& norms,
                    double view_error) {
    if (position < planned_.first || position >= planned_.end) return;
    double squares = 0.0;
    for (std::size_t j = 0; j < major_; ++j) squares += view[j] * view[j];
    if (entry_tails_) squares += norms.tail * norms.tail;
    const double norm = std::sqrt(squares);
    norms_.norm = std::max(norms_.norm, norm * kRoundUp);
    norms_.tail = std::max(norms_.tail, norms.tail);
    norms_.view_error = std::max(norms_.view_error, view_error);

    const std::size_t place = position % kUnderWay;
    float* unit = units_.data() + place / kBlockEntries * kBlockEntries * layout_.dims +
                  place % kBlockEntries;
    for (std::size_t j = 0; j < layout_.dims; ++j) {
        const double value = j < major_ ? view[j] : norms.tail;
        if (norm > 0.0) {
            unit[j * kBlockEntries] = static_cast<float>(value / norm);
        } else if (place % kBlockEntries != 0) {
            unit[j * kBlockEntries] = unit[j * kBlockEntries - 1];  // zero lies in every cone
        }
    }
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        const std::size_t entries = entries_per_cone(level);
        if ((position + 1) % entries == 0 && position + 1 >= planned_.first + entries) {
            close(level, position + 1);
        }
    }
}

// Draws the cone around the entries of the level that end here.
void Cells::close(std::size_t level, std::size_t end) {
    const std::size_t entries = entries_per_cone(level);
    const std::size_t first = (end - entries) % kUnderWay;
    std::vector<std::int8_t> codes(layout_.slots());
    enclose(layout_, units_.data() + first * layout_.dims, entries / kBlockEntries, kRounds[level],
            codes.data());
    store(level, end / entries - 1, codes.data());
}

void Cells::withdraw(std::size_t entries) {
    planned_ = {};
    if (closed_.empty() || closed_.back().first < entries) return;
    std::vector<std::int8_t> open(layout_.slots());
    open_cone(layout_, open.data());
    const Range range = closed_.back();
    for (std::size_t level = 0; level < kConeLevels; ++level) {
        const std::size_t per_cone = entries_per_cone(level);
        const std::size_t end = (range.end + per_cone - 1) / per_cone;
        for (std::size_t cone = range.first / per_cone; cone < end; ++cone) {
            store(level, cone, open.data());
        }
    }
    closed_.pop_back();
}

void Cells::show(std::size_t entries) {
    grouped_ = 0;
    for (const Range& range : closed_) {
        if (range.end <= entries) grouped_ += range.end - range.first;
    }
    planned_ = {};
    units_ = {};
}

void Cells::copy_cones(std::size_t level, std::size_t entries, std::uint8_t* out) const {
    const std::size_t in_chunk = cone_bytes(layout_, level, kChunkEntries);
    const std::size_t bytes = cone_bytes(layout_, level, entries);
    std::vector<std::int8_t> open(layout_.slots());
    open_cone(layout_, open.data());
    for (std::size_t first = 0, c = 0; first < bytes; first += in_chunk, ++c) {
        const std::size_t count = std::min(in_chunk, bytes - first);
        if (chunk(c) != nullptr) {
            std::copy_n((*chunk(c))[level].data(), count, out + first);
            continue;
        }
        const std::size_t block_bytes = kBlockEntries * layout_.slots();
        for (std::size_t block = 0; block < count; block += block_bytes) {
            for (std::size_t cone = 0; cone < kBlockEntries; ++cone) {
                write_cone(layout_, open.data(), cone, out + first + block);
            }
        }
    }
}

void Cells::borrow(const Encoding& encoding, const LevelPointers& cones, const ConeNorms& norms,
                   std::size_t entries) {
    layout_ = cone_layout(encoding);
    norms_ = norms;
    for (std::size_t first = 0; first < entries; first += kChunkEntries) {
        auto borrowed = std::make_unique<ChunkCones>();
        for (std::size_t level = 0; level < kConeLevels; ++level) {
            (*borrowed)[level] = Buffer<std::uint8_t>::borrow(
                cones[level] + cone_bytes(layout_, level, first),
                cone_bytes(layout_, level, std::min(kChunkEntries, entries - first)));
        }
        chunks_.push_back(std::move(borrowed));
    }
    closed_.push_back({0, entries / kBlockEntries * kBlockEntries});
    show(entries);
}

std::size_t Cells::nbytes() const {
    std::size_t total = units_.capacity() * sizeof(float);
    for (const auto& chunk : chunks_) {
        if (chunk == nullptr) continue;
        for (const Buffer<std::uint8_t>& level : *chunk) total += level.nbytes();
    }
    return total;
}

}  // namespace hiernorm
