// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Messages of a reliable datagram endpoint, with and without a tag: fi_msg(3), fi_tagged(3).
#include "base/canary.h"
#include "base/log.h"
#include "ofi/no_op.h"
#include "ofi/post.h"
#include "ofi/rdm_ep.h"
#include "rdm/post.h"

#include <rdma/fi_tagged.h>

#include <array>
#include <cstring>

namespace dat::ofi {
namespace {

constexpr std::uint64_t kSendFlags = kTxOpFlags | FI_MORE | FI_FENCE | FI_REMOTE_CQ_DATA;
constexpr std::uint64_t kRecvFlags = kRxOpFlags | FI_MORE;
constexpr std::uint64_t kPeekFlags = FI_PEEK | FI_CLAIM | FI_DISCARD;

// As many segments as a message of the call has.
template <std::size_t Most> using Segments = std::array<engine::Iov, Most>;

template <std::size_t Most>
[[gnu::always_inline]] inline void convert(const iovec* iov, std::size_t count,
                                           Segments<Most>& out) {
    for (std::size_t i = 0; i < count; ++i) {
        out[i] = {static_cast<std::byte*>(iov[i].iov_base), iov[i].iov_len};
    }
}

// What a call describes.
struct Message {
    const char* call;
    const iovec* iov;
    std::size_t count;
    fi_addr_t peer;
    void* context;
    std::uint64_t flags;
    std::uint64_t tag = 0;
    std::uint64_t data = 0;
    std::uint64_t ignore = 0;
    bool tagged = false;
    bool silent = false;
};

template <std::size_t Most>
[[gnu::always_inline]] inline ssize_t send_here(fid_ep* f, const Message& m) {
    RdmEndpoint& ep = rdm_of(f);
    const std::size_t length = total(m.iov, m.count);
    if (length > ep.message_size()) [[unlikely]] {
        return refuse_length(m.call, length, ep.message_size());
    }
    const bool injected = (m.flags & FI_INJECT) != 0;
    if (injected && length > ep.inject_size()) [[unlikely]] {
        return refuse_inject(m.call, length, ep.inject_size());
    }
    if (const int rc = check_memory<Unlinked>(m.call, m.iov, m.count, engine::Touch::read))
        [[unlikely]] {
        return rc;
    }
    Segments<Most> segments;
    convert(m.iov, m.count, segments);
    const engine::BiasedLockOwner in(ep.biased_lock());
    int error = 0;
    RdmPeer* const peer = ep.peer(m.peer, error);
    if (!peer) [[unlikely]] {
        return error;
    }
    rdm::Outgoing out;
    out.iov = segments.data();
    out.count = m.count;
    out.length = length;
    out.tag = m.tag;
    out.data = m.data;
    out.context = m.context;
    out.completion_flags = FI_SEND | (m.tagged ? FI_TAGGED : FI_MSG);
    out.level =
        (m.flags & FI_TRANSMIT_COMPLETE) != 0 ? engine::Level::placed : engine::Level::taken;
    out.tagged = m.tagged;
    out.has_data = (m.flags & FI_REMOTE_CQ_DATA) != 0;
    out.injected = injected;
    out.silent = m.silent;
    out.reported = !m.silent && ep.tx_reported(m.flags);
    out.delivered = (m.flags & FI_DELIVERY_COMPLETE) != 0;
    out.fence = (m.flags & FI_FENCE) != 0;
    out.more = (m.flags & FI_MORE) != 0;
    return fi_result(peer->send_here(out));
}

[[gnu::noinline]] ssize_t send(fid_ep* f, const Message& m) {
    return send_here<engine::kMaxIov>(f, m);
}

// Whom a receive is of. False: `error`.
bool find_source(RdmEndpoint& ep, fi_addr_t from, std::uint32_t& source, int& error) {
    source = core::kAnySource;
    if (!ep.directs_receives() || from == FI_ADDR_UNSPEC) {
        return true;
    }
    RdmPeer* const peer = ep.peer(from, error);
    if (peer) {
        source = peer->number();
    }
    return peer != nullptr;
}

ssize_t receive_peeked(RdmEndpoint& ep, const Message& m, const rdm::Messages::Incoming& in);

template <std::size_t Most>
[[gnu::always_inline]] inline ssize_t receive_here(fid_ep* f, const Message& m) {
    RdmEndpoint& ep = rdm_of(f);
    const bool peeks = (m.flags & kPeekFlags) != 0; // known here, where it is known at all
    const bool stays = (m.flags & FI_MULTI_RECV) != 0;
    if (stays && m.count != 1) [[unlikely]] {
        return refuse_count(m.call, m.count, 1);
    }
    if (const int rc = check_memory<Unlinked>(m.call, m.iov, m.count, engine::Touch::write))
        [[unlikely]] {
        return rc;
    }
    Segments<Most> segments;
    convert(m.iov, m.count, segments);
    const engine::BiasedLockOwner in(ep.biased_lock());
    std::uint32_t source = core::kAnySource;
    int error = 0;
    if (!find_source(ep, m.peer, source, error)) [[unlikely]] {
        return error;
    }
    rdm::Messages::Incoming incoming;
    incoming.source = source;
    incoming.iov = segments.data();
    incoming.count = m.count;
    incoming.length = total(m.iov, m.count);
    incoming.tag = m.tag;
    incoming.ignore = m.ignore;
    incoming.context = m.context;
    incoming.tagged = m.tagged;
    incoming.reported = ep.rx_reported(m.flags);
    incoming.stays = stays;
    if (peeks) [[unlikely]] {
        return receive_peeked(ep, m, incoming);
    }
    return fi_result(ep.messages().receive(incoming));
}

[[gnu::noinline]] ssize_t receive(fid_ep* f, const Message& m) {
    return receive_here<engine::kMaxIov>(f, m);
}

// What a claim leaves in the context until it is used.
rdm::Unexpected*& claim_in(void* context) {
    return reinterpret_cast<rdm::Unexpected*&>(static_cast<fi_context*>(context)->internal[0]);
}

// Under the lock.
ssize_t receive_peeked(RdmEndpoint& ep, const Message& m, const rdm::Messages::Incoming& in) {
    const bool peeks = (m.flags & FI_PEEK) != 0;
    const bool claims = (m.flags & FI_CLAIM) != 0;
    const bool discards = (m.flags & FI_DISCARD) != 0;
    if ((claims && !m.context) || (!peeks && !claims) || (peeks && claims && discards)) {
        DAT_WARN(ep_data,
                 "%s: flags = 0x%llx%s; FI_PEEK, alone or with FI_CLAIM or FI_DISCARD, and "
                 "FI_CLAIM, alone or with FI_DISCARD, are offered",
                 m.call, static_cast<unsigned long long>(m.flags),
                 m.context ? "" : ", without a context");
        return -FI_EINVAL;
    }
    if (peeks) {
        ep.domain().engine().progress();
        ep.messages().peek(in, discards, claims ? &claim_in(m.context) : nullptr);
        return 0;
    }
    rdm::Unexpected* const claimed = claim_in(m.context);
    if (!ep.messages().is_claimed(claimed)) {
        DAT_WARN(ep_data, "%s: FI_CLAIM, and the context has claimed no message", m.call);
        return -FI_EINVAL;
    }
    if (discards) {
        ep.messages().discard_claimed(*claimed, in);
        return 0;
    }
    return fi_result(ep.messages().receive_claimed(*claimed, in));
}

// --- messages ---

ssize_t msg_recv(fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from, void* context) {
    const iovec iov{buf, len};
    return receive(ep, {"fi_recv()", &iov, 1, from, context, rdm_of(ep).rx_flags()});
}

ssize_t msg_recvv(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                  void* context) {
    if (const int rc = check("fi_recvv()", count, 0, 0)) {
        return rc;
    }
    return receive(ep, {"fi_recvv()", iov, count, from, context, rdm_of(ep).rx_flags()});
}

ssize_t msg_recvmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) {
    if (const int rc = check("fi_recvmsg()", msg->iov_count, flags, kRecvFlags)) {
        return rc;
    }
    return receive(ep,
                   {"fi_recvmsg()", msg->msg_iov, msg->iov_count, msg->addr, msg->context, flags});
}

ssize_t msg_send(fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to, void* context) {
    const iovec iov{const_cast<void*>(buf), len};
    return send(ep, {"fi_send()", &iov, 1, to, context, rdm_of(ep).tx_flags()});
}

ssize_t msg_sendv(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                  void* context) {
    if (const int rc = check("fi_sendv()", count, 0, 0)) {
        return rc;
    }
    return send(ep, {"fi_sendv()", iov, count, to, context, rdm_of(ep).tx_flags()});
}

ssize_t msg_sendmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) {
    if (const int rc = check("fi_sendmsg()", msg->iov_count, flags, kSendFlags)) {
        return rc;
    }
    return send(ep, {.call = "fi_sendmsg()",
                     .iov = msg->msg_iov,
                     .count = msg->iov_count,
                     .peer = msg->addr,
                     .context = msg->context,
                     .flags = flags,
                     .data = msg->data});
}

