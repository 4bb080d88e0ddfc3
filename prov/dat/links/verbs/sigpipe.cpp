// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See sigpipe.h.
#include "links/verbs/sigpipe.h"

#include "engine/kernel.h"

#include <bit>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <infiniband/verbs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dat::verbs {
namespace {

// The kernel's set, of 64 signals: each post makes three calls with one, and the C library's, of
// 1024 signals, take several times the instructions.
constexpr std::uint64_t kSigpipe = std::uint64_t{1} << (SIGPIPE - 1);
static_assert(sizeof(long) == sizeof kSigpipe || std::endian::native == std::endian::little);

[[gnu::always_inline]] inline void change_mask(std::intptr_t how, const std::uint64_t& by,
                                               std::uint64_t* before) {
    kernel::enter(SYS_rt_sigprocmask, how, kernel::number_of(&by), kernel::number_of(before),
                  kernel::number_of(sizeof by));
}

bool is_pending() {
    std::uint64_t pending = 0;
    return syscall(SYS_rt_sigpending, &pending, sizeof pending) == 0 && (pending & kSigpipe) != 0;
}

[[gnu::always_inline]] inline void take_back() {
    static constexpr timespec kNow{};
    kernel::enter(SYS_rt_sigtimedwait, kernel::number_of(&kSigpipe), 0, kernel::number_of(&kNow),
                  kernel::number_of(sizeof kSigpipe));
}

// Where the connection has ended the request is in the queue all the same, and goes with it:
// siw tells the end by itself.
[[gnu::always_inline]] inline int post(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    const int rc = kernel::uncancelled(ibv_post_send, qp, wr, bad);
    if (rc == 0) [[likely]] {
        return 0;
    }
    const int error = rc == -1 ? errno : rc; // libsiw's -1
    return error == ENOTCONN ? 0 : error;
}

[[gnu::noinline]] int post_guarded(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    const NoSigpipe guard(true);
    return post(qp, wr, bad);
}

} // namespace

// Who does not block it has none pending.
NoSigpipe::NoSigpipe(bool siw) : siw_(siw) {
    if (!siw_) {
        return;
    }
    change_mask(SIG_BLOCK, kSigpipe, &before_);
    pending_ = (before_ & kSigpipe) != 0 && is_pending();
}

NoSigpipe::~NoSigpipe() {
    if (!siw_) {
        return;
    }
    if (!pending_) {
        take_back();
    }
    change_mask(SIG_SETMASK, before_, nullptr);
}

// A guard, of which little is left where the program does not block the signal.
int post_to_siw(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    std::uint64_t before = 0;
    change_mask(SIG_BLOCK, kSigpipe, &before);
    if ((before & kSigpipe) != 0) [[unlikely]] {
        return post_guarded(qp, wr, bad);
    }
    const int error = post(qp, wr, bad);
    take_back();
    change_mask(SIG_SETMASK, before, nullptr);
    return error;
}

int post_uncancelled(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
    return kernel::uncancelled(ibv_post_send, qp, wr, bad);
}

} // namespace dat::verbs
