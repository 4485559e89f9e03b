// The float32 scores of rows and of panels of rows, and how panels are sifted.
#include <set>
#include <utility>

#include "check.hpp"
#include "expectations.hpp"
#include "float_bits.hpp"
#include "kernels/kernels.hpp"
#include "kernels/pack_queries.hpp"
#include "random.hpp"

namespace hiernorm::testing {
namespace {

// Lanes and tree of the canonical sum, in float32.
float plain_row_score(const float* query, const float* row, std::size_t dim, bool distance) {
    float lanes[kLanes] = {};
    for (std::size_t j = 0; j < dim; ++j) {
        const float difference = query[j] - row[j];
        lanes[j % kLanes] += distance ? difference * difference : query[j] * row[j];
    }
    for (std::size_t half = kLanes / 2; half != 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return distance ? 0.0f - lanes[0] : lanes[0];
}

TEST(scores_of_rows_have_the_same_bits_in_every_family) {
    Random random(9);
    for (const std::size_t dim : {1, 15, 16, 17, 64, 100}) {
        for (const std::size_t entries : {1, 3, 15, 16, 17, 70}) {
            for (const std::size_t count : {1, 2, 3, 4, 5, 9}) {
                const std::size_t padded = (dim + kLanes - 1) / kLanes * kLanes, stride = 80;
                std::vector<float> rows(entries * dim), queries(count * padded);
                for (float& value : rows) value = static_cast<float>(random.normal());
                for (std::size_t q = 0; q < count; ++q) {
                    for (std::size_t j = 0; j < dim; ++j) {
                        queries[q * padded + j] = static_cast<float>(random.normal());
                    }
                }
                for (const Kernels* kernels : available_kernels()) {
                    for (const bool distance : {false, true}) {
                        const Context context(kernels->name, ", dim ", dim, ", entries ", entries,
                                              ", queries ", count, ", distance ", distance);
                        std::vector<float> scores(count * stride);
                        (distance ? kernels->distance_rows_f32 : kernels->score_rows_f32)(
                            rows.data(), entries, dim, queries.data(), count, scores.data(),
                            stride);
                        bool same = true;
                        for (std::size_t i = 0; i < count * entries; ++i) {
                            const std::size_t q = i / entries, entry = i % entries;
                            same &= same_bits_or_nan(
                                scores[q * stride + entry],
                                plain_row_score(queries.data() + q * padded,
                                                rows.data() + entry * dim, dim, distance));
                        }
                        CHECK(same);
                    }
                }
            }
        }
    }
}

TEST(scores_of_panels_have_the_same_bits_in_every_family) {
    Random random(11);
    for (const std::size_t dim : {1, 15, 16, 17, 64, 100}) {
        for (const std::size_t entries : {1, 15, 16, 31, 32}) {
            std::vector<float> rows(entries * dim), scales(kPanelRows), offsets(kPanelRows);
            for (float& value : rows) value = static_cast<float>(random.normal());
            for (float& value : scales) value = static_cast<float>(random.normal());
            for (float& value : offsets) value = static_cast<float>(random.normal());
            for (const std::size_t count : {1, 4, 5, 12, 29}) {
                const std::size_t padded = (count + kFewQueries - 1) / kFewQueries * kFewQueries;
                std::vector<float> queries(padded * dim);
                for (float& value : queries) value = static_cast<float>(random.normal());
                const std::size_t whole = count / kPanelQueries * kPanelQueries;
                for (const Kernels* kernels : available_kernels()) {
                    const Context context(kernels->name, ", dim ", dim, ", entries ", entries,
                                          ", queries ", count);
                    std::vector<float> panel(dim * kPanelRows), squares(kPanelRows);
                    kernels->pack_panel_f32(rows.data(), entries, dim, panel.data(),
                                            squares.data());
                    std::vector<float> scores(padded * kPanelRows);
                    kernels->score_panel_f32({panel.data(), dim, scales.data(), offsets.data()},
                                             queries.data(), count, scores.data(), kPanelRows);
                    bool same = true;
                    for (std::size_t r = 0; r < entries; ++r) {
                        float square = 0.0f;
                        for (std::size_t j = 0; j < dim; ++j) {
                            square += rows[r * dim + j] * rows[r * dim + j];
                        }
                        same &= same_bits_or_nan(squares[r], square);
                        for (std::size_t q = 0; q < count; ++q) {
                            const std::size_t size = q < whole ? kPanelQueries : kFewQueries;
                            const std::size_t first = q / size * size;
                            float sum = 0.0f;
                            for (std::size_t j = 0; j < dim; ++j) {
                                sum += queries[first * dim + j * size + q - first] *
                                       rows[r * dim + j];
                            }
                            const float score = sum * scales[r] + offsets[r];
                            same &= same_bits_or_nan(scores[q * kPanelRows + r], score);
                        }
                    }
                    CHECK(same);
                }
            }
        }
    }
}

TEST(panels_of_floats_and_bytes_are_sifted_as_by_plain_loops) {
    Random random(12);
    for (const std::size_t dim : {1, 3, 4, 16, 17, 64, 101}) {
        const std::size_t groups = (dim + kGroupSlots - 1) / kGroupSlots;
        // Whole numbers: float sums are exact, fused or not.
        std::vector<float> rows(kPanelRows * dim), panel(dim * kPanelRows), squares(kPanelRows);
        for (float& value : rows) value = static_cast<float>(random.between(0, 40)) - 20.0f;
        for (const std::size_t count : {1, 4, 5, 12, 29}) {
            const std::size_t padded = (count + kFewQueries - 1) / kFewQueries * kFewQueries;
            std::vector<float> queries(count * dim), packed(padded * dim), cuts(padded, 0x1p110f);
            std::vector<std::int8_t> codes(count * groups * kGroupSlots);
            std::vector<std::int8_t> packed_codes(padded * groups * kGroupSlots);
            std::vector<float> offsets(kPanelRows);
            for (float& value : offsets) value = static_cast<float>(random.between(0, 98));
            for (std::size_t q = 0; q < count; ++q) {
                cuts[q] = static_cast<float>(random.between(0, 399));
                for (std::size_t j = 0; j < dim; ++j) {
                    const auto value = static_cast<int>(random.between(0, 40)) - 20;
                    queries[q * dim + j] = static_cast<float>(value);
                    codes[q * groups * kGroupSlots + j] = static_cast<std::int8_t>(value);
                }
            }
            pack_panel_queries(queries.data(), count, dim, 1, packed.data());
            pack_panel_queries(codes.data(), count, groups, kGroupSlots, packed_codes.data());
            std::set<std::pair<int, int>> expected;
            for (std::size_t q = 0; q < count; ++q) {
                for (std::size_t r = 0; r < kPanelRows; ++r) {
                    float sum = offsets[r];
                    for (std::size_t j = 0; j < dim; ++j) {
                        sum += rows[r * dim + j] * queries[q * dim + j];
                    }
                    if (sum >= cuts[q]) expected.emplace(q, r);
                }
            }
            const auto set_of = [](const std::vector<SiftedPair>& pairs, std::size_t found) {
                std::set<std::pair<int, int>> set;
                for (std::size_t i = 0; i < found; ++i) set.emplace(pairs[i].query, pairs[i].row);
                return set;
            };
            for (const Kernels* kernels : available_kernels()) {
                const Context context(kernels->name, ", dim ", dim, ", queries ", count);
                const std::vector<float> ones(kPanelRows, 1.0f), zeros(dim);
                std::vector<SiftedPair> pairs(padded * kPanelRows);
                kernels->pack_panel_f32(rows.data(), kPanelRows, dim, panel.data(), squares.data());
                const float largest = kernels->shift_panel_f32(panel.data(), dim, ones.data(),
                                                               zeros.data(), squares.data());
                CHECK(largest <= 20.0f);
                std::size_t found =
                    kernels->sift_panel_f32(panel.data(), dim, offsets.data(), packed.data(), count,
                                            cuts.data(), pairs.data());
                CHECK(set_of(pairs, found) == expected);
                if (kernels->sift_panel_u8i8 == nullptr) continue;
                std::vector<std::uint8_t> row_codes(kPanelRows * groups * kGroupSlots);
                std::vector<float> rests(kPanelRows);
                kernels->code_panel_u8(panel.data(), dim, 1.0f, row_codes.data(), rests.data());
                for (const float rest : rests) CHECK(rest == 0.0f);
                std::vector<std::int32_t> whole_cuts(padded, 1 << 29), whole_offsets(kPanelRows);
                for (std::size_t r = 0; r < kPanelRows; ++r) {
                    whole_offsets[r] = static_cast<std::int32_t>(offsets[r]);
                }
                for (std::size_t q = 0; q < count; ++q) {
                    int sum = 0;
                    for (std::size_t j = 0; j < dim; ++j) sum += codes[q * groups * kGroupSlots + j];
                    whole_cuts[q] = static_cast<std::int32_t>(cuts[q]) + kCodeOffset * sum;
                }
                found = kernels->sift_panel_u8i8(row_codes.data(), groups, whole_offsets.data(),
                                                 packed_codes.data(), count, whole_cuts.data(),
                                                 pairs.data());
                CHECK(set_of(pairs, found) == expected);
            }
        }
    }
}

}  // namespace
}  // namespace hiernorm::testing
