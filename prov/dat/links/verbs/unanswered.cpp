// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See unanswered.h.
#include "links/verbs/unanswered.h"

#include "base/log.h"
#include "engine/kernel.h"
#include "engine/own_thread.h"

#include <cerrno>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace dat::verbs {

// What the connection manager still says is for nobody.
Unanswered::Unanswered(Domain& domain, std::unique_ptr<Queues> queues, rdma_cm_id* id)
    : domain_(domain), queues_(std::move(queues)), id_(id) {
    id->context = nullptr;
}

bool Unanswered::start() {
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = fd < 0 ? -errno : domain_.engine().handshakes().add(fd, EPOLLIN, *this);
    if (rc == 0) {
        gone_fd_ = fd;
        rc = engine::start_thread(thread_, [this] { run(); });
    } else if (fd >= 0) {
        kernel::close(fd);
    }
    return rc == 0 || log_failure("the end of a connect: a thread", -rc) == 0;
}

void Unanswered::run() {
    pthread_setname_np(pthread_self(), "dat-unanswered");
    queues_.reset();
    kernel::raise(gone_fd_);
}

void Unanswered::ready(std::uint32_t) { domain_.engine().dismiss(*this); }

Unanswered::~Unanswered() {
    if (thread_.joinable()) {
        thread_.join();
    }
    if (gone_fd_ >= 0) {
        domain_.engine().handshakes().remove(gone_fd_, *this);
        kernel::close(gone_fd_);
    }
    queues_.reset();
    kernel::uncancelled(rdma_destroy_id, id_);
}

} // namespace dat::verbs
