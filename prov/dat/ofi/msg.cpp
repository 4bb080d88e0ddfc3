// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Messages, fi_msg(3).
#include "base/canary.h"
#include "base/log.h"
#include "ofi/no_op.h"
#include "ofi/post.h"

#include <string>

namespace dat::ofi {

int refuse_flags(const char* call, std::uint64_t flags, std::uint64_t offered) {
    DAT_WARN(ep_data, "%s: flags = 0x%llx has other bits than 0x%llx", call,
             static_cast<unsigned long long>(flags), static_cast<unsigned long long>(offered));
    return -FI_EBADFLAGS;
}

int refuse_count(const char* call, std::size_t count, std::size_t offered) {
    DAT_WARN(ep_data, "%s: %zu segments, at most %zu are offered", call, count, offered);
    return -FI_EINVAL;
}

int refuse_length(const char* call, std::size_t length, std::size_t offered) {
    DAT_WARN(ep_data, "%s: %zu bytes, at most %zu are offered", call, length, offered);
    return -FI_EMSGSIZE;
}

int refuse_inject(const char* call, std::size_t length, std::size_t offered) {
    DAT_WARN(ep_data, "%s: %zu bytes to inject, at most %zu are offered (tx_attr->inject_size)",
             call, length, offered);
    return -FI_EINVAL;
}

int refuse_key(const char* call, std::uint64_t key) {
    DAT_WARN(ep_data, "%s: key = 0x%llx is longer than 4 bytes", call,
             static_cast<unsigned long long>(key));
    return -FI_EKEYREJECTED;
}

int check_wide_data(const char* call, Endpoint& ep, std::uint64_t data) {
    const std::size_t offered = ep.domain().offering().data_size;
    if (offered < sizeof data) {
        DAT_WARN(ep_data, "%s: data = 0x%llx is longer than the cq_data_size of %zu bytes", call,
                 static_cast<unsigned long long>(data), offered);
        return -FI_EINVAL;
    }
    const engine::Link* link = ep.engine().link();
    if (!link || !link->dat_peer() || link->wide()) {
        return 0; // the state answers, or what else the peer does not understand
    }
    DAT_WARN(ep_data,
             "%s: data = 0x%llx is longer than 4 bytes, and the peer is an older `dat` provider, "
             "which takes no more",
             call, static_cast<unsigned long long>(data));
    return -FI_EOPNOTSUPP;
}

int check_long(const char* call, Endpoint& ep, std::size_t length) {
    if (length > ep.message_size()) {
        return refuse_length(call, length, ep.message_size());
    }
    const engine::BiasedLockOwner in(ep.biased_lock());
    const engine::Link* link = ep.engine().link();
    if (!link || link->wide()) {
        return 0; // without a link the state answers
    }
    DAT_WARN(ep_data,
             "%s: %zu bytes, and the peer is no `dat` provider, or an older one: it takes %zu at "
             "most",
             call, length, kMaxNarrowSize);
    return -FI_EMSGSIZE;
}

int refuse_shared(const char* call) {
    DAT_WARN(ep_data,
             "%s: the endpoint takes its receives from a shared receive context; post to that",
             call);
    return -FI_EOPBADSTATE;
}

int refuse_peer(const char* call) {
    DAT_WARN(ep_data,
             "%s: the peer is not a `dat` provider: remote CQ data and atomics are beyond "
             "RFC 5040, and cannot be sent to it",
             call);
    return -FI_EOPNOTSUPP;
}

// It would take one of the buffers that the peer has for messages.
int refuse_data_to_peer(const char* call) {
    DAT_WARN(ep_data,
             "%s: FI_REMOTE_CQ_DATA of a write is not offered by FI_EP_RDM over a device; of a "
             "message it is",
             call);
    return -FI_EOPNOTSUPP;
}

int refuse_without_reads(const char* call, bool is_read) {
    DAT_WARN(ep_data, "%s: the peer serves no RDMA reads (its IRD is 0)%s", call,
             is_read ? "" : ", by which FI_DELIVERY_COMPLETE would be known; use another level");
    return -FI_EOPNOTSUPP;
}

int refuse_state(const char* call, Endpoint& ep) {
    DAT_WARN(ep_data, "%s is not allowed in state %s", call,
             core::name(ep.engine().core().visible_state()).data());
    return -FI_EOPBADSTATE;
}

int refuse_low(const char* call, const iovec& segment) {
    DAT_WARN(ep_data, "%s: a buffer of %zu bytes at %p, where none can be", call, segment.iov_len,
             segment.iov_base);
    return -FI_EFAULT;
}

int look_at(const char* call, const iovec* iov, std::size_t count, engine::Touch how) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto address = reinterpret_cast<std::uintptr_t>(iov[i].iov_base);
        const engine::Untouchable bad = engine::find_untouchable(address, iov[i].iov_len, how);
        if (bad) {
            DAT_WARN(ep_data, "%s: a buffer of %zu bytes at %p: %s", call, iov[i].iov_len,
                     iov[i].iov_base, engine::explain(bad, how).text.data());
            return -FI_EFAULT;
        }
    }
    return 0;
}

