// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Copying from the memory of another process into one's own, which is the only
// direction in which anything is copied: so that nobody writes where he is not
// asked. May include: soft, system headers.
#ifndef DAT_SOFT_SHM_MEMORY_H
#define DAT_SOFT_SHM_MEMORY_H

#include "soft/shm/segment.h"

#include <cstdint>
#include <span>
#include <sys/types.h>
#include <sys/uio.h>

namespace dat::shm {

enum class Pulled : std::uint8_t {
    all,
    gone,          // there is no such process any more
    not_theirs,    // what is to be read is not readable memory of the peer
    not_ours,      // what is to be written is not writable memory of this process
    not_permitted, // or the kernel has no such call
};

// Copies all of `from`, in `peer`, to `to`, of the same length. Blocks for as long as
// that takes. `to` is spoiled where it fails.
Pulled pull(pid_t peer, std::span<const iovec> to, std::span<const iovec> from);

// Whether pull() works with `peer`: its memory at `address` holds `value`.
bool can_pull(pid_t peer, std::uint64_t address, std::uint64_t value);

} // namespace dat::shm

#endif
