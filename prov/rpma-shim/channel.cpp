// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See channel.h.
#include "rpma-shim/channel.h"

#include "engine/kernel.h"

#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

namespace dat::rpma {

Channel::~Channel() {
    if (fd_ >= 0) {
        kernel::close(fd_);
    }
}

// Whether calls on it block is up to the program, so a write to it could. It holds some 2^64.
int Channel::open() {
    fd_ = eventfd(0, EFD_CLOEXEC);
    return fd_ < 0 ? -errno : 0;
}

void Channel::raise() const { kernel::raise(fd_); }

// Not to sleep in it, whatever the program has set.
bool Channel::lower() const {
    const std::lock_guard lock(lowering_);
    if (!kernel::is_readable(fd_)) {
        return false;
    }
    const bool was = kernel::lower(fd_);
    lost_ = !was && errno != EAGAIN && errno != EINTR;
    return was;
}

bool Channel::is_nonblocking() const { return (fcntl(fd_, F_GETFL) & O_NONBLOCK) != 0; }

int Channel::sleep() const {
    if (lost_) {
        return EBADF;
    }
    pollfd p{fd_, POLLIN, 0};
    return poll(&p, 1, -1) > 0 && (p.revents & POLLNVAL) != 0 ? EBADF : 0;
}

} // namespace dat::rpma
