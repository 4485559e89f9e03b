// Looks up ids in the sorted table of a segment file; reads, and checks, only what it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "store/block_checks.hpp"

namespace hiernorm {

struct IdLookup {
    std::span<const std::int64_t> ids;  // ascending
    std::span<const std::uint32_t> positions;
    const BlockChecks* id_checks = nullptr;  // null: not checked
    const BlockChecks* position_checks = nullptr;

    // The position of an entry, or -1.
    std::int64_t find(std::int64_t id) const {
        std::size_t first = 0, last = ids.size();
        while (first < last) {
            const std::size_t middle = first + (last - first) / 2;
            if (id_checks != nullptr) id_checks->require(&ids[middle], sizeof(id));
            if (ids[middle] == id) return position(middle);
            if (ids[middle] < id) {
                first = middle + 1;
            } else {
                last = middle;
            }
        }
        return -1;
    }

   private:
    std::int64_t position(std::size_t at) const {
        if (position_checks != nullptr) {
            position_checks->require(&positions[at], sizeof(std::uint32_t));
        }
        return positions[at];
    }
};

}  // namespace hiernorm
