// A search like one that has run before allocates nothing for its queries.
#include <atomic>
#include <cstdlib>
#include <new>

#include "check.hpp"
#include "collection.hpp"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(void* memory) {
    ++allocations;
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

// Of the whole test program; the other forms of new and delete call these.
void* operator new(std::size_t bytes) { return counted(std::malloc(bytes == 0 ? 1 : bytes)); }
void* operator new(std::size_t bytes, std::align_val_t align) {
    const auto multiple = static_cast<std::size_t>(align);
    return counted(std::aligned_alloc(multiple, (bytes + multiple - 1) / multiple * multiple));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace hiernorm::testing {
namespace {

// Allocations of a search whose answers, and the buffers of whose thread, served one like it.
std::size_t allocations_of(const Index& index, const SearchRequest& request,
                           const Collection& asked, std::size_t batch_size) {
    Answers answers;
    std::size_t counted_before = 0;
    for (int time = 0; time < 3; ++time) {
        counted_before = allocations;
        index.search(request, asked.queries.data(), asked.asked(), 1, batch_size, answers);
    }
    return allocations - counted_before;
}

}  // namespace

TEST(a_search_that_has_run_before_allocates_nothing) {
    Random random(17);
    for (const Kind kind : kAllKinds) {
        constexpr std::size_t kSize = 3 * kTileEntries;
        const Collection asked =
            make_collection(random, kind, kSize, 32, 8, Metric::kInnerProduct, 40);
        for (const CellUse cells : {CellUse::kNever, CellUse::kAlways}) {
            Index index({asked.dim, asked.metric, EngineKind::kCascade, 0.2, cells});
            index.set_encoding(asked.encoding(kSize, kind != Kind::kHierarchical));
            asked.add_to(index, 0, kSize);
            for (const std::size_t k : {1, 10}) {
                for (const std::size_t batch_size : {0, 1, 16}) {
                    const Context context("k ", k, ", batch ", batch_size);
                    SearchRequest request;
                    request.k = k;
                    CHECK_EQUAL(allocations_of(index, request, asked, batch_size), 0u);
                }
            }
        }
    }
}

}  // namespace hiernorm::testing
