// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See memory.h. May include: soft, system headers.
#include "soft/shm/memory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <unistd.h>

namespace dat::shm {

namespace {

// Whether this process may write all of it: it is copied onto itself.
bool writable(std::span<const iovec> pieces) {
    for (const iovec& piece : pieces) {
        const ssize_t n = process_vm_readv(getpid(), &piece, 1, &piece, 1, 0);
        if (n != static_cast<ssize_t>(piece.iov_len)) {
            return false;
        }
    }
    return true;
}

std::size_t total(std::span<const iovec> pieces) {
    std::size_t size = 0;
    for (const iovec& piece : pieces) {
        size += piece.iov_len;
    }
    return size;
}

} // namespace

Pulled pull(pid_t peer, std::span<const iovec> to, std::span<const iovec> from) {
    // It copies all or stops at the page that it cannot read or write: it is never
    // called for more than it can copy at once.
    const ssize_t n = process_vm_readv(peer, to.data(), to.size(), from.data(), from.size(), 0);
    if (n >= 0 && static_cast<std::size_t>(n) == total(to)) {
        return Pulled::all;
    }
    if (n < 0 && errno == ESRCH) {
        return Pulled::gone;
    }
    if (n < 0 && errno != EFAULT) {
        return Pulled::not_permitted;
    }
    return writable(to) ? Pulled::not_theirs : Pulled::not_ours;
}

bool can_pull(pid_t peer, std::uint64_t address, std::uint64_t value) {
    std::uint64_t read = 0;
    const iovec to{&read, sizeof read};
    const iovec from{reinterpret_cast<void*>(address), sizeof read};
    return peer > 0 && pull(peer, {&to, 1}, {&from, 1}) == Pulled::all && read == value;
}

} // namespace dat::shm
