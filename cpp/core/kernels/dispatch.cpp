// Chooses the kernel family once, at run time.
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/kernels.hpp"

#if defined(HIERNORM_X86)
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#endif
#if defined(HIERNORM_ARM64) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace hiernorm {

extern const Kernels kScalarKernels;
#if defined(HIERNORM_X86)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;
#endif
#if defined(HIERNORM_ARM64)
extern const Kernels kNeonKernels;
#endif

namespace {

#if defined(HIERNORM_X86)

struct CpuidRegisters {
    unsigned eax, ebx, ecx, edx;
};

CpuidRegisters cpuid(unsigned leaf) {
    CpuidRegisters r{};
#if defined(_MSC_VER)
    int out[4];
    __cpuidex(out, static_cast<int>(leaf), 0);
    r = {static_cast<unsigned>(out[0]), static_cast<unsigned>(out[1]),
         static_cast<unsigned>(out[2]), static_cast<unsigned>(out[3])};
#else
    __cpuid_count(leaf, 0, r.eax, r.ebx, r.ecx, r.edx);
#endif
    return r;
}

// The register state that the operating system saves (XCR0).
unsigned long long saved_state() {
#if defined(_MSC_VER)
    return _xgetbv(0);
#else
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<unsigned long long>(high) << 32) | low;
#endif
}

void add_x86(std::vector<const Kernels*>& found) {
    const auto bit = [](unsigned word, int index) { return ((word >> index) & 1u) != 0; };
    const unsigned leaves = cpuid(0).eax;
    if (leaves < 7 || !bit(cpuid(1).ecx, 27)) return;  // no OSXSAVE
    const unsigned long long saved = saved_state();
    const CpuidRegisters seven = cpuid(7);
    if ((saved & 0x6) != 0x6 || !bit(seven.ebx, 5)) return;
    found.push_back(&kAvx2Kernels);
    const bool f = bit(seven.ebx, 16), dq = bit(seven.ebx, 17), bw = bit(seven.ebx, 30),
               vl = bit(seven.ebx, 31);
    if ((saved & 0xe6) != 0xe6 || !(f && dq && bw && vl)) return;
    found.push_back(&kAvx512Kernels);
    if (bit(seven.ecx, 11)) found.push_back(&kAvx512VnniKernels);
}

#endif

#if defined(HIERNORM_ARM64)

bool has_dot_product() {
#if defined(__linux__)
    constexpr unsigned long kAsimdDp = 1ul << 20;
    return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
#else
    return true;  // every Apple and Windows arm64 processor that runs a supported system has it
#endif
}

#endif

std::vector<const Kernels*> find_kernels() {
    std::vector<const Kernels*> found{&kScalarKernels};
#if defined(HIERNORM_X86)
    add_x86(found);
#endif
#if defined(HIERNORM_ARM64)
    if (has_dot_product()) found.push_back(&kNeonKernels);
#endif
    return found;
}

const Kernels& kernels_named(std::string_view name) {
    std::string known;
    for (const Kernels* kernels : available_kernels()) {
        if (kernels->name == name) return *kernels;
        known += (known.empty() ? "" : ", ") + std::string(kernels->name);
    }
    throw std::invalid_argument("instruction set '" + std::string(name) +
                                "' cannot run here; available: " + known);
}

const Kernels& first_choice() {
    const char* forced = std::getenv("HIERNORM_ISA");
    if (forced != nullptr && *forced != '\0') return kernels_named(forced);
    return *available_kernels().back();
}

std::atomic<const Kernels*>& active() {
    static std::atomic<const Kernels*> chosen{&first_choice()};
    return chosen;
}

}  // namespace

std::span<const Kernels* const> available_kernels() {
    static const std::vector<const Kernels*> found = find_kernels();
    return found;
}

const Kernels& active_kernels() { return *active().load(std::memory_order_relaxed); }

void use_kernels(std::string_view name) { active().store(&kernels_named(name)); }

}  // namespace hiernorm
