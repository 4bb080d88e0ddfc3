// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See srx.h.
#include "ofi/srx.h"

#include "base/log.h"
#include "ofi/errors.h"
#include "ofi/info.h"
#include "ofi/no_op.h"
#include "ofi/ours.h"
#include "ofi/post.h"

#include <memory>

namespace dat::ofi {
namespace {

SharedContext& srx_of(fid_ep* f) { return *static_cast<SharedContext*>(f); }

template <class Path>
ssize_t post(const char* call, fid_ep* f, const iovec* iov, std::size_t count, void* context,
             std::uint64_t flags) {
    if (const int rc =
            check(call, count, flags, kReceiveFlags & ~(FI_MULTI_RECV | FI_DAT_UNSIGNALLED))) {
        return rc;
    }
    if (const int rc = check_memory<Path>(call, iov, count, engine::Touch::write)) {
        return rc;
    }
    SharedContext& srx = srx_of(f);
    const engine::BiasedLockOwner in(srx.biased_lock());
    if (srx.receives().full()) {
        return -FI_EAGAIN;
    }
    // Whose queue reports it, and whether it does so selectively, is not known yet.
    srx.receives().post([&](engine::Receive& receive, engine::Iov* extra_segments) {
        fill(receive, extra_segments, iov, count, context, true, false);
    });
    return 0;
}

template <class Path>
ssize_t recv(fid_ep* srx, void* buf, std::size_t len, void*, fi_addr_t, void* context) {
    const iovec iov{buf, len};
    return post<Path>("fi_recv()", srx, &iov, 1, context, srx_of(srx).op_flags());
}

template <class Path>
ssize_t recvv(fid_ep* srx, const iovec* iov, void**, std::size_t count, fi_addr_t, void* context) {
    return post<Path>("fi_recvv()", srx, iov, count, context, srx_of(srx).op_flags());
}

template <class Path> ssize_t recvmsg(fid_ep* srx, const fi_msg* msg, std::uint64_t flags) {
    return post<Path>("fi_recvmsg()", srx, msg->msg_iov, msg->iov_count, msg->context, flags);
}

ssize_t cancel(fid_t f, void* context) {
    SharedContext& srx = object_of<SharedContext, fid_ep>(f);
    const engine::BiasedLockOwner in(srx.biased_lock());
    return srx.receives().cancel(context) ? 0 : -FI_ENOENT;
}

ssize_t size_left(fid_ep* f) {
    SharedContext& srx = srx_of(f);
    const engine::BiasedLockOwner in(srx.biased_lock());
    return srx.receives().limit() - srx.receives().waiting();
}

int close(fid_t f) {
    SharedContext& srx = object_of<SharedContext, fid_ep>(f);
    if (srx.users.count() > 0) {
        DAT_WARN(ep_ctrl, "fi_close() of a shared receive context: %d endpoints are bound to it",
                 srx.users.count());
        return -FI_EBUSY;
    }
    delete &srx;
    return 0;
}

// It needs no queue of its own and is enabled from the start.
int control(fid_t, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }

int available(fid_ep* f, std::uint32_t* count) {
    SharedContext& srx = srx_of(f);
    const engine::BiasedLockOwner in(srx.biased_lock());
    *count = srx.receives().waiting();
    return 0;
}

int set_low_watermark(fid_ep* srx, std::uint32_t count) {
    return no_throw([&] { return srx_of(srx).set_low_watermark(count); });
}

fi_dat_ops_srx g_dat_ops = {
    .size = sizeof(fi_dat_ops_srx),
    .available = OfOurs<available>::call,
    .set_low_watermark = OfOurs<set_low_watermark>::call,
};

int open_ops(fid_t, const char* name, std::uint64_t flags, void** table, void*) {
    return give_table(g_dat_ops, FI_DAT_SRX_OPS, name, flags, table);
}

fi_ops g_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = DAT_NOT_OFFERED(fi_ops, bind),
    .control = control,
    .ops_open = open_ops,
    .tostr = DAT_NOT_OFFERED(fi_ops, tostr),
    .ops_set = DAT_NOT_OFFERED(fi_ops, ops_set),
};

fi_ops_ep g_ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = DAT_NOT_OFFERED(fi_ops_ep, getopt),
    .setopt = DAT_NOT_OFFERED(fi_ops_ep, setopt),
    .tx_ctx = DAT_NOT_OFFERED(fi_ops_ep, tx_ctx),
    .rx_ctx = DAT_NOT_OFFERED(fi_ops_ep, rx_ctx),
    .rx_size_left = size_left,
    .tx_size_left = DAT_NOT_OFFERED(fi_ops_ep, tx_size_left),
};

