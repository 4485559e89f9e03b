// Runs the registered tests: core_tests [PART OF A NAME].
#include <atomic>
#include <cstdio>
#include <cstring>

#include "check.hpp"
#include "kernels/kernels.hpp"

namespace hiernorm::testing {
namespace {

constexpr int kShown = 5;  // failures printed per test
std::atomic<int> failures{0};

bool passes(const Test& test) {
    failures = 0;
    try {
        test.run();
    } catch (const std::exception& error) {
        fail(std::string("unexpected exception: ") + error.what(), std::source_location::current());
    }
    std::printf("%s  %s\n", failures == 0 ? "ok    " : "FAILED", test.name);
    std::fflush(stdout);
    return failures == 0;
}

}  // namespace

std::vector<Test>& registry() {
    static std::vector<Test> tests;
    return tests;
}

void fail(std::string_view what, std::source_location where) {
    if (failures++ >= kShown) return;
    const std::string& context = Context::current();
    std::printf("%s:%u: %.*s%s%s\n", where.file_name(), static_cast<unsigned>(where.line()),
                static_cast<int>(what.size()), what.data(), context.empty() ? "" : "\n    for ",
                context.c_str());
}

}  // namespace hiernorm::testing

int main(int count, char** arguments) {
    using namespace hiernorm;
    std::printf("kernels:");
    for (const Kernels* kernels : available_kernels()) {
        std::printf(" %.*s", static_cast<int>(kernels->name.size()), kernels->name.data());
    }
    std::printf("\n");
    int passed = 0, failed = 0;
    for (const testing::Test& test : testing::registry()) {
        if (count > 1 && std::strstr(test.name, arguments[1]) == nullptr) continue;
        ++(testing::passes(test) ? passed : failed);
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 && passed != 0 ? 0 : 1;
}
