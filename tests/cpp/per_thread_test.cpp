// What a thread keeps is its own, and goes with it.
#include "per_thread.hpp"

#include <atomic>
#include <thread>

#include "check.hpp"

namespace hiernorm::testing {
namespace {

std::atomic<int> alive{0};

struct Counted {
    int value = 0;
    Counted() { ++alive; }
    ~Counted() { --alive; }
};

struct Other;

TEST(a_thread_keeps_objects_of_its_own_and_deletes_them_when_it_ends) {
    kept_by_thread<Counted, Other>().value = 1;
    const int before = alive;
    std::thread([&] {
        prepare_thread();
        CHECK_EQUAL(kept_by_thread<Counted>().value, 0);
        CHECK_EQUAL((kept_by_thread<Counted, Other>().value), 0);
        kept_by_thread<Counted>().value = 2;
        CHECK_EQUAL(kept_by_thread<Counted>().value, 2);
        CHECK_EQUAL((kept_by_thread<Counted, Other>().value), 0);
        CHECK_EQUAL(alive.load(), before + 2);
    }).join();
    CHECK_EQUAL(alive.load(), before);
    CHECK_EQUAL((kept_by_thread<Counted, Other>().value), 1);
}

}  // namespace
}  // namespace hiernorm::testing
