// Memory that is held back while threads are started, and left to them then.
#pragma once

#include <cstddef>
#include <new>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#define HIERNORM_MAPS_MEMORY
#endif

namespace hiernorm {

// Pages of the system: what a heap holds back helps the threads of that heap only.
class SpareMemory {
   public:
    explicit SpareMemory(std::size_t bytes) : bytes_(bytes) {
#ifdef HIERNORM_MAPS_MEMORY
        void* const mapped =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped != MAP_FAILED) memory_ = mapped;
#else
        memory_ = ::operator new(bytes, std::nothrow);
#endif
    }
    ~SpareMemory() {
        if (memory_ == nullptr) return;
#ifdef HIERNORM_MAPS_MEMORY
        munmap(memory_, bytes_);
#else
        ::operator delete(memory_);
#endif
    }
    SpareMemory(const SpareMemory&) = delete;
    SpareMemory& operator=(const SpareMemory&) = delete;

    // Whether there was as much.
    explicit operator bool() const { return memory_ != nullptr; }

   private:
    std::size_t bytes_;
    void* memory_ = nullptr;
};

}  // namespace hiernorm
