// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See lock.h.
#include "engine/lock.h"

namespace dat::engine {

// Whoever has waited takes it as wanted, since others may still sleep.
void Lock::lock_when_free() {
    while (state_.exchange(kWanted, std::memory_order_seq_cst) != kFree) {
        state_.wait(kWanted, std::memory_order_relaxed);
    }
}

void Lock::wake_one() { state_.notify_one(); }

} // namespace dat::engine
