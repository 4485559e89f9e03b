// A search: what is asked, what is answered, and the work that it took.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <vector>

#include "search/mask.hpp"
#include "search/results.hpp"
#include "store/buffer.hpp"

namespace hiernorm {

// What is asked of every query of a call: the k best, or (range) all from `threshold` up.
struct SearchRequest {
    std::size_t k = 1;
    bool range = false;
    double threshold = 0.0;
    bool soft = false;  // `beta` stands in for the minor's share in the first bound
    double beta = 0.0;
    bool use_cells = true;  // where there are any
    Mask mask;              // of the entries that may be returned
};

// What one query's search did and proved: the counts of its certificate, named after the steps.
struct SearchStats {
    std::uint64_t cells = 0;            // that were not skipped; 0 without cells
    std::uint64_t scanned = 0;          // entries whose major was read
    std::uint64_t sifted = 0;           // entries whose major could not rule them out (phase 2)
    std::uint64_t tightened = 0;        // of those, entries that the minor codes could not rule out
    std::uint64_t settled = 0;          // canonical scores computed: float32 rows read
    double skipped_bound = -kInfinity;  // no entry without a canonical score scores higher

    // Takes in the search of other entries for the same query.
    void add(const SearchStats& other) {
        cells += other.cells;
        scanned += other.scanned;
        sifted += other.sifted;
        tightened += other.tightened;
        settled += other.settled;
        skipped_bound = std::max(skipped_bound, other.skipped_bound);
    }
};

struct Answer {
    Results results;
    SearchStats stats;
};

// The answers of a call, one per query; the hits of all of them lie in one buffer.
class Answers {
   public:
    Answers() = default;
    Answers(const SearchRequest& request, std::size_t count) { reset(request, count); }

    // Empty answers that know what is wanted. Memory of earlier answers is used again.
    void reset(const SearchRequest& request, std::size_t count) {
        answers_.resize(count);
        if (request.range) {
            for (Answer& answer : answers_) answer.results.want_from(request.threshold);
        } else {
            if (request.k != 0 &&
                count > std::numeric_limits<std::size_t>::max() / sizeof(Hit) / request.k) {
                throw std::bad_alloc();
            }
            hits_.grow_geometrically(count * request.k);
            Hit* room = hits_.data();
            for (Answer& answer : answers_) {
                answer.results.want_best({room, request.k});
                room += request.k;
            }
        }
        for (Answer& answer : answers_) answer.stats = {};
    }

    // What only a large call needs is not kept.
    void shrink() {
        constexpr std::size_t kQueriesKept = 4096, kHitsKept = std::size_t{1} << 16;
        if (answers_.size() > kQueriesKept) *this = {};
        if (hits_.capacity() > kHitsKept) hits_ = {};
    }

    std::size_t size() const { return answers_.size(); }
    Answer& operator[](std::size_t i) { return answers_[i]; }
    auto begin() { return answers_.begin(); }
    auto end() { return answers_.end(); }
    std::span<Answer> all() { return answers_; }
    std::span<const Answer> all() const { return answers_; }

   private:
    std::vector<Answer> answers_;
    Buffer<Hit> hits_;
};

}  // namespace hiernorm