template <class Path> constexpr fi_ops_msg ops_over() {
    return {
        .size = sizeof(fi_ops_msg),
        .recv = recv<Path>,
        .recvv = recvv<Path>,
        .recvmsg = recvmsg<Path>,
        .send = DAT_NOT_OFFERED(fi_ops_msg, send),
        .sendv = DAT_NOT_OFFERED(fi_ops_msg, sendv),
        .sendmsg = DAT_NOT_OFFERED(fi_ops_msg, sendmsg),
        .inject = DAT_NOT_OFFERED(fi_ops_msg, inject),
        .senddata = DAT_NOT_OFFERED(fi_ops_msg, senddata),
        .injectdata = DAT_NOT_OFFERED(fi_ops_msg, injectdata),
    };
}

fi_ops_msg g_msg_ops = ops_over<Unlinked>();
fi_ops_msg g_msg_ops_checked = ops_over<CheckedPath>();

} // namespace

SharedContext::SharedContext(Domain& domain, std::uint32_t size, std::uint64_t op_flags,
                             void* context)
    : domain_(domain), op_flags_(op_flags), receives_(size) {
    fid.fclass = FI_CLASS_SRX_CTX;
    fid.context = context;
    fid.ops = &g_fid_ops;
    ops = &g_ep_ops;
    cm = &no_cm_ops;
    msg = domain.engine().settings().check_buffers ? &g_msg_ops_checked : &g_msg_ops;
    rma = &no_rma_ops;
    tagged = &no_tagged_ops;
    atomic = &no_atomic_ops;
    collective = &no_collective_ops;
    domain_.users.add();
}

SharedContext::~SharedContext() {
    if (EventQueue* async = domain_.async_queue()) {
        async->purge(&fid);
    }
    domain_.users.remove();
}

int SharedContext::set_low_watermark(std::uint32_t count) {
    if (count > receives_.limit()) {
        DAT_WARN(ep_ctrl, "set_low_watermark(): %u; the context takes %u receives", count,
                 receives_.limit());
        return -FI_EINVAL;
    }
    const engine::BiasedLockOwner in(biased_lock());
    receives_.set_low_watermark(count, *this);
    return 0;
}

int open_srx(fid_domain* domain, fi_rx_attr* attr, fid_ep** srx, void* context) {
    const std::size_t size = attr && attr->size ? attr->size : kDefaultQueueSize;
    const std::uint64_t flags = attr ? attr->op_flags : 0;
    if (size > kMaxSharedSize || (flags & ~kRxOpFlags) != 0 ||
        (attr && attr->iov_limit > engine::kMaxIov)) {
        DAT_WARN(ep_ctrl,
                 "fi_srx_context(): size = %zu, op_flags = 0x%llx, iov_limit = %zu; at most %zu, "
                 "0x%llx and %zu are offered",
                 size, static_cast<unsigned long long>(flags), attr ? attr->iov_limit : 0,
                 kMaxSharedSize, static_cast<unsigned long long>(kRxOpFlags), engine::kMaxIov);
        return -FI_EINVAL;
    }
    if (!domain_of(domain).offering().shared_receives) {
        DAT_WARN(ep_ctrl, "fi_srx_context(): this RDMA device has no shared receive queues; "
                          "FI_DAT_TRANSPORT=soft has shared receive contexts");
        return -FI_EOPNOTSUPP;
    }
    return no_throw([&] {
        *srx =
            new SharedContext(domain_of(domain), static_cast<std::uint32_t>(size), flags, context);
        return 0;
    });
}

} // namespace dat::ofi
