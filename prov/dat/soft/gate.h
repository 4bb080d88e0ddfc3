// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Who may touch a domain. Two kinds of party:
//   the application, through calls on the domain's objects (enter / leave);
//   outsiders: the progress thread and readers of an event queue (Outsider).
// With threading level FI_THREAD_DOMAIN the application promises one caller
// at a time; then enter() is two plain stores and a load, and an outsider pays
// for both with membarrier(2). With FI_THREAD_SAFE a mutex is taken as well.
// May include: std, system headers.
#ifndef DAT_SOFT_GATE_H
#define DAT_SOFT_GATE_H

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
            inside_.store(true, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
        } else {
            enter_otherwise();
        }
        let_in();
    }
    void leave() {
        inside_.store(false, std::memory_order_release);
        if (shared_) [[unlikely]] {
            callers_.unlock();
        }
    }

    // The same for a gate that was made `shared`, which is not asked again.
    void enter_shared() {
        callers_.lock();
        occupy();
        let_in();
    }
    void leave_shared() {
        inside_.store(false, std::memory_order_release);
        callers_.unlock();
    }

    void outsider_enter();
    void outsider_leave();

    // The application is in a call at this moment. From any thread.
    bool is_occupied() const { return inside_.load(std::memory_order_relaxed); }

  private:
    void enter_otherwise() {
        if (shared_) {
            callers_.lock();
        }
        occupy();
    }
    void occupy() {
        if (asymmetric_) [[likely]] {
            inside_.store(true, std::memory_order_relaxed);
            std::atomic_signal_fence(std::memory_order_seq_cst);
        } else {
            inside_.store(true, std::memory_order_seq_cst);
        }
    }
    void let_in() {
        if (wanted_.load(std::memory_order_seq_cst)) [[unlikely]] {
            give_way();
        }
    }
    void give_way();

    const bool shared_;
    const bool asymmetric_;
    const bool plain_; // asymmetric_, and not shared_
    std::mutex callers_;
    std::atomic<bool> inside_{false}; // the application is between enter and leave
    std::atomic<int> wanted_{0};      // outsiders that wait for or hold the gate
    std::mutex outsiders_;            // one of them at a time holds it
};

class GateCaller {
  public:
    explicit GateCaller(Gate& gate) : gate_(gate) { gate_.enter(); }
    // Inlined where it unwinds as well: so no call needs its address, nor keeps it in memory.
    [[gnu::always_inline]] ~GateCaller() { gate_.leave(); }
    GateCaller(const GateCaller&) = delete;
    GateCaller& operator=(const GateCaller&) = delete;

  private:
    Gate& gate_;
};

// Of a gate that was made `shared`.
class SharedGateCaller {
  public:
    explicit SharedGateCaller(Gate& gate) : gate_(gate) { gate_.enter_shared(); }
    [[gnu::always_inline]] ~SharedGateCaller() { gate_.leave_shared(); }
    SharedGateCaller(const SharedGateCaller&) = delete;
    SharedGateCaller& operator=(const SharedGateCaller&) = delete;

  private:
    Gate& gate_;
};

class GateOutsider {
  public:
    explicit GateOutsider(Gate& gate) : gate_(gate) { gate_.outsider_enter(); }
    ~GateOutsider() { gate_.outsider_leave(); }
    GateOutsider(const GateOutsider&) = delete;
    GateOutsider& operator=(const GateOutsider&) = delete;

  private:
    Gate& gate_;
};

} // namespace dat::soft

#endif
