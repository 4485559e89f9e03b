// Every kernel family computes what plain loops compute: integers exactly, floats bit for bit.
#include "kernels/kernels.hpp"

#include <cmath>
#include <limits>

#include "check.hpp"
#include "codes.hpp"
#include "expectations.hpp"

namespace hiernorm::testing {
namespace {

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kHighest = std::numeric_limits<std::int32_t>::max();
const std::vector<std::size_t> kGroups{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 17, 40};
const std::vector<std::size_t> kEntries{1, 15, 16, 17, 33, 100, 1000, 1024};

// Calls check(coded, entries) for every number of groups and kind of codes.
template <class Check>
void for_all_codes(Check check) {
    Random random(1);
    for (const std::size_t groups : kGroups) {
        for (const Codes kind : kAllCodes) {
            for (const bool tail : {false, true}) {
                for (const std::size_t entries : kEntries) {
                    if (entries > 100 && groups > 9 && groups != 40) continue;
                    const Context context("groups ", groups, ", entries ", entries, ", codes ",
                                          static_cast<int>(kind), ", tail ", tail);
                    check(CodedBlocks(random, groups, entries, kind, tail), entries);
                }
            }
        }
    }
}

// Cuts below, between, at and above the scores.
std::vector<std::int32_t> cuts_of(std::vector<std::int32_t> scores) {
    std::sort(scores.begin(), scores.end());
    const std::int32_t middle = scores[scores.size() / 2], top = scores[scores.size() * 9 / 10];
    return {kLowest, scores.front() - 1, scores.front(), middle,       middle - 1,
            top,     scores.back() - 1,  scores.back(),  kHighest - 1, kHighest};
}

// Runs `select(cut, position, out, &skipped)` and compares it with a plain loop.
template <class Select>
void check_selection(const std::vector<std::int32_t>& scores, Select select) {
    for (const std::int32_t cut : cuts_of(scores)) {
        for (const std::int32_t skipped_before : {kLowest, scores[0], kHighest}) {
            const std::uint32_t position = 0xfffff000u;
            std::vector<Candidate> expected;
            std::int32_t expected_skipped = skipped_before;
            for (std::size_t i = 0; i < scores.size(); ++i) {
                if (scores[i] > cut) {
                    expected.push_back({position + static_cast<std::uint32_t>(i), scores[i]});
                } else {
                    expected_skipped = std::max(expected_skipped, scores[i]);
                }
            }
            const Context context("cut ", cut, ", skipped before ", skipped_before);
            std::int32_t skipped = skipped_before;
            for (std::int32_t* wanted : {&skipped, static_cast<std::int32_t*>(nullptr)}) {
                std::vector<Candidate> out(scores.size() + kBlockEntries);
                out.resize(select(cut, position, out.data(), wanted));
                CHECK_EQUAL(skipped, expected_skipped);
                CHECK(std::equal(out.begin(), out.end(), expected.begin(), expected.end(),
                                 [](const Candidate& a, const Candidate& b) {
                                     return a.position == b.position && a.score == b.score;
                                 }));
            }
        }
    }
}

// Scans the codes of the first for the queries of the first one, two, ... of `coded`.
void check_shared(const std::vector<CodedBlocks>& coded, std::size_t entries) {
    const std::vector<std::uint8_t> nearby(entries * kStageBytes);
    for (std::size_t count = 1; count <= coded.size(); ++count) {
        for (std::size_t level = 0; level < cuts_of(coded[0].scores()).size(); ++level) {
            std::vector<ScanQuery> queries;
            std::vector<std::int32_t> cuts;
            for (std::size_t q = 0; q < count; ++q) {
                const std::vector<std::int32_t> all = cuts_of(coded[q].scores());
                queries.push_back(coded[q].query());
                cuts.push_back(all[(level + q) % all.size()]);
            }
            for (const Kernels* kernels : available_kernels()) {
                const Context context(kernels->name, ", queries ", count, ", level ", level);
                const std::size_t room = entries + kBlockEntries;
                std::vector<Candidate> found(count * room);
                std::vector<Candidate*> outs;
                std::vector<std::size_t> counts(count);
                for (std::size_t q = 0; q < count; ++q) outs.push_back(found.data() + q * room);
                kernels->scan_shared_u8i8(coded[0].codes(), entries, queries.data(), count,
                                          cuts.data(), 5000u, nearby.data(), outs.data(),
                                          counts.data());
                for (std::size_t q = 0; q < count; ++q) {
                    std::size_t expected = 0;
                    for (std::size_t i = 0; i < entries; ++i) {
                        const std::int32_t score = coded[q].scores()[i];
                        if (score <= cuts[q]) continue;
                        CHECK_EQUAL(outs[q][expected].position,
                                    5000u + static_cast<std::uint32_t>(i));
                        CHECK_EQUAL(outs[q][expected].score, score);
                        ++expected;
                    }
                    CHECK_EQUAL(counts[q], expected);
                }
            }
        }
    }
}

TEST(codes_of_the_tests_reach_the_partial_limit) {
    Random random(2);
    const CodedBlocks largest(random, kBurstGroups, 1, Codes::kLargest, false);
    const CodedBlocks smallest(random, kBurstGroups, 1, Codes::kSmallest, false);
    CHECK_EQUAL(largest.scores()[0], 2 * kPartialLimit);
    CHECK_EQUAL(smallest.scores()[0], -2 * kPartialLimit);
}

TEST(score_u8i8_is_exact_in_every_family) {
    for_all_codes([](const CodedBlocks& coded, std::size_t entries) {
        const std::size_t room = (entries + kBlockEntries - 1) / kBlockEntries * kBlockEntries;
        for (const Kernels* kernels : available_kernels()) {
            const Context context(kernels->name);
            std::vector<std::int32_t> scores(room);
            const std::int32_t largest =
                kernels->score_u8i8(coded.codes(), entries, coded.query(), scores.data());
            scores.resize(entries);
            CHECK_EQUAL(largest, *std::max_element(scores.begin(), scores.end()));
            CHECK(scores == coded.scores());
        }
    });
}

TEST(scan_u8i8_selects_the_same_in_every_family) {
    for_all_codes([](const CodedBlocks& coded, std::size_t entries) {
        const std::vector<std::uint8_t> nearby(entries * kStageBytes);
        for (const Kernels* kernels : available_kernels()) {
            for (const std::uint8_t* rows :
                 {static_cast<const std::uint8_t*>(nullptr), nearby.data()}) {
                const Context context(kernels->name);
                check_selection(coded.scores(), [&](std::int32_t cut, std::uint32_t position,
                                                    Candidate* out, std::int32_t* skipped) {
                    return kernels->scan_u8i8(coded.codes(), entries, coded.query(), cut, position,
                                              rows, out, skipped);
                });
            }
        }
    });
}

// Any number of queries, each with codes and a cut of its own, finds what each finds alone.
TEST(queries_that_scan_together_find_what_they_find_alone) {
    constexpr std::size_t kQueries = 9;
    for (const std::size_t groups : kGroups) {
        for (const Codes kind : kAllCodes) {
            for (const std::size_t entries : {1, 33, 100, 1000}) {
                std::vector<CodedBlocks> coded;
                for (std::size_t q = 0; q < kQueries; ++q) {
                    Random random(7);  // the same codes for all
                    coded.emplace_back(random, groups, entries, kind, true);
                    coded.back().divide_query(static_cast<int>(q % 4 + 1));
                }
                check_shared(coded, entries);
            }
        }
    }
}

TEST(listed_blocks_are_scanned_and_chosen_from) {
    for_all_codes([](const CodedBlocks& coded, std::size_t entries) {
        Random random(5);
        std::vector<std::uint16_t> list;
        for (std::size_t block = 0; block < entries / kBlockEntries; ++block) {
            if (random.coin()) list.push_back(static_cast<std::uint16_t>(block));
        }
        const std::vector<std::uint8_t> nearby(entries * kStageBytes);
        for (const std::int32_t cut : cuts_of(coded.scores())) {
            std::vector<Candidate> expected;
            std::vector<std::uint16_t> numbers;
            for (const std::size_t block : list) {
                for (std::size_t i = block * kBlockEntries; i < (block + 1) * kBlockEntries; ++i) {
                    const std::int32_t score = coded.scores()[i];
                    if (score <= cut) continue;
                    expected.push_back({1000u + static_cast<std::uint32_t>(i), score});
                    numbers.push_back(static_cast<std::uint16_t>(i));
                }
            }
            for (const Kernels* kernels : available_kernels()) {
                const Context context(kernels->name, ", cut ", cut);
                std::vector<Candidate> out(entries + kBlockEntries);
                out.resize(kernels->scan_list_u8i8(coded.codes(), list.data(), list.size(),
                                                   list.size(), coded.query(), cut, 1000u,
                                                   nearby.data(), out.data()));
                CHECK(std::equal(out.begin(), out.end(), expected.begin(), expected.end(),
                                 [](const Candidate& a, const Candidate& b) {
                                     return a.position == b.position && a.score == b.score;
                                 }));
                std::vector<std::uint16_t> chosen(entries + kBlockEntries);
                chosen.resize(kernels->skip_cells_u8i8(coded.codes(), list.data(), list.size(),
                                                       coded.query(), cut, chosen.data()));
                CHECK(chosen == numbers);
            }
        }
    });
}

TEST(select_i32_selects_the_same_in_every_family) {
    Random random(3);
    for (const std::size_t entries : kEntries) {
        for (const int range : {0, 3, 1000000}) {
            std::vector<std::int32_t> scores(entries);
            for (std::int32_t& score : scores) score = random.between(-range, range);
            if (entries > 2) {
                scores[random.below(entries)] = kLowest + 1;
                scores[random.below(entries)] = kHighest;
            }
            // Whole blocks are read, but what lies behind the last entry does not count.
            std::vector<std::int32_t> padded = scores;
            padded.resize((entries + kBlockEntries - 1) / kBlockEntries * kBlockEntries, kHighest);
            for (const Kernels* kernels : available_kernels()) {
                const Context context(kernels->name, ", entries ", entries, ", range ", range);
                check_selection(scores, [&](std::int32_t cut, std::uint32_t position,
                                            Candidate* out, std::int32_t* skipped) {
                    return kernels->sift_i32(padded.data(), entries, cut, position, out, skipped);
                });
            }
        }
    }
}

// How many candidates a stretch of blocks has decides how the next stretch is appended.
TEST(a_crowded_block_is_found_whole_whatever_stands_before_it) {
    constexpr std::size_t kBlocks = 64;
    for (const std::size_t before : {0, 2, 3, 20, 40}) {
        std::vector<std::int32_t> scores(kBlocks * kBlockEntries, 0);
        for (std::size_t i = 0; i < before; ++i) scores[i * 5] = 1;
        for (std::size_t block = 16; block < kBlocks; block += 9) {
            std::fill_n(scores.begin() + static_cast<std::ptrdiff_t>(block * kBlockEntries),
                        kBlockEntries, 2);
        }
        for (const Kernels* kernels : available_kernels()) {
            const Context context(kernels->name, ", before ", before);
            check_selection(scores, [&](std::int32_t cut, std::uint32_t position, Candidate* out,
                                        std::int32_t* skipped) {
                return kernels->sift_i32(scores.data(), scores.size(), cut, position, out, skipped);
            });
        }
    }
}

TEST(the_nth_largest_score_is_the_same_in_every_family) {
    Random random(5);
    for (const std::size_t entries : kEntries) {
        for (const int range : {0, 3, 1000000}) {
            std::vector<std::int32_t> scores(entries);
            for (std::int32_t& score : scores) score = random.between(-range, range);
            if (entries > 2) {
                scores[random.below(entries)] = kLowest;
                scores[random.below(entries)] = kHighest;
            }
            std::vector<std::int32_t> descending = scores, padded = scores;
            std::sort(descending.begin(), descending.end(), std::greater<>());
            descending.resize(std::max(entries, kBlockEntries), kLowest);
            padded.resize(round_up(entries, kBlockEntries), kHighest);
            for (const Kernels* kernels : available_kernels()) {
                for (std::size_t n = 1; n <= kBlockEntries; ++n) {
                    const Context context(kernels->name, ", entries ", entries, ", range ", range,
                                          ", n ", n);
                    CHECK(kernels->nth_largest_i32(padded.data(), entries, n) == descending[n - 1]);
                }
            }
        }
    }
}

// A pair of codes whose sizes add up to kPairLimit.
void choose_pair(Random& random, bool extreme, std::int8_t* pair) {
    static const std::vector<int> splits{128, 127, 100, 64, 1, 0};
    const int first = extreme ? random.pick(splits) : random.between(0, kPairLimit);
    const int second = kPairLimit - first;
    pair[0] = static_cast<std::int8_t>(random.coin() ? -first : std::min(first, 127));
    pair[1] = static_cast<std::int8_t>(random.coin() ? -second : std::min(second, 127));
}

// The contenders after a stage, all of them; bounds add up in the order of the documented sum.
std::vector<Contender> plain_stage(const StageArguments& request,
                                   std::vector<Contender> contenders) {
    for (Contender& contender : contenders) {
        const std::uint8_t* row =
            request.rows + (contender.position - request.first_position) * request.row_bytes;
        for (std::size_t j = 0; j < kStageBytes; ++j) contender.minor += row[j] * request.query[j];
        contender.bound = request.base + request.major_scale * contender.major;
        contender.bound += request.minor_scale * (contender.minor - request.correction);
        contender.bound += request.tail_scale * row[kStageBytes - 1];
    }
    return contenders;
}

bool same_contender(const Contender& a, const Contender& b) {
    return a.position == b.position && a.major == b.major && a.minor == b.minor &&
           same_bits(a.bound, b.bound);
}

// The first stage starts from candidates, whose minors are zero still.
std::vector<Candidate> as_candidates(std::vector<Contender>& contenders) {
    std::vector<Candidate> candidates;
    for (Contender& contender : contenders) {
        contender.minor = 0;
        candidates.push_back({contender.position, contender.major});
    }
    return candidates;
}

void check_stage(const StageArguments& request, const std::vector<Contender>& before, bool first) {
    const std::vector<Contender> all = plain_stage(request, before);
    const double middle = all.empty() ? 0.0 : all[all.size() / 2].bound;  // reached by that one
    for (const double threshold :
         {-kInfinity, middle, std::nextafter(middle, kInfinity), kInfinity}) {
        std::vector<Contender> expected;
        double expected_skipped = -1e300;
        for (const Contender& contender : all) {
            if (contender.bound >= threshold) {
                expected.push_back(contender);
            } else {
                expected_skipped = std::max(expected_skipped, contender.bound);
            }
        }
        for (const Kernels* kernels : available_kernels()) {
            const Context context(kernels->name, ", threshold ", threshold);
            std::vector<Contender> left = before;
            double skipped = -1e300;
            if (first) {
                const std::vector<Candidate> candidates = as_candidates(left);
                left.resize(kernels->tighten_first_u8i8(request, threshold, candidates.data(),
                                                        candidates.size(), left.data(), &skipped));
            } else {
                left.resize(kernels->tighten_next_u8i8(request, threshold, left.data(), left.size(),
                                                       &skipped));
            }
            CHECK(same_bits(skipped, expected_skipped));
            CHECK(std::equal(left.begin(), left.end(), expected.begin(), expected.end(),
                             same_contender));
        }
    }
}

TEST(the_stages_have_the_same_bounds_in_every_family) {
    Random random(4);
    constexpr std::size_t kRows = 50;
    for (std::size_t row_bytes = 1; row_bytes <= kStageBytes; ++row_bytes) {
        for (const bool extreme : {false, true}) {
            std::vector<std::uint8_t> rows((kRows - 1) * row_bytes + kStageBytes);
            for (std::uint8_t& byte : rows) {
                byte = static_cast<std::uint8_t>(extreme ? random.between(0, 1) * 255
                                                         : random.between(0, 255));
            }
            const bool last = row_bytes < kStageBytes || random.coin();
            std::int8_t query[kStageBytes + 1] = {};
            for (std::size_t j = 0; j < row_bytes; j += 2) choose_pair(random, extreme, query + j);
            std::fill(query + row_bytes, query + kStageBytes, std::int8_t{0});
            if (!last) query[kStageBytes - 1] = 0;
            const StageArguments request{rows.data(),
                                         row_bytes,
                                         0x80000000u,
                                         query,
                                         random.normal(),
                                         1e-3 * random.uniform(),
                                         random.uniform(),
                                         random.between(-99999, 99999),
                                         last ? 0.0 : 10.0 * random.uniform()};
            for (const std::size_t count : {0, 1, 3, 4, 8, 9, 16, 40}) {
                const Context context("row_bytes ", row_bytes, ", last ", last, ", count ", count);
                std::vector<Contender> before(count);
                for (Contender& contender : before) {
                    contender = {
                        request.first_position + static_cast<std::uint32_t>(random.below(kRows)),
                        random.between(-65534, 65534), random.between(-1000000, 1000000), 0.0};
                }
                check_stage(request, before, false);
                as_candidates(before);
                check_stage(request, before, true);
            }
        }
    }
}

}  // namespace
}  // namespace hiernorm::testing
