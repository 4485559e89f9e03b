// Checksums of blocks: computed for a file that is written, compared for one that is mapped.
#include "store/block_checks.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "kernels/kernels.hpp"
#include "store/id_lookup.hpp"

using namespace nanobind::literals;

namespace hiernorm {
namespace {

using Bytes = Vector<std::uint8_t>;

std::span<const std::byte> bytes_of(const Bytes& data) {
    return std::as_bytes(std::span(data.data(), data.size()));
}

std::uint32_t crc32c(const Bytes& data, std::uint32_t crc) {
    const LongWork work;
    return active_kernels().crc32c(crc, bytes_of(data).data(), data.size());
}

// Checks `item_bytes` at each of the positions of a tensor.
void require_items(const BlockChecks& checks, const Vector<std::int64_t>& positions,
                   std::size_t item_bytes) {
    const LongWork work;
    const std::span<const std::byte> data = checks.data();
    const std::size_t items = data.size() / item_bytes;
    for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto at = static_cast<std::uint64_t>(positions.data()[i]);
        if (at >= items) throw std::invalid_argument("no such position in the tensor");
        checks.require(data.data() + at * item_bytes, item_bytes);
    }
}

nb::object find_ids(const Vector<std::int64_t>& sorted_ids,
                    const Vector<std::uint32_t>& sorted_positions,
                    const Vector<std::int64_t>& wanted, const BlockChecks* id_checks,
                    const BlockChecks* position_checks) {
    if (sorted_ids.size() != sorted_positions.size()) {
        throw std::invalid_argument("one position per id");
    }
    NewArray<std::int64_t, 1> found(wanted.size());
    {
        const LongWork work;
        const IdLookup table{{sorted_ids.data(), sorted_ids.size()},
                             {sorted_positions.data(), sorted_positions.size()},
                             id_checks,
                             position_checks};
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            found.data()[i] = table.find(wanted.data()[i]);
        }
    }
    return found.to_python();
}

}  // namespace

void bind_checks(nb::module_& m) {
    nb::exception<DamagedBlock>(m, "DamagedBlockError", PyExc_RuntimeError);
    nb::class_<BlockChecks>(m, "BlockChecks")
        .def(
            "__init__",
            [](BlockChecks* self, const Bytes& data, const Vector<std::uint32_t>& checksums,
               std::size_t block_bytes) {
                new (self) BlockChecks(bytes_of(data), {checksums.data(), checksums.size()},
                                       block_bytes);
            },
            nb::keep_alive<1, 2>(), "data"_a, "checksums"_a, "block_bytes"_a)
        .def("require_all", &BlockChecks::require_all, nb::call_guard<nb::gil_scoped_release>())
        .def("require_items", &require_items, "positions"_a, "item_bytes"_a)
        .def("damaged", &BlockChecks::damaged, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("found", &BlockChecks::found);
    m.def("crc32c", &crc32c, "data"_a, "crc"_a = 0);
    m.def("find_ids", &find_ids, "sorted_ids"_a, "sorted_positions"_a, "wanted"_a,
          "id_checks"_a.none(), "position_checks"_a.none());
}

}  // namespace hiernorm