namespace {

// The calls over one Path.
template <class Path> struct Messages {
    static constexpr std::uint64_t kDone = FI_SEND | FI_MSG;

    // `desc` is that of the one segment.
    static Post post_of(const iovec& iov, void** desc, void* context, std::uint64_t flags,
                        std::uint64_t data = 0) {
        return {.op = engine::OpCode::send,
                .completion_flags = kDone,
                .iov = &iov,
                .count = 1,
                .length = iov.iov_len,
                .context = context,
                .flags = flags,
                .data = data,
                .descriptors = desc};
    }

    // A message of one segment.
    [[gnu::always_inline]] static ssize_t one_here(const char* call, fid_ep* ep, const void* buf,
                                                   std::size_t len, void* desc, void* context,
                                                   std::uint64_t flags, std::uint64_t data = 0) {
        const iovec iov{const_cast<void*>(buf), len};
        return submit_here<Path>(call, ep, post_of(iov, &desc, context, flags, data));
    }
    [[gnu::noinline]] static ssize_t one(const char* call, fid_ep* ep, const void* buf,
                                         std::size_t len, void* desc, void* context,
                                         std::uint64_t flags, std::uint64_t data = 0) {
        return one_here(call, ep, buf, len, desc, context, flags, data);
    }

    template <std::uint64_t flags>
    [[gnu::always_inline]] static bool send_fast(fid_ep* ep, const void* buf, std::size_t len,
                                                 void* desc, void* context) {
        const iovec iov{const_cast<void*>(buf), len};
        return submit_fast<Path>(ep, post_of(iov, &desc, context, flags));
    }

    DAT_NO_CANARY static ssize_t recv(fid_ep* ep, void* buf, std::size_t len, void* desc, fi_addr_t,
                                      void* context) {
        const std::uint64_t flags = ep_of(ep).rx_usual();
        if constexpr (Path::kFast) {
            if (flags == kUsual && receive_fast<Path>(ep, {buf, len}, desc, context)) [[likely]] {
                return 0;
            }
        } else if (flags == kUsual) [[likely]] {
            const iovec iov{buf, len};
            return receive_here<Path>("fi_recv()", ep, &iov, &desc, 1, context, kUsual);
        }
        return recv_one(ep, buf, len, desc, context, flags);
    }

    [[gnu::noinline]] static ssize_t recv_one(fid_ep* ep, void* buf, std::size_t len, void* desc,
                                              void* context, std::uint64_t flags) {
        const iovec iov{buf, len};
        return receive_here<Path>("fi_recv()", ep, &iov, &desc, 1, context, flags);
    }

    static ssize_t recvv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                         void* context) {
        if (const int rc = check("fi_recvv()", count, 0, 0)) {
            return rc;
        }
        return receive_here<Path>("fi_recvv()", ep, iov, desc, count, context,
                                  ep_of(ep).rx_flags());
    }

