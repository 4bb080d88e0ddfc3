// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The operations of a connection.
#include "rpma-shim/post.h"

#include "rpma-shim/conn.h"
#include "rpma-shim/fast.h"
#include "rpma-shim/guard.h"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <chrono>
#include <sched.h>
#include <utility>

using namespace dat::rpma;

namespace {

// A success says that the peer has the data where it belongs (U-61).
std::uint64_t flags_of(int flags) {
    return FI_TRANSMIT_COMPLETE |
           ((flags & RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR) != 0 ? FI_COMPLETION
                                                                                  : 0);
}

// Requests that give no completion leave their places without a call of the program: who posts
// more of them than there are places waits for those (RP-17), as far as the peer takes them.
template <class Post> ssize_t post_when_free(rpma_conn& conn, Post&& post) {
    constexpr std::chrono::seconds kLongest{2};
    ssize_t rc = post();
    if (rc == -FI_EAGAIN && conn.quiet_posts.load(std::memory_order_relaxed)) {
        const auto end = std::chrono::steady_clock::now() + kLongest;
        do {
            fi_cq_read(conn.cq->cq.get(), nullptr, 0); // moves the domain
            sched_yield();
            rc = post();
        } while (rc == -FI_EAGAIN && std::chrono::steady_clock::now() < end);
    }
    return rc;
}

template <class Post> int posted(const char* call, rpma_conn& conn, int flags, Post&& post) {
    if ((flags & RPMA_F_COMPLETION_ALWAYS) == RPMA_F_COMPLETION_ON_ERROR &&
        !conn.quiet_posts.load(std::memory_order_relaxed)) {
        conn.quiet_posts.store(true, std::memory_order_relaxed);
    }
    const ssize_t rc = post_when_free(conn, std::forward<Post>(post));
    return rc == 0 ? 0 : RPMA_FAILURE(call, rc);
}

int out_of_range(const char* call, const rpma_mr_local& mr, std::size_t offset,
                 std::size_t length) {
    return RPMA_REFUSE("%s: %zu bytes at offset %zu of a region of %zu bytes", call, length, offset,
                       mr.size);
}

// A read, or a write, of NULL and NULL is one of no bytes, with all else 0.
bool is_pair(const void* local, const void* remote, std::size_t local_offset,
             std::size_t remote_offset, std::size_t length) {
    return local ? remote != nullptr
                 : !remote && local_offset == 0 && remote_offset == 0 && length == 0;
}

struct Rma {
    Rma(const rpma_mr_local* local, std::size_t local_offset, const rpma_mr_remote* remote,
        std::size_t remote_offset, std::size_t length, const void* context)
        : here{local ? local->at(local_offset) : nullptr, length},
          there{remote ? remote->address + remote_offset : 0, length, remote ? remote->key : 0} {
        message.msg_iov = &here;
        message.iov_count = length > 0 ? 1 : 0;
        message.addr = FI_ADDR_UNSPEC;
        message.rma_iov = &there;
        message.rma_iov_count = 1;
        message.context = const_cast<void*>(context);
    }
    iovec here;
    fi_rma_iov there;
    fi_msg_rma message{};
};

int write(const char* call, rpma_conn* conn, rpma_mr_remote* dst, std::size_t dst_offset,
          const rpma_mr_local* src, std::size_t src_offset, std::size_t len, int flags,
          const std::uint32_t* imm, const void* context) {
    if (!conn || flags == 0 || !is_pair(src, dst, src_offset, dst_offset, len)) {
        return RPMA_REFUSE("%s: conn = %p, flags = 0x%x, dst = %p, src = %p; a connection, flags, "
                           "and both regions, or none of them and no offset or length",
                           call, static_cast<void*>(conn), static_cast<unsigned>(flags),
                           static_cast<void*>(dst), static_cast<const void*>(src));
    }
    if (src && !src->has(src_offset, len)) {
        return out_of_range(call, *src, src_offset, len);
    }
    Rma rma(src, src_offset, dst, dst_offset, len, context);
    std::uint64_t how = flags_of(flags);
    if (imm) {
        rma.message.data = *imm;
        how |= FI_REMOTE_CQ_DATA;
    }
    return posted(call, *conn, flags, [&] { return fi_writemsg(conn->ep, &rma.message, how); });
}

int send(const char* call, rpma_conn* conn, const rpma_mr_local* src, std::size_t offset,
         std::size_t len, int flags, const std::uint32_t* imm, const void* context) {
    if (!conn || flags == 0 || (!src && (offset != 0 || len != 0))) {
        return RPMA_REFUSE("%s: conn = %p, flags = 0x%x, src = %p; a connection, flags, and a "
                           "region, or none and no offset or length",
                           call, static_cast<void*>(conn), static_cast<unsigned>(flags),
                           static_cast<const void*>(src));
    }
    if (src && !src->has(offset, len)) {
        return out_of_range(call, *src, offset, len);
    }
    const iovec here{src ? src->at(offset) : nullptr, len};
    fi_msg message{};
    message.msg_iov = &here;
    message.iov_count = len > 0 ? 1 : 0;
    message.addr = FI_ADDR_UNSPEC;
    message.context = const_cast<void*>(context);
    std::uint64_t how = flags_of(flags);
    if (imm) {
        message.data = *imm;
        how |= FI_REMOTE_CQ_DATA;
    }
    return posted(call, *conn, flags, [&] { return fi_sendmsg(conn->ep, &message, how); });
}

} // namespace

