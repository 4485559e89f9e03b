// Open addressing with linear probing over positions.
#include "store/ids.hpp"

#include <limits>
#include <unordered_set>

namespace hiernorm {
namespace {

constexpr std::uint32_t kEmpty = std::numeric_limits<std::uint32_t>::max();

bool continues(std::size_t size, const std::int64_t* ids, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (ids[i] != static_cast<std::int64_t>(size + i)) return false;
    }
    return true;
}

}  // namespace

std::size_t IdTable::slot_of(std::int64_t id) const {
    // Fibonacci hashing: consecutive ids spread over the table.
    const std::uint64_t hash = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15ull;
    std::size_t slot = static_cast<std::size_t>(hash ^ (hash >> 32)) & (slots_.size() - 1);
    while (slots_[slot] != kEmpty && (forgot(slots_[slot]) || id_at_(slots_[slot]) != id)) {
        slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
}

std::optional<std::size_t> IdTable::find(std::int64_t id) const {
    if (dense_) {
        if (id < 0 || static_cast<std::uint64_t>(id) >= size_) return std::nullopt;
        return static_cast<std::size_t>(id);
    }
    const std::uint32_t position = slots_[slot_of(id)];
    if (position == kEmpty) return std::nullopt;
    return position;
}

std::optional<std::int64_t> IdTable::first_duplicate(const std::int64_t* ids,
                                                     std::size_t count) const {
    if (dense_ && continues(size_, ids, count)) return std::nullopt;
    std::unordered_set<std::int64_t> seen;
    seen.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        if (!seen.insert(ids[i]).second || find(ids[i]).has_value()) return ids[i];
    }
    return std::nullopt;
}

void IdTable::append(const std::int64_t* ids, std::size_t count) {
    const bool still_dense = dense_ && continues(size_, ids, count);
    if (still_dense) {
        size_ += count;
        return;
    }
    if (dense_ || 2 * (size_ + count) > slots_.size()) rebuild(size_ + count);
    dense_ = false;
    for (std::size_t i = 0; i < count; ++i) insert(size_ + i);
    size_ += count;
}

void IdTable::forget(std::size_t position) {
    if (dense_) {
        rebuild(size_);
        dense_ = false;
    }
    if (position >= forgotten_.size()) forgotten_.resize(size_);
    forgotten_[position] = true;  // its slot stays taken, so that a search goes on behind it
}

void IdTable::insert(std::size_t position) {
    slots_[slot_of(id_at_(position))] = static_cast<std::uint32_t>(position);
}

void IdTable::rebuild(std::size_t entries) {
    std::size_t slots = 16;
    while (slots < 2 * entries) slots *= 2;
    std::vector<std::uint32_t>(slots, kEmpty).swap(slots_);
    for (std::size_t position = 0; position < size_; ++position) {
        if (!forgot(position)) insert(position);
    }
}

}  // namespace hiernorm
