// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See sigpipe.h. May include: verbs headers, system headers.
#include "verbs/sigpipe.h"

#include <cerrno>
#include <ctime>
#include <infiniband/verbs.h>

namespace dat::verbs {
namespace {

sigset_t only_sigpipe() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

bool is_pending() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

} // namespace

// Who does not block it has none pending.
NoSigpipe::NoSigpipe() {
    const sigset_t set = only_sigpipe();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    pending_ = sigismember(&before_, SIGPIPE) == 1 && is_pending();
}

NoSigpipe::~NoSigpipe() {
    if (!pending_) {
        const sigset_t set = only_sigpipe();
        const timespec now{};
        sigtimedwait(&set, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// Where the connection has ended the request is in the queue all the same, and goes with it:
// siw tells the end by itself.
int post_to_siw(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    const NoSigpipe guard;
    const int rc = ibv_post_send(qp, wr, bad);
    const int error = rc == -1 ? errno : rc; // libsiw's -1
    return error == ENOTCONN ? 0 : error;
}

} // namespace dat::verbs
