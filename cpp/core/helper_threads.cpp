// The helpers that wait, and the life of one.
#include "helper_threads.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "per_thread.hpp"
#include "spare_memory.hpp"
#include "spin.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define HIERNORM_FORKS
#endif

namespace hiernorm {
namespace {

// Memory that must be left for a thread to be started: the C library ends the process if it finds
// none for the variables of a thread.
constexpr std::size_t kSpareBytes = std::size_t{1} << 22;

}  // namespace

// Called: it has a job that it has not begun.
enum class HelperState { kNew, kIdle, kBorrowed, kCalled, kBusy, kDone };

class HelperThread {
   public:
    std::atomic<HelperState> state = HelperState::kNew;  // changes under the mutex
    HelperJob job;
    HelperThread* next = nullptr;  // among the idle ones
    std::condition_variable changed;
};

namespace {

struct Helpers {
    std::mutex mutex;
    HelperThread* idle = nullptr;

    void put(HelperThread& helper) {
        helper.state = HelperState::kIdle;
        helper.next = idle;
        idle = &helper;
    }

    void remove(const HelperThread& helper) {
        HelperThread** place = &idle;
        while (*place != &helper) place = &(*place)->next;
        *place = helper.next;
    }
};

// Never deleted: helpers may wait when the process ends.
Helpers* all = nullptr;

// A child process has no threads but the one that forked, which may not have held the mutex.
void forget_helpers() { all = new (std::nothrow) Helpers; }

Helpers* helpers() {
    static const bool made = [] {
        forget_helpers();
#ifdef HIERNORM_FORKS
        pthread_atfork(nullptr, nullptr, forget_helpers);
#endif
        return true;
    }();
    return made ? all : nullptr;
}

// Takes jobs until none has come for a while.
void live(HelperThread* self, Helpers* among) {
    prepare_thread();
    std::unique_lock lock(among->mutex);
    self->state = HelperState::kBorrowed;
    self->changed.notify_all();
    for (;;) {
        while (self->state != HelperState::kCalled) {
            const bool called = self->changed.wait_for(
                lock, kHelperPause, [&] { return self->state == HelperState::kCalled; });
            if (called || self->state != HelperState::kIdle) continue;
            among->remove(*self);
            lock.unlock();
            delete self;
            return;
        }
        self->state = HelperState::kBusy;
        lock.unlock();
        self->job.run(self->job.with);
        lock.lock();
        self->state = HelperState::kDone;
        self->changed.notify_all();
    }
}

// Null if the system refuses.
HelperThread* start_helper(Helpers& among) {
    HelperThread* helper = nullptr;
    try {
        helper = new HelperThread;
        const SpareMemory spare(kSpareBytes);
        if (!spare) throw std::bad_alloc();
        std::thread(live, helper, &among).detach();
    } catch (const std::exception&) {  // system_error of the thread, or bad_alloc
        delete helper;
        return nullptr;
    }
    // Until it has the memory that it needs: what comes next may take all that is left.
    std::unique_lock lock(among.mutex);
    helper->changed.wait(lock, [&] { return helper->state != HelperState::kNew; });
    return helper;
}

}  // namespace

BorrowedHelper::BorrowedHelper() : helper_(nullptr) {
    Helpers* const among = helpers();
    if (among == nullptr) return;
    {
        const std::lock_guard lock(among->mutex);
        helper_ = among->idle;
        if (helper_ != nullptr) {
            among->idle = helper_->next;
            helper_->state = HelperState::kBorrowed;
            return;
        }
    }
    helper_ = start_helper(*among);
}

BorrowedHelper::~BorrowedHelper() {
    if (helper_ == nullptr) return;
    Helpers& among = *helpers();
    std::unique_lock lock(among.mutex);
    helper_->changed.wait(lock, [&] { return helper_->state != HelperState::kBusy; });
    among.put(*helper_);
}

void BorrowedHelper::run(HelperJob job) {
    const std::lock_guard lock(helpers()->mutex);
    helper_->job = job;
    helper_->state = HelperState::kCalled;
    helper_->changed.notify_all();
}

bool BorrowedHelper::finish(std::chrono::milliseconds pause) {
    spin_until([&] { return helper_->state != HelperState::kBusy; });
    std::unique_lock lock(helpers()->mutex);
    if (helper_->state == HelperState::kCalled) helper_->state = HelperState::kBorrowed;
    return helper_->changed.wait_for(lock, pause,
                                     [&] { return helper_->state != HelperState::kBusy; });
}

std::size_t idle_helpers() {
    Helpers& among = *helpers();
    const std::lock_guard lock(among.mutex);
    std::size_t count = 0;
    for (const HelperThread* helper = among.idle; helper != nullptr; helper = helper->next) ++count;
    return count;
}

}  // namespace hiernorm
