// The Python module hiernorm._core: arrays in, arrays out; no logic of its own.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"
#include "index.hpp"
#include "segments_binding.hpp"

using namespace nanobind::literals;

namespace hiernorm {
namespace {

Metric metric_called(const std::string& name) {
    return name == "l2" ? Metric::kL2 : name == "cosine" ? Metric::kCosine : Metric::kInnerProduct;
}

const char* name_of(Metric metric) {
    return metric == Metric::kL2 ? "l2" : metric == Metric::kCosine ? "cosine" : "ip";
}

Settings make_settings(std::size_t dim, const std::string& metric, const std::string& engine,
                       double alpha, std::optional<bool> cells) {
    Settings settings;
    settings.dim = dim;
    settings.metric = metric_called(metric);
    settings.engine = engine == "cascade" ? EngineKind::kCascade
                      : engine == "paper" ? EngineKind::kPaper
                                          : EngineKind::kExhaustive;
    settings.alpha = alpha;
    settings.cells = !cells ? CellUse::kWhereItPays : *cells ? CellUse::kAlways : CellUse::kNever;
    return settings;
}

// The fit for `sample` views; its steps are chosen here.
Fit make_fit(std::size_t dim, std::size_t major, const std::string& metric,
             const Matrix<double>& sample, double headroom, std::optional<Matrix<float>> rotation,
             double rotation_error, const nb::tuple& level) {
    Fit fit;
    fit.metric = metric_called(metric);
    fit.dim = dim + fit.levels();
    fit.major = major + fit.levels();
    fit.centre = nb::cast<double>(level[0]);
    fit.weight = nb::cast<double>(level[1]);
    fit.base_norm = nb::cast<double>(level[2]);
    if (rotation) fit.rotation.assign(rotation->data(), rotation->data() + rotation->size());
    fit.rotation_error = rotation_error;
    choose_steps(fit, sample.data(), sample.shape(0), headroom);
    return fit;
}

nb::dict fit_state(const Fit& fit) {
    nb::dict state;
    state["dim"] = fit.dim;
    state["major"] = fit.major;
    state["metric"] = name_of(fit.metric);
    state["entry_tails"] = fit.entry_tails;
    state["major_step"] = fit.major_step;
    state["minor_step"] = fit.minor_step;
    state["tail_step"] = fit.tail_step;
    state["rotation_error"] = fit.rotation_error;
    state["centre"] = fit.centre;
    state["weight"] = fit.weight;
    state["base_norm"] = fit.base_norm;
    return state;
}

nb::object fit_rotation(const Fit& fit) {
    if (!fit.rotated()) return nb::none();
    NewArray<float, 2> rotation(fit.row_dim(), fit.row_dim());
    std::copy(fit.rotation.begin(), fit.rotation.end(), rotation.data());
    return rotation.to_python();
}

Fit restore_fit(const nb::dict& state, std::optional<Matrix<float>> rotation) {
    Fit fit;
    fit.dim = nb::cast<std::size_t>(state["dim"]);
    fit.major = nb::cast<std::size_t>(state["major"]);
    fit.metric = metric_called(nb::cast<std::string>(state["metric"]));
    fit.entry_tails = nb::cast<bool>(state["entry_tails"]);
    fit.major_step = nb::cast<double>(state["major_step"]);
    fit.minor_step = nb::cast<double>(state["minor_step"]);
    fit.tail_step = nb::cast<double>(state["tail_step"]);
    fit.rotation_error = nb::cast<double>(state["rotation_error"]);
    fit.centre = nb::cast<double>(state["centre"]);
    fit.weight = nb::cast<double>(state["weight"]);
    fit.base_norm = nb::cast<double>(state["base_norm"]);
    if (rotation) fit.rotation.assign(rotation->data(), rotation->data() + rotation->size());
    return fit;
}

void add(Index& index, const Matrix<float>& rows, const Vector<std::int64_t>& ids) {
    const nb::gil_scoped_release release;
    index.add(rows.data(), ids.data(), rows.shape(0));
}

void check(const Index& index, const Matrix<float>& rows, const Vector<std::int64_t>& ids) {
    const nb::gil_scoped_release release;
    index.check(rows.data(), ids.data(), rows.shape(0));
}

// The order in which to write the rows, (n,); none: as they are.
nb::object group(Index& index, const Matrix<float>& rows, const Matrix<float>& majors,
                 const Vector<std::int64_t>& ids) {
    std::vector<std::uint32_t> order;
    {
        const nb::gil_scoped_release release;
        order = index.group(rows.data(), majors.data(), majors.shape(1), ids.data(), ids.shape(0));
    }
    if (order.empty()) return nb::none();
    NewArray<std::uint32_t, 1> out(order.size());
    std::copy(order.begin(), order.end(), out.data());
    return out.to_python();
}

void write_part(Index& index, std::size_t ahead, const Matrix<float>& rows,
                const Vector<std::int64_t>& ids, std::optional<Matrix<double>> views,
                std::size_t more) {
    const nb::gil_scoped_release release;
    index.write(ahead, rows.data(), ids.data(), views ? views->data() : nullptr, rows.shape(0),
                more);
}

void publish(Index& index, const Vector<std::int64_t>& ids) {
    const nb::gil_scoped_release release;
    index.publish(ids.data(), ids.shape(0));
}

nb::tuple search(const Index& index, const Matrix<float>& queries, std::size_t k, double beta,
                 std::size_t threads, std::size_t batch_size) {
    Job job;
    job.k = k;
    job.soft = beta >= 0.0;
    job.beta = beta;
    std::vector<Answer> answers;
    std::size_t entries;
    {
        const nb::gil_scoped_release release;
        entries = index.search(job, queries.data(), queries.shape(0), threads, batch_size, answers);
    }
    return top_k_to_python(answers, k, entries);
}

nb::tuple search_all(const Index& index, const Matrix<float>& queries, std::size_t k,
                     std::size_t threads) {
    Job job;
    job.k = k;
    std::vector<Answer> answers;
    std::size_t entries;
    {
        const nb::gil_scoped_release release;
        entries = index.search_all(job, queries.data(), queries.shape(0), threads, answers);
    }
    return top_k_to_python(answers, k, entries);
}

nb::tuple range(const Index& index, const Matrix<float>& queries, double threshold,
                std::size_t threads) {
    Job job;
    job.range = true;
    job.threshold = threshold;
    std::vector<Answer> answers;
    std::size_t entries;
    {
        const nb::gil_scoped_release release;
        entries = index.search(job, queries.data(), queries.shape(0), threads, 0, answers);
    }
    return range_to_python(answers, entries);
}

nb::object reconstruct(const Index& index, const Vector<std::int64_t>& ids) {
    NewArray<float, 2> rows(ids.shape(0), index.settings().dim);
    try {
        index.reconstruct(ids.data(), ids.shape(0), rows.data());
    } catch (const std::out_of_range& unknown) {
        throw nb::key_error(unknown.what());
    }
    return rows.to_python();
}

nb::tuple entries(const Index& index, std::size_t first, std::size_t count) {
    NewArray<std::int64_t, 1> ids(count);
    NewArray<float, 2> rows(count, index.settings().dim);
    index.copy_entries(first, count, ids.data(), rows.data());
    return nb::make_tuple(ids.to_python(), rows.to_python());
}

nb::tuple available_isas() {
    nb::list names;
    for (const Kernels* kernels : available_kernels()) {
        names.append(nb::str(kernels->name.data(), kernels->name.size()));
    }
    return nb::tuple(names);
}

}  // namespace
}  // namespace hiernorm

