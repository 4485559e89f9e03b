// Packs entries into blocks, blocks into groups of 16, and those again.
#include "cells/grouping.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cells/cells.hpp"
#include "cells/packing.hpp"
#include "cells/sphere_kmeans.hpp"
#include "encode/lift.hpp"
#include "interrupt.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm {
namespace {

constexpr std::size_t kGroup = kBlockEntries;

// The directions of the groups: sums over 16 after 16 members.
std::vector<float> directions_of(const std::vector<float>& units, std::size_t dims,
                                 const std::vector<std::uint32_t>& members, std::size_t groups) {
    std::vector<float> directions(groups * dims);
    std::vector<double> sum(dims);
    for (std::size_t g = 0; g < groups; ++g) {
        std::fill(sum.begin(), sum.end(), 0.0);
        for (std::size_t i = 0; i < kGroup; ++i) {
            const float* unit = units.data() + std::size_t{members[g * kGroup + i]} * dims;
            for (std::size_t j = 0; j < dims; ++j) sum[j] += double{unit[j]};
        }
        make_unit(sum.data(), dims);
        for (std::size_t j = 0; j < dims; ++j) {
            directions[g * dims + j] = static_cast<float>(sum[j]);
        }
    }
    return directions;
}

// Arranges the members so that 16 after 16 belong together, and so do 16 after 16 of those groups.
void arrange(const std::vector<float>& units, std::size_t dims,
             std::vector<std::uint32_t>& members) {
    pack_by_direction(units.data(), dims, members.data(), members.size());
    const std::size_t groups = members.size() / kGroup;
    if (groups <= kGroup) return;
    std::vector<std::uint32_t> order(groups);
    std::iota(order.begin(), order.end(), 0u);
    arrange(directions_of(units, dims, members, groups), dims, order);
    std::vector<std::uint32_t> arranged;
    arranged.reserve(members.size());
    for (const std::uint32_t group : order) {
        const auto first = members.begin() + static_cast<std::ptrdiff_t>(group * kGroup);
        arranged.insert(arranged.end(), first, first + kGroup);
    }
    const auto rest = members.begin() + static_cast<std::ptrdiff_t>(groups * kGroup);
    arranged.insert(arranged.end(), rest, members.end());
    members = std::move(arranged);
}

}  // namespace

ConeVectors cone_vectors(const GroupingData& data) {
    const Encoding& encoding = data.encoding;
    const std::size_t dim = encoding.row_dim(), major = encoding.major - encoding.lift_dims();
    ConeVectors vectors;
    vectors.dims = cone_layout(encoding).dims;
    vectors.units.resize(data.count * vectors.dims);
    vectors.norms.resize(data.count);
    vectors.tails.resize(data.count);
    std::vector<double> values(vectors.dims);
    for (std::size_t i = 0; i < data.count; ++i) {
        if (i % kPolledEvery == 0) poll_interrupt();
        const float* row = data.rows + i * dim;
        double squares = 0.0, major_squares = 0.0, lift = 0.0;
        for (std::size_t j = 0; j < dim; ++j) squares += double{row[j]} * double{row[j]};
        for (std::size_t j = 0; j < major; ++j) {
            values[j] = data.majors[i * data.stride + j];
            major_squares += values[j] * values[j];
        }
        if (encoding.lift_dims() != 0) {
            lift = lift_of(encoding, squares);
            values[major] = lift;
        }
        const bool cosine = encoding.metric == Metric::kCosine;
        const double scale = cosine && squares > 0.0 ? 1.0 / std::sqrt(squares) : 1.0;
        const double tail = std::sqrt(std::max(0.0, squares - major_squares));
        if (encoding.entry_tails) {
            values.back() = tail;
        } else {
            vectors.tails[i] = scale * tail;
        }
        vectors.norms[i] =
            scale * std::sqrt((encoding.entry_tails ? squares : major_squares) + lift * lift);
        make_unit(values.data(), vectors.dims);
        for (std::size_t j = 0; j < vectors.dims; ++j) {
            vectors.units[i * vectors.dims + j] = static_cast<float>(values[j]);
        }
    }
    return vectors;
}

Grouping group_by_direction(const ConeVectors& vectors, const std::int64_t* ids, std::size_t count,
                            std::size_t lead) {
    Grouping grouping;
    grouping.order.resize(count);
    std::iota(grouping.order.begin(), grouping.order.end(), 0u);
    std::sort(grouping.order.begin(), grouping.order.end(),
              [ids](std::uint32_t a, std::uint32_t b) { return ids[a] < ids[b]; });
    arrange(vectors.units, vectors.dims, grouping.order);
    grouping.lead = std::min(lead, count);
    std::rotate(grouping.order.begin(),
                grouping.order.end() - static_cast<std::ptrdiff_t>(grouping.lead),
                grouping.order.end());
    return grouping;
}

}  // namespace hiernorm