ssize_t msg_inject(fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to) {
    const iovec iov{const_cast<void*>(buf), len};
    return send(ep, {.call = "fi_inject()",
                     .iov = &iov,
                     .count = 1,
                     .peer = to,
                     .context = nullptr,
                     .flags = FI_INJECT,
                     .silent = true});
}

ssize_t msg_senddata(fid_ep* ep, const void* buf, std::size_t len, void*, std::uint64_t data,
                     fi_addr_t to, void* context) {
    const iovec iov{const_cast<void*>(buf), len};
    return send(ep, {.call = "fi_senddata()",
                     .iov = &iov,
                     .count = 1,
                     .peer = to,
                     .context = context,
                     .flags = rdm_of(ep).tx_flags() | FI_REMOTE_CQ_DATA,
                     .data = data});
}

ssize_t msg_injectdata(fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                       fi_addr_t to) {
    const iovec iov{const_cast<void*>(buf), len};
    return send(ep, {.call = "fi_injectdata()",
                     .iov = &iov,
                     .count = 1,
                     .peer = to,
                     .context = nullptr,
                     .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
                     .data = data,
                     .silent = true});
}

// --- with a tag ---

[[gnu::always_inline]] inline ssize_t trecv_here(fid_ep* ep, void* buf, std::size_t len,
                                                 fi_addr_t from, std::uint64_t tag,
                                                 std::uint64_t ignore, void* context,
                                                 std::uint64_t flags) {
    const iovec iov{buf, len};
    return receive_here<1>(ep, {.call = "fi_trecv()",
                                .iov = &iov,
                                .count = 1,
                                .peer = from,
                                .context = context,
                                .flags = flags,
                                .tag = tag,
                                .ignore = ignore,
                                .tagged = true});
}
[[gnu::noinline]] ssize_t trecv_flagged(fid_ep* ep, void* buf, std::size_t len, fi_addr_t from,
                                        std::uint64_t tag, std::uint64_t ignore, void* context) {
    return trecv_here(ep, buf, len, from, tag, ignore, context,
                      rdm_of(ep).rx_flags() & ~FI_MULTI_RECV);
}
// Of most endpoints no flag applies by default, and the compiler knows it.
DAT_NO_CANARY ssize_t trecv(fid_ep* ep, void* buf, std::size_t len, void*, fi_addr_t from,
                            std::uint64_t tag, std::uint64_t ignore, void* context) {
    if (rdm_of(ep).rx_flags() != 0) [[unlikely]] {
        return trecv_flagged(ep, buf, len, from, tag, ignore, context);
    }
    return trecv_here(ep, buf, len, from, tag, ignore, context, 0);
}