NB_MODULE(_core, m) {
    using namespace hiernorm;
    m.def("isa", [] { return std::string(active_kernels().name); });
    m.def("available_isas", &available_isas);
    m.def("use_isa", [](const std::string& name) { use_kernels(name); }, "name"_a);

    nb::class_<Fit>(m, "Fit")
        .def_static("choose", &make_fit, "dim"_a, "major"_a, "metric"_a, "sample"_a, "headroom"_a,
                    "rotation"_a.none(), "rotation_error"_a, "level"_a)
        .def_static("restore", &restore_fit, "state"_a, "rotation"_a.none())
        .def_prop_ro("major", [](const Fit& fit) { return fit.major - fit.levels(); })
        .def_prop_ro(
            "level",
            [](const Fit& fit) { return nb::make_tuple(fit.centre, fit.weight, fit.base_norm); })
        .def_ro("entry_tails", &Fit::entry_tails)
        .def_ro("rotation_error", &Fit::rotation_error)
        .def("state", &fit_state)
        .def("rotation", &fit_rotation);

    nb::class_<Index>(m, "Index")
        .def(
            "__init__",
            [](Index* self, std::size_t dim, const std::string& metric, const std::string& engine,
               double alpha, std::optional<bool> cells) {
                new (self) Index(make_settings(dim, metric, engine, alpha, cells));
            },
            "dim"_a, "metric"_a, "engine"_a, "alpha"_a, "cells"_a.none())
        .def("__len__", &Index::size)
        .def_prop_ro("ungrouped", &Index::ungrouped)
        .def_prop_ro("nbytes", &Index::nbytes)
        .def("fit", &Index::fit)
        .def("set_fit", &Index::set_fit, "fit"_a)
        .def("add", &add, "rows"_a, "ids"_a)
        .def("check", &check, "rows"_a, "ids"_a)
        .def("group", &group, "rows"_a, "majors"_a, "ids"_a)
        .def("write", &write_part, "ahead"_a, "rows"_a, "ids"_a, "views"_a.none(), "more"_a)
        .def("publish", &publish, "ids"_a)
        .def("search", &search, "queries"_a, "k"_a, "beta"_a, "threads"_a, "batch_size"_a)
        .def("search_all", &search_all, "queries"_a, "k"_a, "threads"_a)
        .def("range", &range, "queries"_a, "threshold"_a, "threads"_a)
        .def("reconstruct", &reconstruct, "ids"_a)
        .def("entries", &entries, "first"_a, "count"_a);
    bind_segments(m);
}
