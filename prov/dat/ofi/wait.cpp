// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See wait.h.
#include "ofi/wait.h"

#include "base/log.h"
#include "engine/kernel.h"

#include <cerrno>
#include <chrono>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace dat::ofi {

void raise_event(int fd) {
    kernel::raise(fd); // full: raised already
}

Signal::~Signal() {
    if (fd_ >= 0) {
        kernel::close(fd_);
    }
}

int Signal::open() {
    fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return fd_ < 0 ? -errno : 0;
}

void Signal::raise() const { raise_event(fd_); }

void Signal::clear() const { kernel::lower(fd_); }

WaitSet::~WaitSet() {
    if (fd_ >= 0) {
        kernel::close(fd_);
    }
}

int WaitSet::open() {
    fd_ = epoll_create1(EPOLL_CLOEXEC);
    return fd_ < 0 ? -errno : 0;
}

int WaitSet::add(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    return epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void WaitSet::remove(int fd) { epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr); }

int wait_readable(int fd, int timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
    pollfd p{fd, POLLIN, 0};
    for (int left = timeout_ms;;) {
        const int n = poll(&p, 1, left);
        if (n > 0 && (p.revents & POLLNVAL) != 0) {
            DAT_WARN(core,
                     "descriptor %d, which a thread sleeps on, was closed by the program, which "
                     "must leave those of the provider alone",
                     fd);
            return -EBADF;
        }
        if (n >= 0 || errno != EINTR) {
            return 0;
        }
        if (timeout_ms >= 0) {
            const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
            left = rest.count() > 0 ? static_cast<int>(rest.count()) : 0;
        }
    }
}

} // namespace dat::ofi
