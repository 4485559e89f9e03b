// Kernels, layout and encodings.
#include "encode/encoding.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "cells/grouping.hpp"
#include "kernels/kernels.hpp"
#include "store/segment_file.hpp"

using namespace nanobind::literals;

namespace hiernorm {
namespace {

nb::str text(std::string_view value) { return nb::str(value.data(), value.size()); }

nb::tuple available_isas() {
    nb::list names;
    for (const Kernels* kernels : available_kernels()) names.append(text(kernels->name));
    return nb::tuple(names);
}

// (name, dtype, shape, bytes readable beyond) of every tensor, in the order of the file.
nb::list tensors_of_segment(std::size_t dim, std::size_t entries, const Encoding* encoding,
                            bool cones) {
    nb::list found;
    for (const TensorLayout& tensor : segment_tensors(dim, entries, encoding, cones)) {
        nb::list shape;
        for (const std::size_t extent : tensor.shape) shape.append(extent);
        found.append(
            nb::make_tuple(tensor.name, text(tensor.dtype), nb::tuple(shape), tensor.beyond));
    }
    return found;
}

void take_rotation(Encoding& encoding, const std::optional<Matrix<float>>& rotation) {
    if (rotation) encoding.rotation.assign(rotation->data(), rotation->data() + rotation->size());
}

// The encoding for `sample` views; its steps are chosen here.
Encoding choose(std::size_t dim, std::size_t major, const std::string& metric,
                const Matrix<double>& sample, double headroom,
                const std::optional<Matrix<float>>& rotation, double rotation_error,
                const nb::tuple& lift) {
    Encoding encoding;
    encoding.metric = metric_named(metric);
    encoding.dim = dim + encoding.lift_dims();
    encoding.major = major + encoding.lift_dims();
    encoding.centre = nb::cast<double>(lift[0]);
    encoding.weight = nb::cast<double>(lift[1]);
    encoding.base_norm = nb::cast<double>(lift[2]);
    take_rotation(encoding, rotation);
    encoding.rotation_error = rotation_error;
    {
        const LongWork work;
        encoding.choose_steps(sample.data(), sample.shape(0), headroom);
    }
    encoding.check(dim);
    encoding.lay_out_stages();
    return encoding;
}

nb::dict state(const Encoding& encoding) {
    nb::dict state;
    state["dim"] = encoding.dim;
    state["major"] = encoding.major;
    state["metric"] = text(name_of(encoding.metric));
    state["entry_tails"] = encoding.entry_tails;
    state["major_step"] = encoding.major_step;
    state["minor_step"] = encoding.minor_step;
    state["tail_step"] = encoding.tail_step;
    state["rotation_error"] = encoding.rotation_error;
    state["centre"] = encoding.centre;
    state["weight"] = encoding.weight;
    state["base_norm"] = encoding.base_norm;
    return state;
}

Encoding restore(std::size_t dim, const nb::dict& state,
                 const std::optional<Matrix<float>>& rotation) {
    Encoding encoding;
    encoding.dim = nb::cast<std::size_t>(state["dim"]);
    encoding.major = nb::cast<std::size_t>(state["major"]);
    encoding.metric = metric_named(nb::cast<std::string>(state["metric"]));
    encoding.entry_tails = nb::cast<bool>(state["entry_tails"]);
    encoding.major_step = nb::cast<double>(state["major_step"]);
    encoding.minor_step = nb::cast<double>(state["minor_step"]);
    encoding.tail_step = nb::cast<double>(state["tail_step"]);
    encoding.rotation_error = nb::cast<double>(state["rotation_error"]);
    encoding.centre = nb::cast<double>(state["centre"]);
    encoding.weight = nb::cast<double>(state["weight"]);
    encoding.base_norm = nb::cast<double>(state["base_norm"]);
    take_rotation(encoding, rotation);
    encoding.check(dim);
    encoding.lay_out_stages();
    return encoding;
}

nb::object rotation_of(const Encoding& encoding) {
    if (!encoding.rotated()) return nb::none();
    NewArray<float, 2> rotation(encoding.row_dim(), encoding.row_dim());
    std::copy(encoding.rotation.begin(), encoding.rotation.end(), rotation.data());
    return rotation.to_python();
}

}  // namespace

void bind_kernels(nb::module_& m) {
    m.def("isa", [] { return text(active_kernels().name); });
    m.def("available_isas", &available_isas);
    m.def("use_isa", [](const std::string& name) { use_kernels(name); }, "name"_a);
}

void bind_layout(nb::module_& m) {
    m.attr("BLOCK_ENTRIES") = kBlockEntries;
    m.attr("TILE_ENTRIES") = kTileEntries;
    m.attr("RANGE_ENTRIES") = kRangeEntries;
    m.attr("CHUNK_ENTRIES") = kChunkEntries;
    m.attr("GROUP_SLOTS") = kGroupSlots;
    m.attr("STAGE_BYTES") = kStageBytes;
    m.attr("LANES") = kLanes;
    m.attr("LEAST_GROUPED") = kLeastGrouped;
    m.def("segment_tensors", &tensors_of_segment, "dim"_a, "entries"_a, "encoding"_a.none(),
          "cones"_a);
}

void bind_encoding(nb::module_& m) {
    nb::class_<Encoding>(m, "Encoding")
        .def_static("choose", &choose, "dim"_a, "major"_a, "metric"_a, "sample"_a, "headroom"_a,
                    "rotation"_a.none(), "rotation_error"_a, "lift"_a)
        .def_static("restore", &restore, "dim"_a, "state"_a, "rotation"_a.none())
        .def_prop_ro("major", [](const Encoding& self) { return self.major - self.lift_dims(); })
        .def_ro("rotation_error", &Encoding::rotation_error)
        .def("state", &state)
        .def("rotation", &rotation_of);
}

}  // namespace hiernorm
