// Collections of vectors, indexes over them, and the comparison of their answers with plain loops.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "addition.hpp"
#include "check.hpp"
#include "encode/lift.hpp"
#include "expectations.hpp"
#include "index.hpp"
#include "random.hpp"

namespace hiernorm::testing {

enum class Kind {
    kHierarchical,  // HN: the norms of major and minor are the same for all vectors
    kArbitrary,     // norms over six decades, zeros, repeated rows
    kClustered,     // near one of few centres, so that scores lie close together
    kLattice        // small integers: many equal scores
};
inline const std::vector<Kind> kAllKinds{Kind::kHierarchical, Kind::kArbitrary, Kind::kClustered,
                                         Kind::kLattice};

inline void scale_to(float* values, std::size_t count, double norm) {
    double squares = 0.0;
    for (std::size_t j = 0; j < count; ++j) squares += double{values[j]} * double{values[j]};
    const double scale = squares > 0.0 ? norm / std::sqrt(squares) : 0.0;
    for (std::size_t j = 0; j < count; ++j) values[j] = static_cast<float>(values[j] * scale);
}

inline std::vector<float> make_rows(Random& random, Kind kind, std::size_t count, std::size_t dim,
                                    std::size_t major) {
    std::vector<float> rows(count * dim), centres(4 * dim);
    for (float& value : centres) value = static_cast<float>(random.normal());
    for (std::size_t i = 0; i < count; ++i) {
        float* row = rows.data() + i * dim;
        const double size = std::pow(10.0, random.between(-3, 3));
        const float* centre = centres.data() + random.below(4) * dim;
        for (std::size_t j = 0; j < dim; ++j) {
            double value = random.normal();
            if (kind == Kind::kArbitrary) value *= random.below(5) == 0 ? 0.0 : size;
            if (kind == Kind::kClustered) value = centre[j] + 0.02 * value;
            if (kind == Kind::kLattice) value = random.between(-2, 2);
            row[j] = static_cast<float>(value);
        }
        if (kind == Kind::kHierarchical) {
            scale_to(row, major, std::sqrt(0.8));
            scale_to(row + major, dim - major, std::sqrt(0.2));
        }
        if (kind == Kind::kArbitrary && i != 0 && random.below(8) == 0) {
            std::copy_n(rows.data() + random.below(i) * dim, dim, row);
        }
        row[random.below(major)] += 1e-6f;  // no zero vectors: the cosine has no use for them
    }
    return rows;
}

// A random orthogonal matrix, times `scale` and rounded to float32, and what this does to inner
// products: |R^T R - I| <= |R^T R - scale^2 I| + |scale^2 - 1|, as in hiernorm/rotation.py.
struct Rotation {
    std::vector<float> matrix;
    double error = 0.0;

    Rotation(Random& random, std::size_t dim, double scale = 1.0) : matrix(dim * dim) {
        std::vector<double> axes(dim * dim);
        for (std::size_t r = 0; r < dim; ++r) {
            double* axis = axes.data() + r * dim;
            for (std::size_t j = 0; j < dim; ++j) axis[j] = random.normal();
            for (int twice = 0; twice < 2; ++twice) {
                for (std::size_t other = 0; other < r; ++other) {
                    const double* before = axes.data() + other * dim;
                    const double along = std::inner_product(axis, axis + dim, before, 0.0);
                    for (std::size_t j = 0; j < dim; ++j) axis[j] -= along * before[j];
                }
                const double norm = std::sqrt(std::inner_product(axis, axis + dim, axis, 0.0));
                for (std::size_t j = 0; j < dim; ++j) axis[j] /= norm;
            }
        }
        for (std::size_t i = 0; i < axes.size(); ++i)
            matrix[i] = static_cast<float>(scale * axes[i]);
        double squares = 0.0;
        for (std::size_t a = 0; a < dim; ++a) {
            for (std::size_t b = 0; b < dim; ++b) {
                double sum = a == b ? -scale * scale : 0.0;
                for (std::size_t r = 0; r < dim; ++r) {
                    sum += double{matrix[r * dim + a]} * double{matrix[r * dim + b]};
                }
                squares += sum * sum;
            }
        }
        const double d = static_cast<double>(dim);
        error = 1.01 * (std::sqrt(squares) + std::abs(scale * scale - 1.0) +
                        (d * d + 4.0 * d * std::sqrt(d)) * 0x1p-52);
    }

