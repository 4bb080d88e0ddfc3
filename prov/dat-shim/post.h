// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The posts of an endpoint; no allocation, lock or system call of their own. Included by
// ep.h.
#ifndef DAT_SHIM_POST_H
#define DAT_SHIM_POST_H

#include "dat-shim/ep.h"

#include <rdma/fi_atomic.h>

namespace dat::shim {

// What the completion flags of a request are to libfabric. U-61: a success says that the
// peer has placed the data.
inline constexpr auto kRequestFlags = []() {
    std::array<std::uint64_t, 16> flags{};
    for (std::uint32_t i = 0; i < flags.size(); ++i) {
        flags[i] = FI_TRANSMIT_COMPLETE;
        flags[i] |= (i & completion::kSuppress) != 0 ? 0 : FI_COMPLETION; // DTO-21
        flags[i] |= (i & completion::kUnsignalled) != 0 ? FI_DAT_UNSIGNALLED : 0;
        flags[i] |= (i & completion::kBarrier) != 0 ? FI_FENCE : 0;
    }
    return flags;
}();

template <class Triplet>
inline Return Ep::gather(std::int32_t count, std::int32_t limit, const Triplet* iov,
                         std::uint32_t need, iovec* out, std::size_t& used,
                         std::uint64_t& total) const {
    if (static_cast<std::uint32_t>(count) > iov_limit(limit) || (count > 0 && !iov)) [[unlikely]] {
        return bad_argument(count > 0 && !iov ? 3 : 2); // DTO-2; a negative count is large
    }
    used = 0;
    total = 0;
    for (std::int32_t i = 0; i < count; ++i) {
        if (iov[i].segment_length == 0) { // LMR-9
            continue;
        }
        if (const Return rc = check_segment(lmrs_, parts_.pz, need, iov[i], out[used]))
            [[unlikely]] {
            return rc;
        }
        total += out[used++].iov_len;
    }
    return kSuccess;
}

template <class Triplet>
Return Ep::post_message(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                        std::uint32_t flags, std::uint64_t extra, std::uint32_t key) {
    if ((flags & ~send_flags_) != 0) [[unlikely]] {
        return bad_argument(5);
    }
    iovec segments[Limits::kMaxSegments];
    fi_msg message;
    std::uint64_t total;
    if (const Return rc = gather(count, attributes_.max_request_iov, iov, privilege::kLocalRead,
                                 segments, message.iov_count, total)) [[unlikely]] {
        return rc;
    }
    Slot* const slot = begin(requests_, Operation::send, cookie, flags);
    if (!slot) [[unlikely]] {
        return kQueueFull;
    }
    message.msg_iov = segments;
    message.desc = nullptr;
    message.addr = FI_ADDR_UNSPEC;
    message.context = slot;
    message.data = key;
    const std::uint64_t how = kRequestFlags[flags & 15] | extra |
                              ((flags & completion::kSolicited) != 0 ? FI_DAT_SOLICITED : 0);
    const ssize_t rc = fi_sendmsg(ep_, &message, how);
    if (rc != 0) [[unlikely]] {
        return post_failed(rc);
    }
    requests_.advance();
    return kSuccess;
}

template <class Triplet>
Return Ep::post_any_recv(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                         std::uint32_t flags) {
    if (parts_.srq) [[unlikely]] {
        return fail(Type::invalid_state); // U-33
    }
    if ((flags & ~recv_flags_) != 0) [[unlikely]] {
        return bad_argument(5);
    }
    iovec segments[Limits::kMaxSegments];
    fi_msg message;
    std::uint64_t total;
    if (const Return rc = gather(count, attributes_.max_recv_iov, iov, privilege::kLocalWrite,
                                 segments, message.iov_count, total)) [[unlikely]] {
        return rc;
    }
    Slot* const slot = begin(receives_, Operation::receive, cookie, flags);
    if (!slot) [[unlikely]] {
        return kQueueFull;
    }
    message.msg_iov = segments;
    message.desc = nullptr;
    message.addr = FI_ADDR_UNSPEC;
    message.context = slot;
    message.data = 0;
    const ssize_t rc = fi_recvmsg(
        ep_, &message,
        FI_COMPLETION | ((flags & completion::kUnsignalled) != 0 ? FI_DAT_UNSIGNALLED : 0));
    if (rc != 0) [[unlikely]] {
        return post_failed(rc);
    }
    receives_.advance();
    return kSuccess;
}

// DTO-4: as much as the segments hold is read. The length of the remote range is not looked at,
// here or in a write: programs leave something else there.
template <class Triplet, class Remote>
Return Ep::post_read(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                     const Remote& remote, std::uint32_t flags) {
    if ((flags & ~rma_flags_) != 0) [[unlikely]] {
        return bad_argument(6);
    }
    iovec segments[Limits::kMaxSegments];
    std::uint64_t total;
    fi_msg_rma message;
    if (const Return rc = gather(count, attributes_.max_read_iov, iov, privilege::kLocalWrite,
                                 segments, message.iov_count, total)) [[unlikely]] {
        return rc;
    }
    Slot* const slot = begin(requests_, Operation::rdma_read, cookie, flags);
    if (!slot) [[unlikely]] {
        return kQueueFull;
    }
    const fi_rma_iov there{remote.virtual_address, total, remote.rmr_context};
    message.msg_iov = segments;
    message.desc = nullptr;
    message.addr = FI_ADDR_UNSPEC;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.context = slot;
    message.data = 0;
    const ssize_t rc = fi_readmsg(ep_, &message, kRequestFlags[flags & 15]);
    if (rc != 0) [[unlikely]] {
        return post_failed(rc);
    }
    requests_.advance();
    return kSuccess;
}

template <class Triplet, class Remote>
Return Ep::post_any_write(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                          const Remote& remote, std::uint32_t flags,
                          const std::uint32_t* immediate) {
    if ((flags & ~(immediate ? send_flags_ : rma_flags_)) != 0) [[unlikely]] {
        return bad_argument(6);
    }
    iovec segments[Limits::kMaxSegments];
    std::uint64_t total;
    fi_msg_rma message;
    if (const Return rc = gather(count, attributes_.max_write_iov, iov, privilege::kLocalRead,
                                 segments, message.iov_count, total)) [[unlikely]] {
        return rc;
    }
    Slot* const slot = begin(
        requests_, immediate ? Operation::write_immediate : Operation::rdma_write, cookie, flags);
    if (!slot) [[unlikely]] {
        return kQueueFull;
    }
    const fi_rma_iov there{remote.virtual_address, total, remote.rmr_context};
    message.msg_iov = segments;
    message.desc = nullptr;
    message.addr = FI_ADDR_UNSPEC;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.context = slot;
    std::uint64_t how = kRequestFlags[flags & 15];
    message.data = 0;
    if (immediate) {
        message.data = *immediate;
        how |= FI_REMOTE_CQ_DATA | ((flags & completion::kSolicited) != 0 ? FI_DAT_SOLICITED : 0);
    }
    const ssize_t rc = fi_writemsg(ep_, &message, how);
    if (rc != 0) [[unlikely]] {
        return post_failed(rc);
    }
    requests_.advance();
    return kSuccess;
}

template <class Triplet, class Remote>
Return Ep::post_atomic(const Triplet& local, const Remote& remote, std::uint64_t operand,
                       const std::uint64_t* compare, std::uint64_t cookie, std::uint32_t flags) {
    if ((flags & ~rma_flags_) != 0) {
        return bad_argument(compare ? 7U : 6U);
    }
    iovec result[Limits::kMaxSegments];
    std::size_t used;
    std::uint64_t total;
    if (const Return rc = gather(1, 1, &local, privilege::kLocalWrite, result, used, total)) {
        return rc;
    }
    if (total < sizeof operand) {
        return fail(Type::length_error);
    }
    Slot* const slot =
        begin(requests_, compare ? Operation::compare_swap : Operation::fetch_add, cookie, flags);
    if (!slot) {
        return kQueueFull;
    }
    const fi_ioc with{&operand, 1};
    const fi_ioc against{const_cast<std::uint64_t*>(compare), 1};
    fi_ioc old{result[0].iov_base, 1};
    const fi_rma_ioc there{remote.virtual_address, 1, remote.rmr_context};
    const fi_msg_atomic message{&with,  nullptr, 1,         FI_ADDR_UNSPEC,
                                &there, 1,       FI_UINT64, compare ? FI_CSWAP : FI_SUM,
                                slot,   0};
    const std::uint64_t how = kRequestFlags[flags & 15] & ~FI_TRANSMIT_COMPLETE;
    const ssize_t rc =
        compare ? fi_compare_atomicmsg(ep_, &message, &against, nullptr, 1, &old, nullptr, 1, how)
                : fi_fetch_atomicmsg(ep_, &message, &old, nullptr, 1, how);
    if (rc != 0) {
        return post_failed(rc);
    }
    requests_.advance();
    return kSuccess;
}

} // namespace dat::shim

#endif
