// What the core must compute, in plain loops that share no code with it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "encode/encoding.hpp"
#include "search/results.hpp"

namespace hiernorm::testing {

// The canonical product: 16 lanes in float64, then halves folded onto each other.
inline double plain_dot(const float* a, const float* b, std::size_t dim) {
    double lanes[16] = {};
    for (std::size_t j = 0; j < dim; ++j) lanes[j % 16] += double{a[j]} * double{b[j]};
    for (std::size_t l = 0; l < 8; ++l) lanes[l] += lanes[l + 8];
    for (std::size_t l = 0; l < 4; ++l) lanes[l] += lanes[l + 4];
    for (std::size_t l = 0; l < 2; ++l) lanes[l] += lanes[l + 2];
    return lanes[0] + lanes[1];
}

// The squared distance in the same order; every step is rounded.
inline double plain_distance(const float* a, const float* b, std::size_t dim) {
    double lanes[16] = {};
    for (std::size_t j = 0; j < dim; ++j) {
        const double difference = double{a[j]} - double{b[j]};
        lanes[j % 16] += difference * difference;
    }
    for (std::size_t l = 0; l < 8; ++l) lanes[l] += lanes[l + 8];
    for (std::size_t l = 0; l < 4; ++l) lanes[l] += lanes[l + 4];
    for (std::size_t l = 0; l < 2; ++l) lanes[l] += lanes[l + 2];
    return lanes[0] + lanes[1];
}

inline double plain_score(Metric metric, const float* query, const float* row, std::size_t dim) {
    if (metric == Metric::kL2) return 0.0 - plain_distance(query, row, dim);
    const double product = plain_dot(query, row, dim);
    if (metric == Metric::kInnerProduct) return product;
    return product /
           (std::sqrt(plain_dot(query, query, dim)) * std::sqrt(plain_dot(row, row, dim)));
}

// All entries, score descending, then id ascending.
inline std::vector<Hit> plain_ranking(Metric metric, const float* query,
                                      const std::vector<float>& rows,
                                      const std::vector<std::int64_t>& ids, std::size_t dim) {
    std::vector<Hit> hits;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        hits.push_back({plain_score(metric, query, rows.data() + i * dim, dim), ids[i]});
    }
    std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
        return a.score != b.score ? a.score > b.score : a.id < b.id;
    });
    return hits;
}

// Scores are numbers here, and -0 is not +0.
inline bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Whether `hits` are the first ones of `ranking`.
inline bool same_hits(std::span<const Hit> hits, const std::vector<Hit>& ranking,
                      std::size_t count) {
    if (hits.size() != std::min(count, ranking.size())) return false;
    for (std::size_t i = 0; i < hits.size(); ++i) {
        if (hits[i].id != ranking[i].id || !same_bits(hits[i].score, ranking[i].score))
            return false;
    }
    return true;
}

}  // namespace hiernorm::testing
