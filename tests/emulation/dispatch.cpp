// Stands in for cpp/core/kernels/dispatch.cpp: scalar and the emulated families, whatever the
// processor, so that core_tests runs all of its tests with them.
#include <atomic>
#include <stdexcept>
#include <string>

#include "kernels/kernels.hpp"

namespace hiernorm {

extern const Kernels kScalarKernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;

namespace {

constexpr const Kernels* kFamilies[] = {&kScalarKernels, &kAvx512Kernels, &kAvx512VnniKernels};
std::atomic<const Kernels*> active{&kAvx512VnniKernels};

}  // namespace

std::span<const Kernels* const> available_kernels() { return kFamilies; }

const Kernels& active_kernels() { return *active; }

void use_kernels(std::string_view name) {
    for (const Kernels* kernels : kFamilies) {
        if (kernels->name != name) continue;
        active = kernels;
        return;
    }
    throw std::invalid_argument("instruction set '" + std::string(name) +
                                "' cannot run here; available: scalar, avx512, avx512vnni");
}

}  // namespace hiernorm
