// Finds the position of an id. Ids that equal their position (the default 0..n-1) cost nothing;
// others get a hash table of positions, 4 bytes a slot, at most half full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace hiernorm {

class IdTable {
   public:
    using IdAt = std::function<std::int64_t(std::size_t)>;

    // `id_at(position)` tells the id of any position below the size given to append().
    explicit IdTable(IdAt id_at) : id_at_(std::move(id_at)) {}

    std::optional<std::size_t> find(std::int64_t id) const;

    // The first of `ids` that is known already or repeated, if any.
    std::optional<std::int64_t> first_duplicate(const std::int64_t* ids, std::size_t count) const;

    // Takes in the entries at positions size .. size + count - 1, which id_at() knows.
    void append(const std::int64_t* ids, std::size_t count);

    // The entry at `position` is gone: its id is unknown from now on and may be appended again.
    void forget(std::size_t position);

    std::size_t nbytes() const {
        return slots_.size() * sizeof(std::uint32_t) + forgotten_.size() / 8;
    }

   private:
    std::size_t slot_of(std::int64_t id) const;
    bool forgot(std::size_t position) const {
        return position < forgotten_.size() && forgotten_[position];
    }
    void insert(std::size_t position);
    void rebuild(std::size_t entries);

    IdAt id_at_;
    std::size_t size_ = 0;
    bool dense_ = true;
    std::vector<std::uint32_t> slots_;
    std::vector<bool> forgotten_;  // by position; those behind it are known
};

}  // namespace hiernorm
