// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See barrier.h.
#include "engine/barrier.h"

#include "base/log.h"

#include <cerrno>
#include <cstring>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dat::engine {

bool barriers_reach() {
    static const bool reach = [] {
        if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0) {
            return true;
        }
        DAT_INFO(domain, "membarrier(2): %s; each call has a fence of its own, which is slower",
                 std::strerror(errno));
        return false;
    }();
    return reach;
}

void heavy_barrier() {
    if (!barriers_reach() || syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) {
        full_fence();
    }
}

} // namespace dat::engine
