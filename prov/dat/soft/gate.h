// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Who may touch a domain. Two kinds of party:
//   the application, through calls on the domain's objects (enter / leave);
//   outsiders: the progress thread and readers of an event queue (Outsider).
// With threading level FI_THREAD_DOMAIN the application promises one caller
// at a time; then enter() is two plain stores and a load, and an outsider pays
// for both with membarrier(2). With FI_THREAD_SAFE it is a lock and a load.
// May include: soft, system headers.
#ifndef DAT_SOFT_GATE_H
#define DAT_SOFT_GATE_H

#include "soft/lock.h"

#include <atomic>
#include <mutex>

namespace dat::soft {

class Gate {
  public:
    // `shared`: the application may call from several threads at once.
    explicit Gate(bool shared);

    // The application's side. Never blocks for longer than an outsider holds the
    // gate, which does not sleep while it does. Not recursive.
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

    // The same for a gate that was made `shared`, which is not asked again.
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

    // Of a shared gate: held while the application is between enter and leave. First, so that
    // a call that holds it has to keep but one address.
    Lock callers_;
    std::atomic<bool> inside_{false}; // of another: it is
    const bool shared_;
    const bool plain_;           // not shared_, and membarrier works
    std::atomic<int> wanted_{0}; // outsiders that wait for or hold the gate
    std::mutex outsiders_;       // one of them at a time holds it
};

// Inside the gate as long as it lives, or until leave().
template <auto Enter, auto Leave> class InsideGate {
  public:
    explicit InsideGate(Gate& gate) : gate_(&gate) { (gate_->*Enter)(); }
    // Inlined where it unwinds as well: so no call needs its address, nor keeps it in memory.
    [[gnu::always_inline]] ~InsideGate() {
        if (gate_) {
            leave();
        }
    }
    InsideGate(const InsideGate&) = delete;
    InsideGate& operator=(const InsideGate&) = delete;
    [[gnu::always_inline]] void leave() {
        (gate_->*Leave)();
        gate_ = nullptr;
    }

  private:
    Gate* gate_;
};
// Inside the gate of `object` as long as it lives, where try_enter() says so. Keeps no more than
// the object, which its owner needs anyway.
template <class Object> class InsideAtOnce {
  public:
    [[gnu::always_inline]] explicit InsideAtOnce(Object& object)
        : object_(object), inside_(object.gate().try_enter()) {}
    [[gnu::always_inline]] ~InsideAtOnce() {
        if (inside_) {
            object_.gate().leave_plain();
        }
    }
    InsideAtOnce(const InsideAtOnce&) = delete;
    InsideAtOnce& operator=(const InsideAtOnce&) = delete;
    explicit operator bool() const { return inside_; }

  private:
    Object& object_;
    const bool inside_;
};
using GateCaller = InsideGate<&Gate::enter, &Gate::leave>;
using SharedGateCaller = InsideGate<&Gate::enter_shared, &Gate::leave_shared>;
using GateOutsider = InsideGate<&Gate::outsider_enter, &Gate::outsider_leave>;

} // namespace dat::soft

#endif
