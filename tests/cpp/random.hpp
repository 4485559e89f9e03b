// Random numbers that are the same with every compiler and standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hiernorm::testing {

class Random {
   public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t bits() {  // splitmix64
        state_ += 0x9e3779b97f4a7c15ull;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t count) { return static_cast<std::size_t>(bits() % count); }
    int between(int first, int last) {
        return first + static_cast<int>(below(static_cast<std::size_t>(last - first + 1)));
    }
    bool coin() { return (bits() & 1) != 0; }
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
    double normal() {  // Irwin-Hall
        double sum = -6.0;
        for (int i = 0; i < 12; ++i) sum += uniform();
        return sum;
    }
    template <class T>
    const T& pick(const std::vector<T>& values) {
        return values[below(values.size())];
    }

   private:
    std::uint64_t state_;
};

}  // namespace hiernorm::testing
