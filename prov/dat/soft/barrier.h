// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A memory barrier on all threads of all processes that take part, paid by the one
// that goes to sleep, so that those who might wake it need none (membarrier(2)).
// May include: std, system headers.
#ifndef DAT_SOFT_BARRIER_H
#define DAT_SOFT_BARRIER_H

#include <atomic>

namespace dat::soft {

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

// This process takes part: heavy_barrier() of any other reaches its threads, and its
// own reaches theirs. False: the kernel refuses, and everybody has to fence for himself.
bool barriers_reach();

// A full barrier of this thread, and where barriers_reach(), of all others. A system
// call.
void heavy_barrier();

} // namespace dat::soft

#endif
