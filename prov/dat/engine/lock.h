// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A lock that is inlined where nobody else wants it, where std::mutex is two calls and eight times
// the instructions. Who has to wait sleeps.
#ifndef DAT_ENGINE_LOCK_H
#define DAT_ENGINE_LOCK_H

#include <atomic>

namespace dat::engine {

class Lock {
  public:
    void lock() {
        int seen = kFree;
        if (!state_.compare_exchange_strong(seen, kHeld, std::memory_order_seq_cst)) [[unlikely]] {
            lock_when_free();
        }
    }
    // From any thread; in one order with lock() and what else is seq_cst.
    bool is_held() const { return state_.load(std::memory_order_seq_cst) != kFree; }
    void unlock() {
        if (state_.exchange(kFree, std::memory_order_release) == kWanted) [[unlikely]] {
            wake_one();
        }
    }

  private:
    enum State : int {
        kFree,
        kHeld,
        kWanted, // held, and somebody may sleep
    };
    void lock_when_free();
    void wake_one();

    std::atomic<int> state_{kFree};
};

} // namespace dat::engine

#endif
