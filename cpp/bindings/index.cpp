// The index and additions to it.
#include "index.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "addition.hpp"
#include "arrays.hpp"
#include "bindings.hpp"
#include "search/workspace.hpp"

using namespace nanobind::literals;

namespace hiernorm {
namespace {

Settings make_settings(std::size_t dim, const std::string& metric, const std::string& engine,
                       double alpha, std::optional<bool> cells) {
    return {.dim = dim,
            .metric = metric_named(metric),
            .engine = engine_named(engine),
            .alpha = alpha,
            .cells = !cells   ? CellUse::kWhereItPays
                     : *cells ? CellUse::kAlways
                              : CellUse::kNever};
}

constexpr nb::call_guard<nb::gil_scoped_release> kWithoutGil;

using Ids = std::optional<Vector<std::int64_t>>;

Index::Where where_of(const Ids& ids) {
    if (!ids) return std::nullopt;
    return std::span(ids->data(), ids->shape(0));
}

void add(Index& index, const Matrix<float>& rows, const Vector<std::int64_t>& ids, bool replace) {
    const LongWork work;
    index.add(rows.data(), ids.data(), rows.shape(0), replace);
}

std::size_t remove(Index& index, const Vector<std::int64_t>& ids) {
    const LongWork work;
    return index.remove(ids.data(), ids.shape(0));
}

void check(const Index& index, const Matrix<float>& rows, const Vector<std::int64_t>& ids) {
    const LongWork work;
    index.check(rows.data(), ids.data(), rows.shape(0));
}

nb::tuple search_rows(const Index& index, const PlainRows& rows, const SearchRequest& request,
                      std::size_t threads, std::size_t batch_size, const Index::Where& where) {
    TopK found(rows.count, request.k);
    Kept<Answers> answers;
    Searched searched;
    {
        const LongWork work;
        searched =
            index.search(request, rows.data, rows.count, threads, batch_size, *answers, where);
        found.fill(*answers);
    }
    nb::bytes stats = pack_stats(*answers);
    answers->shrink();
    return nb::make_tuple(found.ids(), found.scores(), stats, searched.entries, searched.live);
}

nb::tuple search(const Index& index, const Matrix<float>& queries, std::size_t k, double beta,
                 std::size_t threads, std::size_t batch_size, const Ids& where) {
    return search_rows(index, {queries.data(), queries.shape(0)}, top_k_request(k, beta), threads,
                       batch_size, where_of(where));
}

// The common call without its detours: None unless the queries can be read where they are and k is
// an ordinary number of hits, which the caller then looks into.
nb::object search_plain(const Index& index, nb::handle queries, std::size_t k,
                        std::size_t threads) {
    constexpr std::size_t kMostHits = std::size_t{1} << 16;  // of all queries
    const std::optional<PlainRows> rows = plain_rows(queries, index.settings().dim);
    if (!rows || k == 0 || k > kMostHits || rows->count > kMostHits / k) return nb::none();
    return search_rows(index, *rows, top_k_request(k, -1.0), threads, 0, std::nullopt);
}

nb::tuple search_all(const Index& index, const Matrix<float>& queries, std::size_t k,
                     std::size_t threads, const Ids& where) {
    TopK found(queries.shape(0), k);
    Answers answers;
    Searched searched;
    {
        const LongWork work;
        searched = index.search_all(top_k_request(k, -1.0), queries.data(), queries.shape(0),
                                    threads, answers, where_of(where));
        found.fill(answers);
    }
    return nb::make_tuple(found.ids(), found.scores(), searched.entries);
}

nb::tuple range(const Index& index, const Matrix<float>& queries, double threshold,
                std::size_t threads, const Ids& where) {
    Answers answers;
    Searched searched;
    {
        const LongWork work;
        searched = index.search(range_request(threshold), queries.data(), queries.shape(0), threads,
                                0, answers, where_of(where));
    }
    return range_to_python(answers, searched.entries, searched.live);
}

nb::object find(const Index& index, const Vector<std::int64_t>& ids) {
    NewArray<bool, 1> found(ids.shape(0));
    {
        const LongWork work;
        index.find(ids.data(), ids.shape(0), found.data());
    }
    return found.to_python();
}

nb::object ids(const Index& index) {
    std::vector<std::int64_t> all;
    {
        const LongWork work;
        all = index.ids();
    }
    NewArray<std::int64_t, 1> out(all.size());
    std::copy(all.begin(), all.end(), out.data());
    return out.to_python();
}

nb::object reconstruct(const Index& index, const Vector<std::int64_t>& ids) {
    NewArray<float, 2> rows(ids.shape(0), index.settings().dim);
    try {
        const LongWork work;
        index.reconstruct(ids.data(), ids.shape(0), rows.data());
    } catch (const std::out_of_range& unknown) {
        throw nb::key_error(unknown.what());
    }
    return rows.to_python();
}

nb::tuple entries(const Index& index, std::size_t first, std::size_t count) {
    NewArray<std::int64_t, 1> ids(count);
    NewArray<float, 2> rows(count, index.settings().dim);
    {
        const LongWork work;
        index.copy_entries(first, count, ids.data(), rows.data());
    }
    return nb::make_tuple(ids.to_python(), rows.to_python());
}

nb::dict tensors(const Index& index) {
    nb::dict found;
    const LongWork work;
    index.copy_tensors([&](const TensorLayout& tensor) {
        const nb::gil_scoped_acquire acquire;
        const auto [array, data] = new_tensor(tensor);
        found[tensor.name.c_str()] = array;
        return data;
    });
    return found;
}

void begin(Addition* self, Index& index, const Matrix<float>& rows, const Matrix<float>& majors,
           const Vector<std::int64_t>& ids, bool checked) {
    const LongWork work;
    new (self) Addition(
        index, {rows.data(), majors.data(), majors.shape(1), ids.data(), ids.shape(0)}, checked);
}

nb::object order(const Addition& addition) {
    if (addition.order().empty()) return nb::none();
    NewArray<std::uint32_t, 1> out(addition.order().size());
    std::copy(addition.order().begin(), addition.order().end(), out.data());
    return out.to_python();
}

void write(Addition& addition, const Matrix<float>& rows, const Vector<std::int64_t>& ids,
           const std::optional<Matrix<double>>& views) {
    const LongWork work;
    addition.write(rows.data(), ids.data(), views ? views->data() : nullptr, rows.shape(0));
}

nb::dict take_chunk(Addition& addition, std::size_t chunk_index, std::size_t entries) {
    const Encoding& encoding = addition.encoding();
    Chunk chunk;
    {
        const LongWork work;
        chunk = addition.take_chunk(chunk_index);
    }
    nb::dict found;
    for (const TensorLayout& tensor : chunk_tensors(encoding, entries)) {
        const auto [array, data] = new_tensor(tensor);
        {
            const LongWork work;
            copy_chunk_tensor(tensor, encoding, chunk, entries, data);
        }
        found[tensor.name.c_str()] = array;
    }
    return found;
}

nb::dict cones(const Addition& addition) {
    nb::dict found;
    for (const TensorLayout& tensor : cone_tensors(addition.encoding(), addition.written())) {
        const auto [array, data] = new_tensor(tensor);
        {
            const LongWork work;
            copy_cone_tensor(tensor, addition.cells(), addition.written(), data);
        }
        found[tensor.name.c_str()] = array;
    }
    return found;
}

}  // namespace

void bind_index(nb::module_& m) {
    nb::class_<Index>(m, "Index")
        .def(
            "__init__",
            [](Index* self, std::size_t dim, const std::string& metric, const std::string& engine,
               double alpha, std::optional<bool> cells) {
                new (self) Index(make_settings(dim, metric, engine, alpha, cells));
            },
            "dim"_a, "metric"_a, "engine"_a, "alpha"_a, "cells"_a.none())
        .def("__len__", &Index::live, kWithoutGil)
        .def_prop_ro("attached", &Index::attached, kWithoutGil)
        .def_prop_ro("removed", &Index::removed, kWithoutGil)
        .def_prop_ro("ungrouped", &Index::ungrouped, kWithoutGil)
        .def_prop_ro("nbytes", &Index::nbytes, kWithoutGil)
        .def("encoding", &Index::encoding, kWithoutGil)
        .def("set_encoding", &Index::set_encoding, "encoding"_a, kWithoutGil)
        .def_prop_ro("flat_plan", &Index::flat_plan, kWithoutGil)
        .def("plan_flat", &Index::plan_flat, "least_queries"_a, kWithoutGil)
        .def("add", &add, "rows"_a, "ids"_a, "replace"_a = false)
        .def("remove", &remove, "ids"_a)
        .def("check", &check, "rows"_a, "ids"_a)
        .def("search", &search, "queries"_a, "k"_a, "beta"_a, "threads"_a, "batch_size"_a,
             "where"_a.none() = nb::none())
        .def("search_plain", &search_plain, "queries"_a.none(), "k"_a, "threads"_a)
        .def("search_all", &search_all, "queries"_a, "k"_a, "threads"_a,
             "where"_a.none() = nb::none())
        .def("range", &range, "queries"_a, "threshold"_a, "threads"_a,
             "where"_a.none() = nb::none())
        .def("find", &find, "ids"_a)
        .def("ids", &ids)
        .def("reconstruct", &reconstruct, "ids"_a)
        .def("entries", &entries, "first"_a, "count"_a)
        .def("tensors", &tensors);
}

void bind_addition(nb::module_& m) {
    nb::class_<Addition>(m, "Addition")
        .def("__init__", &begin, nb::keep_alive<1, 2>(), "index"_a, "rows"_a, "majors"_a, "ids"_a,
             "checked"_a)
        .def("__enter__", [](nb::object self) { return self; })
        .def(
            "__exit__", [](Addition& self, nb::handle, nb::handle, nb::handle) { self.close(); },
            "type"_a.none(), "value"_a.none(), "traceback"_a.none())
        .def_prop_ro("order", &order)
        .def("write", &write, "rows"_a, "ids"_a, "views"_a.none())
        .def("publish", &Addition::publish, "replace"_a = false, kWithoutGil)
        .def("close", &Addition::close)
        .def("take_chunk", &take_chunk, "chunk"_a, "entries"_a)
        .def("cones", &cones);
}

}  // namespace hiernorm
