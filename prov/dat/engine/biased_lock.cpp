// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See biased_lock.h.
#include "engine/biased_lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dat::engine {
namespace {

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

bool membarrier_works() {
    static const bool works = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
    return works;
}

} // namespace

BiasedLock::BiasedLock(bool shared) : shared_(shared), plain_(!shared && membarrier_works()) {}

void BiasedLock::give_way() {
    leave();
    for (;;) {
        { const std::lock_guard wait_for_holder(outsiders_); }
        enter_otherwise();
        if (wanted_.load(std::memory_order_seq_cst) == 0) {
            return;
        }
        leave();
        sched_yield();
    }
}

void BiasedLock::outsider_enter() {
    outsiders_.lock();
    wanted_.fetch_add(1, std::memory_order_seq_cst);
    if (plain_) {
        membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
    // The application leaves within one call; it never sleeps inside.
    while (is_occupied()) {
        sched_yield();
    }
}

void BiasedLock::outsider_leave() {
    wanted_.fetch_sub(1, std::memory_order_release);
    outsiders_.unlock();
}

} // namespace dat::engine
