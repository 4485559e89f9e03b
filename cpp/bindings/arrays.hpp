// NumPy arrays in and out: what all bindings share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "interrupt.hpp"
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

// A new NumPy array that owns its memory.
template <class T, std::size_t Dims>
class NewArray {
   public:
    template <class... Shape>
    explicit NewArray(Shape... shape) : shape_{static_cast<std::size_t>(shape)...} {
        std::size_t count = 1;
        for (const std::size_t extent : shape_) {
            if (extent != 0 && count > std::numeric_limits<std::size_t>::max() / extent) {
                throw std::bad_alloc();
            }
            count *= extent;
        }
        data_ = new T[count];
        owner_ = nb::capsule(data_, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    }
    T* data() { return data_; }
    nb::object to_python() {
        return nb::cast(nb::ndarray<nb::numpy, T>(data_, Dims, shape_, owner_));
    }

   private:
    std::size_t shape_[Dims];
    T* data_;
    nb::capsule owner_;
};

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

// Work (m, 5) and skipped bound (m,) of all answers.
inline nb::tuple stats_to_python(const std::vector<Answer>& answers) {
    NewArray<std::int64_t, 2> work(answers.size(), 5);
    NewArray<double, 1> skipped(answers.size());
    std::int64_t* out = work.data();
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const SearchStats& stats = answers[i].stats;
        for (const std::uint64_t count :
             {stats.cells, stats.scanned, stats.sifted, stats.tightened, stats.settled}) {
            *out++ = static_cast<std::int64_t>(count);
        }
        skipped.data()[i] = stats.skipped_bound;
    }
    return nb::make_tuple(work.to_python(), skipped.to_python());
}

// ids (m, k), scores (m, k), work, skipped bound, entries. Missing hits: -1, -inf.
inline nb::tuple top_k_to_python(std::vector<Answer>& answers, std::size_t k, std::size_t entries) {
    NewArray<std::int64_t, 2> ids(answers.size(), k);
    NewArray<double, 2> scores(answers.size(), k);
    {
        const LongWork work;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const std::vector<Hit>& hits = answers[i].results.sorted();
            for (std::size_t j = 0; j < k; ++j) {
                ids.data()[i * k + j] = j < hits.size() ? hits[j].id : -1;
                scores.data()[i * k + j] = j < hits.size() ? hits[j].score : -kInfinity;
            }
        }
    }
    const nb::tuple stats = stats_to_python(answers);
    return nb::make_tuple(ids.to_python(), scores.to_python(), stats[0], stats[1], entries);
}

// offsets (m + 1,), ids, scores, work, skipped bound, entries.
inline nb::tuple range_to_python(std::vector<Answer>& answers, std::size_t entries) {
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
    const nb::tuple stats = stats_to_python(answers);
    return nb::make_tuple(offsets.to_python(), ids.to_python(), scores.to_python(), stats[0],
                          stats[1], entries);
}

}  // namespace hiernorm