    static ssize_t recvmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) {
        if (const int rc = check("fi_recvmsg()", msg->iov_count, flags, kReceiveFlags)) {
            return rc;
        }
        return receive_here<Path>("fi_recvmsg()", ep, msg->msg_iov, msg->desc, msg->iov_count,
                                  msg->context, flags);
    }

    DAT_NO_CANARY static ssize_t send(fid_ep* ep, const void* buf, std::size_t len, void* desc,
                                      fi_addr_t, void* context) {
        const std::uint64_t flags = ep_of(ep).tx_usual();
        if constexpr (Path::kFast) {
            if ((flags == kUsual && send_fast<kUsual>(ep, buf, len, desc, context)) ||
                (flags == kUsualPlaced && send_fast<kUsualPlaced>(ep, buf, len, desc, context)))
                [[likely]] {
                return 0;
            }
        } else if (flags == kUsual) [[likely]] {
            return one_here("fi_send()", ep, buf, len, desc, context, kUsual);
        } else if (flags == kUsualPlaced) {
            return one_here("fi_send()", ep, buf, len, desc, context, kUsualPlaced);
        }
        return one("fi_send()", ep, buf, len, desc, context, flags);
    }

    static ssize_t sendv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                         void* context) {
        if (const int rc = check("fi_sendv()", count, 0, 0)) {
            return rc;
        }
        return submit<Path>("fi_sendv()", ep,
                            {.op = engine::OpCode::send,
                             .completion_flags = kDone,
                             .iov = iov,
                             .count = count,
                             .length = total(iov, count),
                             .context = context,
                             .flags = ep_of(ep).tx_flags(),
                             .descriptors = desc});
    }

    static ssize_t sendmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) {
        if (const int rc = check("fi_sendmsg()", msg->iov_count, flags,
                                 kRequestFlags | kDataFlags | FI_DAT_INVALIDATE)) {
            return rc;
        }
        const bool data = (flags & FI_REMOTE_CQ_DATA) != 0;
        const bool invalidate = (flags & FI_DAT_INVALIDATE) != 0;
        if (data && invalidate) {
            return refuse_flags("fi_sendmsg()", flags, ~std::uint64_t{FI_REMOTE_CQ_DATA});
        }
        if (invalidate && !ep_of(ep).domain().offering().invalidates) {
            return refuse_flags("fi_sendmsg()", flags, ~std::uint64_t{FI_DAT_INVALIDATE});
        }
        return submit<Path>(
            "fi_sendmsg()", ep,
            {.op = invalidate ? engine::OpCode::send_invalidate : engine::OpCode::send,
             .completion_flags = kDone,
             .iov = msg->msg_iov,
             .count = msg->iov_count,
             .length = total(msg->msg_iov, msg->iov_count),
             .context = msg->context,
             .flags = flags,
             .key = invalidate ? msg->data : 0,
             .data = data ? msg->data : 0,
             .descriptors = msg->desc});
    }

    static ssize_t senddata(fid_ep* ep, const void* buf, std::size_t len, void* desc,
                            std::uint64_t data, fi_addr_t, void* context) {
        return one("fi_senddata()", ep, buf, len, desc, context,
                   ep_of(ep).tx_flags() | FI_REMOTE_CQ_DATA, data);
    }

    static ssize_t silent(const char* call, fid_ep* ep, const void* buf, std::size_t len,
                          std::uint64_t flags, std::uint64_t data) {
        const iovec iov{const_cast<void*>(buf), len};
        return submit<Path>(call, ep,
                            {.op = engine::OpCode::send,
                             .completion_flags = kDone,
                             .iov = &iov,
                             .count = 1,
                             .length = len,
                             .flags = flags,
                             .role = engine::Role::silent,
                             .data = data});
    }

    static ssize_t injectdata(fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                              fi_addr_t) {
        return silent("fi_injectdata()", ep, buf, len, FI_INJECT | FI_REMOTE_CQ_DATA, data);
    }

    static ssize_t inject(fid_ep* ep, const void* buf, std::size_t len, fi_addr_t) {
        return silent("fi_inject()", ep, buf, len, FI_INJECT, 0);
    }

    static constexpr fi_ops_msg ops() {
        return {
            .size = sizeof(fi_ops_msg),
            .recv = recv,
            .recvv = recvv,
            .recvmsg = recvmsg,
            .send = send,
            .sendv = sendv,
            .sendmsg = sendmsg,
            .inject = inject,
            .senddata = senddata,
            .injectdata = injectdata,
        };
    }
};

} // namespace

fi_ops_msg msg_ops_unconnected = Messages<Unlinked>::ops();
fi_ops_msg msg_ops_iwarp = Messages<OverIwarp>::ops();
fi_ops_msg msg_ops_shm = Messages<OverShm>::ops();
fi_ops_msg msg_ops_verbs = Messages<OverVerbs>::ops();
fi_ops_msg msg_ops_checked = Messages<CheckedPath>::ops();

#define DAT_NO(slot) .slot = DAT_NOT_ENABLED(fi_ops_msg, slot)
fi_ops_msg msg_ops_not_enabled = {
    .size = sizeof(fi_ops_msg),
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
