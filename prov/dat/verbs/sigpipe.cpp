// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See sigpipe.h. May include: verbs headers, system headers.
#include "verbs/sigpipe.h"

#include <bit>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <infiniband/verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dat::verbs {
namespace {

// These are the kernel's calls, since each post makes three: the C library's, whose sets have 1024
// signals, take five times the instructions.
constexpr std::uint64_t kSigpipe = std::uint64_t{1} << (SIGPIPE - 1);
static_assert(sizeof(long) == sizeof kSigpipe || std::endian::native == std::endian::little);

bool is_pending() {
    std::uint64_t pending = 0;
    return syscall(SYS_rt_sigpending, &pending, sizeof pending) == 0 && (pending & kSigpipe) != 0;
}

} // namespace

// Who does not block it has none pending.
NoSigpipe::NoSigpipe(bool siw) : siw_(siw) {
    if (!siw_) {
        return;
    }
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kSigpipe, &before_, sizeof before_);
    pending_ = (before_ & kSigpipe) != 0 && is_pending();
}

NoSigpipe::~NoSigpipe() {
    if (!siw_) {
        return;
    }
    if (!pending_) {
        const timespec now{};
        syscall(SYS_rt_sigtimedwait, &kSigpipe, nullptr, &now, sizeof kSigpipe);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
}

// Where the connection has ended the request is in the queue all the same, and goes with it:
// siw tells the end by itself.
int post_to_siw(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    const NoSigpipe guard(true);
    const int rc = ibv_post_send(qp, wr, bad);
    const int error = rc == -1 ? errno : rc; // libsiw's -1
    return error == ENOTCONN ? 0 : error;
}

} // namespace dat::verbs