    std::vector<double> apply(const float* rows, std::size_t count, std::size_t dim) const {
        std::vector<double> views(count * dim);
        for (std::size_t i = 0; i < count * dim; ++i) {
            const float* row = rows + i / dim * dim;
            const float* axis = matrix.data() + i % dim * dim;
            for (std::size_t j = 0; j < dim; ++j) views[i] += double{axis[j]} * double{row[j]};
        }
        return views;
    }
};

// Entries, queries and all that an index over them is told.
struct Collection {
    std::size_t dim = 0;
    std::size_t major = 0;
    Metric metric = Metric::kInnerProduct;
    std::vector<float> rows;
    std::vector<std::int64_t> ids;
    std::vector<float> queries;
    std::shared_ptr<const Rotation> rotation;

    std::size_t size() const { return ids.size(); }
    std::size_t asked() const { return queries.size() / dim; }
    const float* query(std::size_t i) const { return queries.data() + i * dim; }

    // An encoding of the first `sample` rows; later ones may lie outside what its codes can
    // express.
    Encoding encoding(std::size_t sample, bool entry_tails) const {
        std::vector<double> views =
            rotation ? rotation->apply(rows.data(), sample, dim)
                     : std::vector<double>(rows.data(), rows.data() + sample * dim);
        for (std::size_t i = 0; i < sample && metric == Metric::kCosine; ++i) {
            const float* row = rows.data() + i * dim;
            const double norm = std::sqrt(plain_dot(row, row, dim));
            for (std::size_t j = 0; j < dim; ++j) views[i * dim + j] /= norm;
        }
        Encoding encoding;
        encoding.metric = metric;
        encoding.dim = dim + encoding.lift_dims();
        encoding.major = major + encoding.lift_dims();
        if (metric == Metric::kL2) {
            // Any centre and weight will do; the base norm is at least the root of the centre.
            encoding.centre = plain_dot(rows.data(), rows.data(), dim);
            encoding.base_norm = std::sqrt(encoding.centre) * 1.01 + 1e-3;
            encoding.weight = 0.7 * encoding.base_norm;
            std::vector<double> levelled;
            for (std::size_t i = 0; i < sample; ++i) {
                const float* row = rows.data() + i * dim;
                std::vector<double> view(views.data() + i * dim, views.data() + (i + 1) * dim);
                lift_entry(encoding, plain_dot(row, row, dim), view);
                levelled.insert(levelled.end(), view.begin(), view.end());
            }
            views = std::move(levelled);
        }
        if (rotation) {
            encoding.rotation = rotation->matrix;
            encoding.rotation_error = rotation->error;
        }
        encoding.choose_steps(views.data(), sample, 1.0);
        encoding.entry_tails = entry_tails;
        return encoding;
    }

    std::unique_ptr<Index> make_index(EngineKind engine, std::size_t sample, bool tails) const {
        auto index = std::make_unique<Index>(Settings{dim, metric, engine, 0.2});
        if (engine == EngineKind::kCascade || engine == EngineKind::kPaper) {
            index->set_encoding(encoding(sample, tails));
        }
        return index;
    }

    // Adds rows first .. last - 1; rotated ones in parts, as the Python side does.
    void add_to(Index& index, std::size_t first, std::size_t last) const {
        const std::size_t count = last - first, part = 700;
        if (!rotation) return index.add(rows.data() + first * dim, ids.data() + first, count);
        const float* added = rows.data() + first * dim;
        Addition addition(index, {added, added, dim, ids.data() + first, count});
        for (std::size_t ahead = 0; ahead < count; ahead += part) {
            const std::size_t written = std::min(part, count - ahead);
            const float* from = added + ahead * dim;
            addition.write(from, ids.data() + first + ahead,
                           rotation->apply(from, written, dim).data(), written);
        }
        addition.publish();
    }

    // The plain ranking of the first `count` entries, for each query.
    std::vector<std::vector<Hit>> rankings(std::size_t count) const {
        const std::vector<float> seen(rows.data(), rows.data() + count * dim);
        const std::vector<std::int64_t> named(ids.data(), ids.data() + count);
        std::vector<std::vector<Hit>> all;
        for (std::size_t i = 0; i < asked(); ++i) {
            all.push_back(plain_ranking(metric, query(i), seen, named, dim));
        }
        return all;
    }
};

inline Collection make_collection(Random& random, Kind kind, std::size_t count, std::size_t dim,
                                  std::size_t major, Metric metric, std::size_t queries) {
    Collection made;
    made.dim = dim;
    made.major = major;
    made.metric = metric;
    made.rows = make_rows(random, kind, count, dim, major);
    made.queries = make_rows(random, kind, queries, dim, major);
    if (queries > 1) std::copy_n(made.rows.data(), dim, made.queries.data());  // asks for entry 0
    made.ids.resize(count);
    const std::int64_t stride = random.coin() ? 1 : -3;
    for (std::size_t i = 0; i < count; ++i) made.ids[i] = static_cast<std::int64_t>(i) * stride;
    return made;
}

}  // namespace hiernorm::testing
