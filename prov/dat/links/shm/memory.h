// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Copying from the memory of another process into one's own, which is the only
// direction in which anything is copied: so that nobody writes where he is not
// asked. A number of a process may come to stand for another program, by execve(2), or for
// another process; so each copy brings a word along that only one image has.
#ifndef DAT_LINKS_SHM_MEMORY_H
#define DAT_LINKS_SHM_MEMORY_H

#include "links/shm/segment.h"

#include <cstdint>
#include <span>
#include <sys/types.h>
#include <sys/uio.h>

namespace dat::shm {

// A process as long as it runs one program: what is forked from it is another one, and so
// is what it becomes by execve(2).
struct Image {
    pid_t process = 0;         // 0: none that can be named here
    std::uint64_t address = 0; // of the word, in its memory
    std::uint64_t word = 0;    // random, not 0
};

// Of this process; word 0 where the kernel cannot keep it from a child (MADV_WIPEONFORK).
Image own_image();

enum class Pulled : std::uint8_t {
    all,
    gone,          // that image is not there any more
    not_theirs,    // what is to be read is not readable memory of the peer
    not_ours,      // what is to be written is not writable memory of this process
    not_permitted, // or the kernel has no such call
};

// Copies all of `from`, in `peer`, to `to`, of the same length, each of engine::kMaxPieces pieces
// at most. Blocks for as long as that takes, which a process that answers for its page faults
// itself (userfaultfd(2), a file system of its own) decides. `to` is spoiled where it fails;
// nothing of another image is left there.
Pulled pull(const Image& peer, std::span<const iovec> to, std::span<const iovec> from);

// Whether pull() works with `peer`.
bool can_pull(const Image& peer);

// Whether `process` is in this one's process namespace, as one that sees it too, and may
// signal it, is. False as well where /proc does not say.
bool same_process_namespace(pid_t process);

} // namespace dat::shm

#endif
