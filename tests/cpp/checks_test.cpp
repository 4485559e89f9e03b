// Checksums of blocks: the standard's values on every family, damage that is met and damage that is
// not, and look-ups in a sorted table.
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "kernels/kernels.hpp"
#include "store/block_checks.hpp"
#include "store/id_lookup.hpp"

namespace hiernorm::testing {
namespace {

constexpr std::size_t kBytes = 64;

std::vector<std::uint32_t> checksums_of(std::span<const std::byte> data) {
    std::vector<std::uint32_t> checksums;
    for (std::size_t first = 0; first < data.size(); first += kBytes) {
        const std::size_t count = std::min(kBytes, data.size() - first);
        checksums.push_back(active_kernels().crc32c(0, data.data() + first, count));
    }
    return checksums;
}

std::vector<std::byte> some_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * i % 251);
    return bytes;
}

}  // namespace

TEST(crc32c_has_the_values_of_its_standard_in_every_family) {
    const std::string_view digits = "123456789";
    for (const Kernels* kernels : available_kernels()) {
        const Context context(kernels->name);
        const auto* data = reinterpret_cast<const std::byte*>(digits.data());
        CHECK_EQUAL(kernels->crc32c(0, data, 9), 0xE3069283u);
        for (std::size_t split = 0; split <= 9; ++split) {
            const std::uint32_t first = kernels->crc32c(0, data, split);
            CHECK_EQUAL(kernels->crc32c(first, data + split, 9 - split), 0xE3069283u);
        }
        const std::vector<std::byte> bytes = some_bytes(1000);
        CHECK_EQUAL(kernels->crc32c(0, bytes.data(), bytes.size()),
                    available_kernels()[0]->crc32c(0, bytes.data(), bytes.size()));
    }
}

TEST(a_damaged_block_is_met_by_those_who_read_it_and_by_nobody_else) {
    std::vector<std::byte> data = some_bytes(5 * kBytes + 7);
    const std::vector<std::uint32_t> checksums = checksums_of(data);
    for (std::size_t at = 0; at < data.size(); at += 13) {
        data[at] ^= std::byte{16};
        const BlockChecks checks(data, checksums, kBytes);
        const std::size_t damaged = at / kBytes;
        for (std::size_t first = 0; first < data.size(); first += 5) {
            const std::size_t count = std::min<std::size_t>(30, data.size() - first);
            const bool meets = first / kBytes <= damaged && damaged <= (first + count - 1) / kBytes;
            const auto read = [&] { checks.require(data.data() + first, count); };
            if (meets) {
                check_throws<DamagedBlock>(read, "not what was written");
                CHECK_EQUAL(*checks.found(), damaged);
            } else {
                read();
                CHECK(checks.knows(data.data() + first, count));
            }
        }
        CHECK(!checks.knows(data.data(), data.size()));
        CHECK_EQUAL(checks.damaged().size(), std::size_t{1});
        data[at] ^= std::byte{16};
        CHECK(checks.damaged().empty());
        checks.require_all();
        CHECK(checks.knows(data.data(), data.size()));
    }
}

TEST(checksums_that_do_not_fit_the_data_are_refused) {
    const std::vector<std::byte> data = some_bytes(3 * kBytes);
    std::vector<std::uint32_t> checksums = checksums_of(data);
    check_throws<std::invalid_argument>([&] { BlockChecks(data, checksums, 48); }, "2^n bytes");
    checksums.push_back(0);
    check_throws<std::invalid_argument>([&] { BlockChecks(data, checksums, kBytes); },
                                        "4 checksums for 3 blocks");
}

TEST(ids_are_found_in_a_sorted_table_and_others_are_not) {
    const std::vector<std::int64_t> ids{2, 3, 5, 8, 13, 21};
    const std::vector<std::uint32_t> positions{5, 0, 1, 4, 2, 3};
    const IdLookup table{ids, positions};
    for (std::int64_t id = 0; id < 30; ++id) {
        const auto found = std::find(ids.begin(), ids.end(), id);
        const auto at = static_cast<std::size_t>(found - ids.begin());
        const std::int64_t expected = found == ids.end() ? std::int64_t{-1} : positions[at];
        CHECK_EQUAL(table.find(id), expected);
    }
    const IdLookup nothing{{}, {}};
    CHECK_EQUAL(nothing.find(1), -1);
}

}  // namespace hiernorm::testing
