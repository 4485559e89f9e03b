// Cycles of the integer kernels: one JSON object per line, for experiments/speed/kernels.py.
//
//   kernel_benchmark ROUNDS      the least of so many rounds counts
//
// A cycle is the time of one addition in a chain of dependent additions, measured beside the
// kernels: it follows the clock of the processor, whatever that is now.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"
#include "store/buffer.hpp"

namespace hiernorm {
namespace {

constexpr std::int32_t kHighCut = 1 << 30;  // no entry passes

std::uint32_t next_random() {
    static std::uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

template <class Run>
double least_seconds(std::size_t rounds, Run run) {
    using Clock = std::chrono::steady_clock;
    double least = 1e300;
    for (std::size_t round = 0; round < rounds; ++round) {
        const Clock::time_point start = Clock::now();
        run();
        const std::chrono::duration<double> taken = Clock::now() - start;
        least = taken.count() < least ? taken.count() : least;
    }
    return least;
}

double seconds_per_cycle(std::size_t rounds) {
    constexpr std::size_t kAdditions = 100'000;
    return least_seconds(rounds,
                         [] {
                             std::size_t sum = 0, one = 1;
                             for (std::size_t i = 0; i < kAdditions; i += 8) {
                                 for (int step = 0; step < 8; ++step) {
                                     asm volatile("" : "+r"(sum), "+r"(one));
                                     sum += one;
                                 }
                             }
                             asm volatile("" : : "r"(sum));
                         }) /
           kAdditions;
}

void print(const char* kernel, const Kernels& family, std::size_t slots, std::size_t entries,
           std::size_t queries, double cycles) {
    std::printf(
        "{\"kernel\": \"%s\", \"family\": \"%s\", \"slots\": %zu, \"entries\": %zu, "
        "\"queries\": %zu, \"cycles\": %.3f}\n",
        kernel, std::string(family.name).c_str(), slots, entries, queries, cycles);
}

// Per block of 16 entries and query; tiles of 2,048 entries, again and again.
void measure_scans(std::size_t slots, std::size_t entries, std::size_t rounds) {
    Buffer<std::uint8_t> codes;
    codes.grow_zeroed(entries * slots + 4096);
    for (std::size_t i = 0; i < entries * slots; ++i) {
        codes[i] = static_cast<std::uint8_t>(next_random());
    }
    std::vector<std::int8_t> query(slots);
    for (std::int8_t& code : query) code = static_cast<std::int8_t>(next_random() % 64);
    const std::vector<std::int16_t> halves(slots, 0);
    const ScanQuery one{query.data(), slots / kGroupSlots, halves.data(), 0, 0};
    const std::vector<ScanQuery> queries(kSharedQueries, one);
    const std::vector<std::int32_t> cuts(kSharedQueries, kHighCut);
    std::vector<Candidate> found(kSharedQueries * (kTileEntries + kBlockEntries));
    Candidate* outs[kSharedQueries];
    std::size_t counts[kSharedQueries];
    for (std::size_t q = 0; q < kSharedQueries; ++q) {
        outs[q] = found.data() + q * (kTileEntries + kBlockEntries);
    }
    const std::size_t repeats = entries <= kTileEntries ? 16 : 1;
    const auto blocks = static_cast<double>(repeats * entries / kBlockEntries);
    const auto each_tile = [&](auto scan) {
        for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
            for (std::size_t first = 0; first < entries; first += kTileEntries) {
                scan(codes.data() + first * slots);
            }
        }
    };
    for (const Kernels* family : available_kernels()) {
        if (family->name == "scalar") continue;
        const double alone = least_seconds(rounds, [&] {
            each_tile([&](const std::uint8_t* tile) {
                family->scan_u8i8(tile, kTileEntries, one, kHighCut, 0, nullptr, outs[0], nullptr);
            });
        });
        const double together = least_seconds(rounds, [&] {
            each_tile([&](const std::uint8_t* tile) {
                family->scan_shared_u8i8(tile, kTileEntries, queries.data(), kSharedQueries,
                                         cuts.data(), 0, nullptr, outs, counts);
            });
        });
        const double cycle = seconds_per_cycle(rounds);
        print("scan", *family, slots, entries, 1, alone / blocks / cycle);
        print("scan", *family, slots, entries, kSharedQueries,
              together / blocks / kSharedQueries / cycle);
    }
}

// Per candidate of the first stage, with its 64 bytes in the cache.
void measure_stage(std::size_t rounds) {
    constexpr std::size_t kCandidates = 1024;
    std::vector<std::uint8_t> rows(kCandidates * kStageBytes);
    for (std::uint8_t& code : rows) code = static_cast<std::uint8_t>(next_random());
    std::vector<std::int8_t> query(kStageBytes, 11);
    std::vector<Candidate> candidates;
    for (std::uint32_t i = 0; i < kCandidates; ++i) candidates.push_back({i, 100});
    std::vector<Contender> contenders(kCandidates);
    const StageArguments stage{.rows = rows.data(),
                               .row_bytes = kStageBytes,
                               .query = query.data(),
                               .major_scale = 1e-4,
                               .minor_scale = 1e-4,
                               .tail_scale = 1e-5};
    for (const Kernels* family : available_kernels()) {
        if (family->name == "scalar") continue;
        double skipped = -1e300;
        const double seconds = least_seconds(rounds, [&] {
            family->tighten_first_u8i8(stage, 1e300, candidates.data(), kCandidates,
                                       contenders.data(), &skipped);
        });
        print("tighten", *family, kStageBytes, kCandidates, 1,
              seconds / kCandidates / seconds_per_cycle(rounds));
    }
}

}  // namespace
}  // namespace hiernorm

int main(int count, char** arguments) {
    const std::size_t rounds = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 100;
    for (const std::size_t slots : {16, 32, 128, 256}) {
        for (const std::size_t entries : {2'048, 16'384, 98'304}) {
            hiernorm::measure_scans(slots, entries, rounds);
        }
    }
    hiernorm::measure_stage(rounds);
}
