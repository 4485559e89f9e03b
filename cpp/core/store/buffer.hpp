// A growable array of plain values, aligned to cache lines and, where large, backed by huge pages.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hiernorm {

template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

   public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          capacity_(std::exchange(other.capacity_, 0)),
          borrowed_(std::exchange(other.borrowed_, false)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(capacity_, other.capacity_);
        std::swap(borrowed_, other.borrowed_);
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { release(); }

    // Reads memory of someone else, who keeps it alive; nobody may write to it.
    static Buffer borrow(const T* data, std::size_t count) {
        Buffer buffer;
        buffer.data_ = const_cast<T*>(data);
        buffer.capacity_ = count;
        buffer.borrowed_ = true;
        return buffer;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    std::size_t capacity() const { return capacity_; }
    std::size_t nbytes() const { return borrowed_ ? 0 : capacity_ * sizeof(T); }

    // Grows to at least `count` values; what was there stays, the rest is undefined.
    void grow(std::size_t count) {
        if (count <= capacity_) return;
        T* larger = allocate(count);
        if (capacity_ != 0) std::memcpy(larger, data_, capacity_ * sizeof(T));
        release();
        data_ = larger;
        capacity_ = count;
        borrowed_ = false;
    }

    // The same for memory that serves again and again: what grows once more doubles.
    void grow_geometrically(std::size_t count) {
        if (count > capacity_) grow(count > 2 * capacity_ ? count : 2 * capacity_);
    }

    // The same with the rest zero, for arrays that kernels read in whole blocks.
    void grow_zeroed(std::size_t count) {
        const std::size_t before = capacity_;
        grow(count);
        if (capacity_ > before) {
            std::memset(static_cast<void*>(data_ + before), 0, (capacity_ - before) * sizeof(T));
        }
    }

   private:
    static constexpr std::size_t kLine = 64;
    static constexpr std::size_t kHugePage = std::size_t{1} << 21;

    static std::size_t alignment(std::size_t count) {
        return count * sizeof(T) >= kHugePage ? kHugePage : kLine;
    }

    static T* allocate(std::size_t count) {
        const std::size_t align = alignment(count);
        const std::size_t bytes = (count * sizeof(T) + align - 1) / align * align;
        void* memory = ::operator new(bytes, std::align_val_t{align});
#if defined(__linux__)
        if (align == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
        return static_cast<T*>(memory);
    }

    void release() {
        if (borrowed_ || data_ == nullptr) return;
        ::operator delete(data_, std::align_val_t{alignment(capacity_)});
    }

    T* data_ = nullptr;
    std::size_t capacity_ = 0;
    bool borrowed_ = false;
};

}  // namespace hiernorm
