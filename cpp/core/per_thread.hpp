// What a thread keeps from one call to the next: buffers, mostly.
//
// A `thread_local` object with a destructor registers it when it is first used, and the C library
// ends the process if it has no memory for that. Here one registration serves all objects of a
// thread. prepare_thread() makes it, before the work needs memory; an object that finds none later
// throws std::bad_alloc.
#pragma once

namespace hiernorm {

// An object of a thread; deleted when the thread ends.
struct PerThread {
    virtual ~PerThread() = default;
    PerThread* before = nullptr;
};

// Has made what the C and C++ libraries make when a thread first uses its variables, throws an
// exception, or registers a destructor. Each of them would end the process without memory.
void prepare_thread();

// Deletes the object when the calling thread ends.
void delete_with_thread(PerThread* object);

// The T of the calling thread that belongs to Tag, made by the first call.
template <class T, class Tag = T>
T& kept_by_thread() {
    struct Object final : PerThread {
        T value{};
    };
    thread_local Object* object = nullptr;
    if (object == nullptr) {
        object = new Object;
        delete_with_thread(object);
    }
    return object->value;
}

}  // namespace hiernorm