ssize_t trecvv(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
               std::uint64_t tag, std::uint64_t ignore, void* context) {
    if (const int rc = check("fi_trecvv()", count, 0, 0)) {
        return rc;
    }
    return receive(ep, {.call = "fi_trecvv()",
                        .iov = iov,
                        .count = count,
                        .peer = from,
                        .context = context,
                        .flags = rdm_of(ep).rx_flags() & ~FI_MULTI_RECV,
                        .tag = tag,
                        .ignore = ignore,
                        .tagged = true});
}

ssize_t trecvmsg(fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) {
    // A peek has no buffer, whatever it says of one.
    const bool peeks = (flags & FI_PEEK) != 0;
    const std::size_t count = peeks ? 0 : msg->iov_count;
    if (const int rc =
            check("fi_trecvmsg()", count, flags, (kRecvFlags & ~FI_MULTI_RECV) | kPeekFlags)) {
        return rc;
    }
    return receive(ep, {.call = "fi_trecvmsg()",
                        .iov = msg->msg_iov,
                        .count = count,
                        .peer = msg->addr,
                        .context = msg->context,
                        .flags = flags,
                        .tag = msg->tag,
                        .ignore = msg->ignore,
                        .tagged = true});
}

[[gnu::always_inline]] inline ssize_t tsend_here(fid_ep* ep, const void* buf, std::size_t len,
                                                 fi_addr_t to, std::uint64_t tag, void* context,
                                                 std::uint64_t flags) {
    const iovec iov{const_cast<void*>(buf), len};
    return send_here<1>(ep, {.call = "fi_tsend()",
                             .iov = &iov,
                             .count = 1,
                             .peer = to,
                             .context = context,
                             .flags = flags,
                             .tag = tag,
                             .tagged = true});
}
[[gnu::noinline]] ssize_t tsend_flagged(fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to,
                                        std::uint64_t tag, void* context) {
    return tsend_here(ep, buf, len, to, tag, context, rdm_of(ep).tx_flags());
}
DAT_NO_CANARY ssize_t tsend(fid_ep* ep, const void* buf, std::size_t len, void*, fi_addr_t to,
                            std::uint64_t tag, void* context) {
    if (rdm_of(ep).tx_flags() != 0) [[unlikely]] {
        return tsend_flagged(ep, buf, len, to, tag, context);
    }
    return tsend_here(ep, buf, len, to, tag, context, 0);
}

