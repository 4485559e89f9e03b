// NumPy arrays in and out: what all bindings share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "interrupt.hpp"
#include "numpy_api.hpp"
#include "search/request.hpp"
#include "store/segment_file.hpp"

namespace hiernorm {

namespace nb = nanobind;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Work of the core: other Python threads run meanwhile, and Ctrl-C ends it. Whatever waits for a
// lock of the core does so without the GIL, because a search that holds the lock may ask for it.
class LongWork {
   public:
    LongWork() { begin_work(); }

   private:
    nb::gil_scoped_release release_;
};

// NumPy's number for a type.
template <class T>
constexpr int numpy_type() {
    if constexpr (std::is_same_v<T, bool>)
        return NPY_BOOL;
    else if constexpr (std::is_same_v<T, std::int64_t>)
        return NPY_INT64;
    else if constexpr (std::is_same_v<T, std::uint32_t>)
        return NPY_UINT32;
    else if constexpr (std::is_same_v<T, float>)
        return NPY_FLOAT32;
    else {
        static_assert(std::is_same_v<T, double>);
        return NPY_FLOAT64;
    }
}

// A new NumPy array; its values are undefined.
template <class T, std::size_t Dims>
class NewArray {
   public:
    template <class... Shape>
    explicit NewArray(Shape... shape) {
        std::size_t count = sizeof(T);
        npy_intp extents[Dims];
        npy_intp* next = extents;
        for (const std::size_t extent : {static_cast<std::size_t>(shape)...}) {
            if (extent != 0 && count > std::numeric_limits<npy_intp>::max() / extent) {
                throw std::bad_alloc();
            }
            count *= extent;
            *next++ = static_cast<npy_intp>(extent);
        }
        PyObject* const made = PyArray_SimpleNew(int{Dims}, extents, numpy_type<T>());
        if (made == nullptr) throw nb::python_error();
        array_ = nb::steal(made);
        data_ = static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(made)));
    }
    T* data() { return data_; }
    nb::object to_python() { return std::move(array_); }

   private:
    nb::object array_;
    T* data_;
};

// The rows of queries that the core can read where they are.
struct PlainRows {
    const float* data = nullptr;
    std::size_t count = 0;
};

// Nothing unless `queries` is an ndarray (no subclass) of float32, one row or several of `dim` values
// one after the other.
inline std::optional<PlainRows> plain_rows(nb::handle queries, std::size_t dim) {
    if (!PyArray_CheckExact(queries.ptr())) return std::nullopt;
    const auto* const array = reinterpret_cast<const PyArrayObject*>(queries.ptr());
    const int dims = PyArray_NDIM(array);
    if (PyArray_TYPE(array) != NPY_FLOAT32 || !PyArray_ISCARRAY_RO(array) || dims < 1 || dims > 2 ||
        static_cast<std::size_t>(PyArray_DIM(array, dims - 1)) != dim) {
        return std::nullopt;
    }
    const std::size_t count = dims == 1 ? 1 : static_cast<std::size_t>(PyArray_DIM(array, 0));
    return PlainRows{static_cast<const float*>(PyArray_DATA(array)), count};
}

// The k best; soft unless beta is negative.
inline SearchRequest top_k_request(std::size_t k, double beta) {
    SearchRequest request;
    request.k = k;
    request.soft = beta >= 0.0;
    request.beta = beta;
    return request;
}

inline SearchRequest range_request(double threshold) {
    SearchRequest request;
    request.range = true;
    request.threshold = threshold;
    return request;
}

// A new array for a tensor of a segment; its values are undefined.
inline std::pair<nb::object, std::byte*> new_tensor(const TensorLayout& tensor) {
    const auto make = [&]<class T>(T) {
        std::size_t count = 1;
        for (const std::size_t extent : tensor.shape) count *= extent;
        T* data = new T[count];
        const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return std::pair(nb::cast(nb::ndarray<nb::numpy, T>(data, tensor.shape.size(),
                                                            tensor.shape.data(), owner)),
                         reinterpret_cast<std::byte*>(data));
    };
    if (tensor.dtype == "U8") return make(std::uint8_t{});
    if (tensor.dtype == "I64") return make(std::int64_t{});
    if (tensor.dtype == "F32") return make(float{});
    return make(double{});
}

// The stats of all answers as they lie in memory, 48 bytes each: certificate.py reads them when a
// certificate is looked at.
inline nb::bytes pack_stats(const Answers& answers) {
    static_assert(sizeof(SearchStats) == 6 * sizeof(std::uint64_t));
    static_assert(offsetof(SearchStats, skipped_bound) == 5 * sizeof(std::uint64_t));
    constexpr std::size_t kSize = sizeof(SearchStats);
    if (answers.size() == 1) return nb::bytes(&answers.all()[0].stats, kSize);
    std::vector<SearchStats> stats;
    stats.reserve(answers.size());
    for (const Answer& answer : answers.all()) stats.push_back(answer.stats);
    return nb::bytes(stats.data(), stats.size() * kSize);
}

// The arrays of k hits of each query, (m, k). Missing hits: -1, -inf.
class TopK {
   public:
    TopK(std::size_t count, std::size_t k) : k_(k), ids_(count, k), scores_(count, k) {}

    // Needs no GIL.
    void fill(Answers& answers) {
        std::int64_t* ids = ids_.data();
        double* scores = scores_.data();
        for (Answer& answer : answers) {
            const std::span<const Hit> hits = answer.results.sorted();
            for (std::size_t j = 0; j < k_; ++j) {
                *ids++ = j < hits.size() ? hits[j].id : -1;
                *scores++ = j < hits.size() ? hits[j].score : -kInfinity;
            }
        }
    }

    nb::object ids() { return ids_.to_python(); }
    nb::object scores() { return scores_.to_python(); }

   private:
    std::size_t k_;
    NewArray<std::int64_t, 2> ids_;
    NewArray<double, 2> scores_;
};

// offsets (m + 1,), ids, scores of a range; then what `others` are.
template <class... Others>
nb::tuple range_to_python(Answers& answers, const Others&... others) {
    NewArray<std::int64_t, 1> offsets(answers.size() + 1);
    offsets.data()[0] = 0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        offsets.data()[i + 1] =
            offsets.data()[i] + static_cast<std::int64_t>(answers[i].results.size());
    }
    NewArray<std::int64_t, 1> ids(offsets.data()[answers.size()]);
    NewArray<double, 1> scores(offsets.data()[answers.size()]);
    {
        const LongWork work;
        std::size_t at = 0;
        for (Answer& answer : answers) {
            for (const Hit& hit : answer.results.sorted()) {
                ids.data()[at] = hit.id;
                scores.data()[at++] = hit.score;
            }
        }
    }
    return nb::make_tuple(offsets.to_python(), ids.to_python(), scores.to_python(),
                          pack_stats(answers), others...);
}

}  // namespace hiernorm
