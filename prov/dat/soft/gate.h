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

    std::mutex callers_; // first: a call that holds it has to keep but one address
    const bool shared_;
    const bool asymmetric_;
    const bool plain_;                // asymmetric_, and not shared_
    std::atomic<bool> inside_{false}; // the application is between enter and leave
    std::atomic<int> wanted_{0};      // outsiders that wait for or hold the gate
    std::mutex outsiders_;            // one of them at a time holds it
};

// Inside the gate as long as it lives.
template <auto Enter, auto Leave> class InsideGate {
  public:
    explicit InsideGate(Gate& gate) : gate_(gate) { (gate_.*Enter)(); }
    // Inlined where it unwinds as well: so no call needs its address, nor keeps it in memory.
    [[gnu::always_inline]] ~InsideGate() { (gate_.*Leave)(); }
    InsideGate(const InsideGate&) = delete;
    InsideGate& operator=(const InsideGate&) = delete;

  private:
    Gate& gate_;
};
using GateCaller = InsideGate<&Gate::enter, &Gate::leave>;
using SharedGateCaller = InsideGate<&Gate::enter_shared, &Gate::leave_shared>;
using GateOutsider = InsideGate<&Gate::outsider_enter, &Gate::outsider_leave>;

} // namespace dat::soft

#endif