ssize_t tsendv(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
               std::uint64_t tag, void* context) {
    if (const int rc = check("fi_tsendv()", count, 0, 0)) {
        return rc;
    }
    return send(ep, {.call = "fi_tsendv()",
                     .iov = iov,
                     .count = count,
                     .peer = to,
                     .context = context,
                     .flags = rdm_of(ep).tx_flags(),
                     .tag = tag,
                     .tagged = true});
}

ssize_t tsendmsg(fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) {
    if (const int rc = check("fi_tsendmsg()", msg->iov_count, flags, kSendFlags)) {
        return rc;
    }
    return send(ep, {.call = "fi_tsendmsg()",
                     .iov = msg->msg_iov,
                     .count = msg->iov_count,
                     .peer = msg->addr,
                     .context = msg->context,
                     .flags = flags,
                     .tag = msg->tag,
                     .data = msg->data,
                     .tagged = true});
}

DAT_NO_CANARY ssize_t tinject(fid_ep* ep, const void* buf, std::size_t len, fi_addr_t to,
                              std::uint64_t tag) {
    const iovec iov{const_cast<void*>(buf), len};
    return send_here<1>(ep, {.call = "fi_tinject()",
                             .iov = &iov,
                             .count = 1,
                             .peer = to,
                             .context = nullptr,
                             .flags = FI_INJECT,
                             .tag = tag,
                             .tagged = true,
                             .silent = true});
}

ssize_t tsenddata(fid_ep* ep, const void* buf, std::size_t len, void*, std::uint64_t data,
                  fi_addr_t to, std::uint64_t tag, void* context) {
    const iovec iov{const_cast<void*>(buf), len};
    return send_here<1>(ep, {.call = "fi_tsenddata()",
                             .iov = &iov,
                             .count = 1,
                             .peer = to,
                             .context = context,
                             .flags = rdm_of(ep).tx_flags() | FI_REMOTE_CQ_DATA,
                             .tag = tag,
                             .data = data,
                             .tagged = true});
}

ssize_t tinjectdata(fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data, fi_addr_t to,
                    std::uint64_t tag) {
    const iovec iov{const_cast<void*>(buf), len};
    return send_here<1>(ep, {.call = "fi_tinjectdata()",
                             .iov = &iov,
                             .count = 1,
                             .peer = to,
                             .context = nullptr,
                             .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
                             .tag = tag,
                             .data = data,
                             .tagged = true,
                             .silent = true});
}

} // namespace

fi_ops_msg rdm_msg_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = msg_recv,
    .recvv = msg_recvv,
    .recvmsg = msg_recvmsg,
    .send = msg_send,
    .sendv = msg_sendv,
    .sendmsg = msg_sendmsg,
    .inject = msg_inject,
    .senddata = msg_senddata,
    .injectdata = msg_injectdata,
};

fi_ops_tagged rdm_tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    .recv = trecv,
    .recvv = trecvv,
    .recvmsg = trecvmsg,
    .send = tsend,
    .sendv = tsendv,
    .sendmsg = tsendmsg,
    .inject = tinject,
    .senddata = tsenddata,
    .injectdata = tinjectdata,
};

#define DAT_NO(slot) .slot = DAT_NOT_ENABLED(fi_ops_tagged, slot)
fi_ops_tagged tagged_ops_not_enabled = {
    .size = sizeof(fi_ops_tagged),
    DAT_NO(recv),
    DAT_NO(recvv),
    DAT_NO(recvmsg),
    DAT_NO(send),
    DAT_NO(sendv),
    DAT_NO(sendmsg),
    DAT_NO(inject),
    DAT_NO(senddata),
    DAT_NO(injectdata),
};
#undef DAT_NO

} // namespace dat::ofi
