// NumPy arrays in and out: what all bindings share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <limits>
#include <new>
#include <vector>

#include "search/engines.hpp"

namespace hiernorm {

namespace nb = nanobind;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

// Work (m, 5) and skipped bound (m,) of all answers.
inline nb::tuple reports_to_python(const std::vector<Answer>& answers) {
    NewArray<std::int64_t, 2> work(answers.size(), 5);
    NewArray<double, 1> skipped(answers.size());
    std::int64_t* out = work.data();
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const Report& report = answers[i].report;
        for (const std::uint64_t count :
             {report.cells, report.scanned, report.sifted, report.tightened, report.settled}) {
            *out++ = static_cast<std::int64_t>(count);
        }
        skipped.data()[i] = report.skipped_bound;
    }
    return nb::make_tuple(work.to_python(), skipped.to_python());
}

// ids (m, k), scores (m, k), work, skipped bound, entries. Missing hits: -1, -inf.
inline nb::tuple top_k_to_python(std::vector<Answer>& answers, std::size_t k, std::size_t entries) {
    NewArray<std::int64_t, 2> ids(answers.size(), k);
    NewArray<double, 2> scores(answers.size(), k);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const std::vector<Hit>& hits = answers[i].results.sorted();
        for (std::size_t j = 0; j < k; ++j) {
            ids.data()[i * k + j] = j < hits.size() ? hits[j].id : -1;
            scores.data()[i * k + j] = j < hits.size() ? hits[j].score : -kInfinity;
        }
    }
    const nb::tuple reports = reports_to_python(answers);
    return nb::make_tuple(ids.to_python(), scores.to_python(), reports[0], reports[1], entries);
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
    std::size_t at = 0;
    for (Answer& answer : answers) {
        for (const Hit& hit : answer.results.sorted()) {
            ids.data()[at] = hit.id;
            scores.data()[at++] = hit.score;
        }
    }
    const nb::tuple reports = reports_to_python(answers);
    return nb::make_tuple(offsets.to_python(), ids.to_python(), scores.to_python(), reports[0],
                          reports[1], entries);
}

}  // namespace hiernorm