int dat::rpma::post_receive(const char* call, fid_ep* ep, const rpma_mr_local* to,
                            std::size_t offset, std::size_t length, const void* context) {
    if (to && !to->has(offset, length)) {
        return out_of_range(call, *to, offset, length);
    }
    const iovec here{to ? to->at(offset) : nullptr, length};
    fi_msg message{};
    message.msg_iov = &here;
    message.iov_count = length > 0 ? 1 : 0;
    message.addr = FI_ADDR_UNSPEC;
    message.context = const_cast<void*>(context);
    const ssize_t rc = fi_recvmsg(ep, &message, FI_COMPLETION);
    return rc == 0 ? 0 : RPMA_FAILURE(call, rc);
}

extern "C" {

int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset,
              const struct rpma_mr_remote* src, size_t src_offset, size_t len, int flags,
              const void* op_context) {
    if (!conn || flags == 0 || !is_pair(dst, src, dst_offset, src_offset, len)) {
        return RPMA_REFUSE("rpma_read(): conn = %p, flags = 0x%x, dst = %p, src = %p; a "
                           "connection, flags, and both regions, or none of them and no offset or "
                           "length",
                           static_cast<void*>(conn), static_cast<unsigned>(flags),
                           static_cast<void*>(dst), static_cast<const void*>(src));
    }
    if (dst && !dst->has(dst_offset, len)) {
        return out_of_range("rpma_read()", *dst, dst_offset, len);
    }
    const Rma rma(dst, dst_offset, src, src_offset, len, op_context);
    return posted("rpma_read()", *conn, flags,
                  [&] { return fi_readmsg(conn->ep, &rma.message, flags_of(flags)); });
}

int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
               const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags,
               const void* op_context) {
    if (conn && conn->fast && src && dst && flags == RPMA_F_COMPLETION_ALWAYS && len > 0 &&
        src->has(src_offset, len) &&
        fast::write(conn->ep, src->at(src_offset), len, const_cast<void*>(op_context),
                    dst->address + dst_offset, dst->key) == 0) [[likely]] {
        return 0;
    }
    return write("rpma_write()", conn, dst, dst_offset, src, src_offset, len, flags, nullptr,
                 op_context);
}

int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags,
                        uint32_t imm, const void* op_context) {
    return write("rpma_write_with_imm()", conn, dst, dst_offset, src, src_offset, len, flags, &imm,
                 op_context);
}

int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                      const char src[8], int flags, const void* op_context) {
    if (!conn || !dst || !src || flags == 0 || dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) {
        return RPMA_REFUSE("rpma_atomic_write(): conn = %p, dst = %p, dst_offset = %zu, src = %p, "
                           "flags = 0x%x; pointers, flags, and a multiple of 8",
                           static_cast<void*>(conn), static_cast<void*>(dst), dst_offset,
                           static_cast<const void*>(src), static_cast<unsigned>(flags));
    }
    Rma rma(nullptr, 0, dst, dst_offset, RPMA_ATOMIC_WRITE_ALIGNMENT, op_context);
    rma.here.iov_base = const_cast<char*>(src);
    return posted("rpma_atomic_write()", *conn, flags, [&] {
        return fi_writemsg(conn->ep, &rma.message, flags_of(flags) | FI_INJECT | FI_FENCE);
    });
}

int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context) {
    (void)len; // all that was written before is flushed
    if (!conn || !dst || flags == 0) {
        return RPMA_REFUSE("rpma_flush(): conn = %p, dst = %p, flags = 0x%x; none of them may be "
                           "NULL or 0",
                           static_cast<void*>(conn), static_cast<void*>(dst),
                           static_cast<unsigned>(flags));
    }
    const bool persistent = type == RPMA_FLUSH_TYPE_PERSISTENT;
    if (persistent && !conn->direct_write_to_pmem) {
        return RPMA_FAIL(RPMA_E_NOSUPP,
                         "rpma_flush(): the peer is not known to write to persistent memory; apply "
                         "its configuration, which has to say so "
                         "(rpma_conn_apply_remote_peer_cfg())");
    }
    const int need =
        persistent ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    if ((dst->usage & need) == 0) {
        return RPMA_FAIL(RPMA_E_NOSUPP,
                         "rpma_flush(): the region of the peer was registered "
                         "without RPMA_MR_USAGE_FLUSH_TYPE_%s",
                         persistent ? "PERSISTENT" : "VISIBILITY");
    }
    Rma rma(nullptr, 0, dst, dst_offset, sizeof conn->flushed, op_context);
    rma.here.iov_base = &conn->flushed;
    if (persistent && conn->peer.device.is_soft()) {
        rma.there.addr |= FI_DAT_FLUSHED;
    }
    return posted("rpma_flush()", *conn, flags,
                  [&] { return fi_readmsg(conn->ep, &rma.message, flags_of(flags)); });
}

int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len,
              int flags, const void* op_context) {
    return send("rpma_send()", conn, src, offset, len, flags, nullptr, op_context);
}

int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset,
                       size_t len, int flags, uint32_t imm, const void* op_context) {
    return send("rpma_send_with_imm()", conn, src, offset, len, flags, &imm, op_context);
}

int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len,
              const void* op_context) {
    if (!conn || (!dst && (offset != 0 || len != 0))) {
        return RPMA_REFUSE("rpma_recv(): conn = %p, dst = %p, offset = %zu, len = %zu; where dst "
                           "is NULL the others have to be 0",
                           static_cast<void*>(conn), static_cast<void*>(dst), offset, len);
    }
    return post_receive("rpma_recv()", conn->ep, dst, offset, len, op_context);
}

} // extern "C"
