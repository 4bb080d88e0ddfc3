// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Who may touch a domain. Two kinds of party:
//   the application, through calls on the domain's objects (enter / leave);
//   outsiders: the progress thread and readers of an event queue (Outsider).
// With threading level FI_THREAD_DOMAIN the application promises one caller
// at a time; then enter() is two plain stores and a load, and an outsider pays
// for both with membarrier(2). With FI_THREAD_SAFE it is a lock and a load.
#ifndef DAT_ENGINE_BIASED_LOCK_H
#define DAT_ENGINE_BIASED_LOCK_H

#include "engine/lock.h"

#include <atomic>
#include <mutex>

namespace dat::engine {

class BiasedLock {
  public:
    // `shared`: the application may call from several threads at once.
    explicit BiasedLock(bool shared);

    // The application's side. Never blocks for longer than an outsider holds the
    // lock, which does not sleep while it does. Not recursive.
    void enter() {
        // A store, then a load of another variable: the processor may swap them unless
        // the other side fences for both, by membarrier(2). Where that is refused each
        // enter() has to fence for itself.
        if (plain_) [[likely]] {
            occupy_plain();
        } else {
            enter_otherwise();
        }
        let_in();
    }
    [[gnu::always_inline]] void leave() {
        if (shared_) [[unlikely]] {
            callers_.unlock();
        } else {
            inside_.store(false, std::memory_order_release);
        }
    }

    // The same where that is all that is to be done. False: enter() has to. Where it was true,
    // leave_plain() leaves.
    [[gnu::always_inline]] bool try_enter() {
        if (!plain_) {
            return false;
        }
        occupy_plain();
        if (wanted_.load(std::memory_order_seq_cst)) [[unlikely]] {
            leave_plain();
            return false;
        }
        return true;
    }
    void leave_plain() { inside_.store(false, std::memory_order_release); }

    // The same for a lock that was made `shared`, which is not asked again.
    void enter_shared() {
        callers_.lock();
        let_in();
    }
    void leave_shared() { callers_.unlock(); }

    void outsider_enter();
    void outsider_leave();

    // The application is in a call at this moment. From any thread.
    bool is_occupied() const {
        return shared_ ? callers_.is_held() : inside_.load(std::memory_order_seq_cst);
    }

  private:
    void enter_otherwise() {
        if (shared_) {
            callers_.lock();
        } else {
            inside_.store(true, std::memory_order_seq_cst);
        }
    }
    void occupy_plain() {
        inside_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    void let_in() {
        if (wanted_.load(std::memory_order_seq_cst)) [[unlikely]] {
            give_way();
        }
    }
    void give_way();

    // Of a shared lock: held while the application is between enter and leave. First, so that
    // a call that holds it has to keep but one address.
    Lock callers_;
    std::atomic<bool> inside_{false}; // of another: it is
    const bool shared_;
    const bool plain_;           // not shared_, and membarrier works
    std::atomic<int> wanted_{0}; // outsiders that wait for or hold the lock
    std::mutex outsiders_;       // one of them at a time holds it
};

// Inside the lock as long as it lives, or until leave().
template <auto Enter, auto Leave> class InsideBiasedLock {
  public:
    explicit InsideBiasedLock(BiasedLock& biased_lock) : biased_lock_(&biased_lock) {
        (biased_lock_->*Enter)();
    }
    // Inlined where it unwinds as well: so no call needs its address, nor keeps it in memory.
    [[gnu::always_inline]] ~InsideBiasedLock() {
        if (biased_lock_) {
            leave();
        }
    }
    InsideBiasedLock(const InsideBiasedLock&) = delete;
    InsideBiasedLock& operator=(const InsideBiasedLock&) = delete;
    [[gnu::always_inline]] void leave() {
        (biased_lock_->*Leave)();
        biased_lock_ = nullptr;
    }

  private:
    BiasedLock* biased_lock_;
};
// Inside the lock of `object` as long as it lives, where try_enter() says so. Keeps no more than
// the object, which its owner needs anyway.
template <class Object> class InsideAtOnce {
  public:
    [[gnu::always_inline]] explicit InsideAtOnce(Object& object)
        : object_(object), inside_(object.biased_lock().try_enter()) {}
    [[gnu::always_inline]] ~InsideAtOnce() {
        if (inside_) {
            object_.biased_lock().leave_plain();
        }
    }
    InsideAtOnce(const InsideAtOnce&) = delete;
    InsideAtOnce& operator=(const InsideAtOnce&) = delete;
    explicit operator bool() const { return inside_; }

  private:
    Object& object_;
    const bool inside_;
};
using BiasedLockOwner = InsideBiasedLock<&BiasedLock::enter, &BiasedLock::leave>;
using SharedBiasedLockOwner =
    InsideBiasedLock<&BiasedLock::enter_shared, &BiasedLock::leave_shared>;
using BiasedLockVisitor =
    InsideBiasedLock<&BiasedLock::outsider_enter, &BiasedLock::outsider_leave>;

} // namespace dat::engine

#endif
