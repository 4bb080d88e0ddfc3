// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fences of one thread, also for ThreadSanitizer.
#ifndef DAT_BASE_FENCE_H
#define DAT_BASE_FENCE_H

#include <atomic>

namespace dat::base {

// A full barrier of this thread.
inline void full_fence() {
#ifdef __SANITIZE_THREAD__ // which does not know of fences
    std::atomic<int> here{0};
    here.exchange(1, std::memory_order_seq_cst);
#else
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// What this thread stored before is seen before what it stores from here on.
inline void release_fence() {
#ifdef __SANITIZE_THREAD__
    full_fence();
#else
    std::atomic_thread_fence(std::memory_order_release);
#endif
}

// What this thread loads from here on is loaded after what it loaded before.
inline void acquire_fence() {
#ifdef __SANITIZE_THREAD__
    full_fence();
#else
    std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

} // namespace dat::base

#endif
