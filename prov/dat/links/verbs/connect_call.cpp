// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See connect_call.h.
#include "links/verbs/connect_call.h"

#include "engine/kernel.h"
#include "engine/own_thread.h"

#include <cerrno>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace dat::verbs {

int ConnectCall::start() {
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    if (const int rc = reactor_.add(fd, EPOLLIN, *this)) {
        kernel::close(fd);
        return rc;
    }
    failed_fd_ = fd;
    return engine::start_thread(thread_, [this] { run(); });
}

// All that librdmacm does in this call is one write(2), which is where a thread can be
// cancelled: the kernel gives up TCP's handshake at a signal.
void ConnectCall::run() {
    pthread_setname_np(pthread_self(), "dat-connect");
    const int error = rdma_connect(id_, &param_) == 0 ? 0 : errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    if (error != 0) {
        error_ = error;
        kernel::raise(failed_fd_);
    }
}

void ConnectCall::finish() {
    if (thread_.joinable()) {
        thread_.join();
    }
}

void ConnectCall::ready(std::uint32_t) {
    finish();
    owner_.connect_failed(error_);
}

ConnectCall::~ConnectCall() {
    if (thread_.joinable()) {
        pthread_cancel(thread_.native_handle());
        thread_.join();
    }
    if (failed_fd_ >= 0) {
        reactor_.remove(failed_fd_, *this);
        kernel::close(failed_fd_);
    }
}

} // namespace dat::verbs
