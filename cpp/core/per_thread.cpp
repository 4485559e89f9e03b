// The objects of a thread, and what must be made before memory runs out.
#include "per_thread.hpp"

#include <exception>
#include <utility>

namespace hiernorm {
namespace {

struct Objects {
    PerThread* last = nullptr;

    Objects() = default;
    Objects(const Objects&) = delete;
    Objects& operator=(const Objects&) = delete;
    ~Objects() {
        while (last != nullptr) delete std::exchange(last, last->before);
    }
};

thread_local Objects objects;

}  // namespace

void prepare_thread() {
    // Compilers leave a call out whose result is not used: the function is declared pure.
    [[maybe_unused]] const volatile int made = std::uncaught_exceptions();
    [[maybe_unused]] PerThread* const volatile last = objects.last;
}

void delete_with_thread(PerThread* object) {
    object->before = objects.last;
    objects.last = object;
}

}  // namespace hiernorm
