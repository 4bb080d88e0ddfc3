// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// RDMA reads and writes, fi_rma(3). May include: ofi, libfabric.
#include "base/log.h"
#include "ofi/no_op.h"
#include "ofi/post.h"

#include <rdma/fi_rma.h>

namespace dat::ofi {
namespace {

// One remote range, as long as the local ones together. 0 or -FI_EINVAL.
int check_remote(const char* call, const fi_msg_rma& msg, std::size_t length) {
    if (msg.rma_iov_count == 1 && msg.rma_iov[0].len == length) [[likely]] {
        return 0;
    }
    DAT_WARN(ep_data,
             "%s: %zu remote ranges of %zu bytes, %zu local bytes; one remote range of "
             "the same length is offered",
             call, msg.rma_iov_count, msg.rma_iov_count > 0 ? msg.rma_iov[0].len : 0, length);
    return -FI_EINVAL;
}

// The calls over one Path.
template <class Path> struct Rma {
    template <soft::OpCode Op>
    static constexpr std::uint64_t kDone = FI_RMA | (Op == soft::OpCode::read ? FI_READ : FI_WRITE);

    template <soft::OpCode Op>
    static ssize_t vector(const char* call, fid_ep* ep, const iovec* iov, void* const* desc,
                          std::size_t count, std::uint64_t address, std::uint64_t key,
                          void* context, std::uint64_t more_flags = 0, std::uint64_t data = 0) {
        if (const int rc = check(call, count, 0, 0)) {
            return rc;
        }
        return submit<Path>(call, ep,
                            {.op = Op,
                             .completion_flags = kDone<Op>,
                             .iov = iov,
                             .count = count,
                             .length = total(iov, count),
                             .context = context,
                             .flags = ep_of(ep).tx_flags() | more_flags,
                             .address = address,
                             .key = key,
                             .data = data,
                             .descriptors = desc});
    }

    template <soft::OpCode Op>
    [[gnu::noinline]] static ssize_t one(const char* call, fid_ep* ep, const void* buf,
                                         std::size_t len, void* desc, std::uint64_t address,
                                         std::uint64_t key, void* context,
                                         std::uint64_t more_flags = 0, std::uint64_t data = 0) {
        const iovec iov{const_cast<void*>(buf), len};
        return vector<Op>(call, ep, &iov, &desc, 1, address, key, context, more_flags, data);
    }

    template <soft::OpCode Op>
    static ssize_t message(const char* call, fid_ep* ep, const fi_msg_rma& msg,
                           std::uint64_t flags) {
        constexpr std::uint64_t kOffered =
            Op == soft::OpCode::write ? kRequestFlags | kDataFlags : kRequestFlags;
        if (const int rc = check(call, msg.iov_count, flags, kOffered)) {
            return rc;
        }
        const std::size_t length = total(msg.msg_iov, msg.iov_count);
        if (const int rc = check_remote(call, msg, length)) {
            return rc;
        }
        return submit<Path>(call, ep,
                            {.op = Op,
                             .completion_flags = kDone<Op>,
                             .iov = msg.msg_iov,
                             .count = msg.iov_count,
                             .length = length,
                             .context = msg.context,
                             .flags = flags,
                             .address = msg.rma_iov[0].addr,
                             .key = msg.rma_iov[0].key,
                             .data = (flags & FI_REMOTE_CQ_DATA) != 0 ? msg.data : 0,
                             .descriptors = msg.desc});
    }

    static ssize_t read(fid_ep* ep, void* buf, std::size_t len, void* desc, fi_addr_t,
                        std::uint64_t address, std::uint64_t key, void* context) {
        return one<soft::OpCode::read>("fi_read()", ep, buf, len, desc, address, key, context);
    }

    static ssize_t readv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                         std::uint64_t address, std::uint64_t key, void* context) {
        return vector<soft::OpCode::read>("fi_readv()", ep, iov, desc, count, address, key,
                                          context);
    }

    static ssize_t readmsg(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) {
        return message<soft::OpCode::read>("fi_readmsg()", ep, *msg, flags);
    }

    // An RDMA write of one segment.
    [[gnu::always_inline]] static Post post_of(const iovec& iov, void* const& desc,
                                               std::uint64_t address, std::uint64_t key,
                                               void* context, std::uint64_t flags) {
        return {.op = soft::OpCode::write,
                .completion_flags = kDone<soft::OpCode::write>,
                .iov = &iov,
                .count = 1,
                .length = iov.iov_len,
                .context = context,
                .flags = flags,
                .address = address,
                .key = key,
                .descriptors = &desc};
    }

    static ssize_t write(fid_ep* ep, const void* buf, std::size_t len, void* desc, fi_addr_t,
                         std::uint64_t address, std::uint64_t key, void* context) {
        const std::uint64_t flags = ep_of(ep).tx_usual();
        const iovec iov{const_cast<void*>(buf), len};
        const auto usual = [&](std::uint64_t known) __attribute__((always_inline)) {
            return post_of(iov, desc, address, key, context, known);
        };
        if constexpr (Path::kStraight) {
            if ((flags == kUsual && submit_straight<Path>(ep, usual(kUsual))) ||
                (flags == kUsualPlaced && submit_straight<Path>(ep, usual(kUsualPlaced))))
                [[likely]] {
                return 0;
            }
        } else if (flags == kUsual) [[likely]] {
            return submit_here<Path>("fi_write()", ep, usual(kUsual));
        } else if (flags == kUsualPlaced) {
            return submit_here<Path>("fi_write()", ep, usual(kUsualPlaced));
        }
        return one<soft::OpCode::write>("fi_write()", ep, buf, len, desc, address, key, context);
    }

    static ssize_t writev(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                          std::uint64_t address, std::uint64_t key, void* context) {
        return vector<soft::OpCode::write>("fi_writev()", ep, iov, desc, count, address, key,
                                           context);
    }

    static ssize_t writemsg(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) {
        return message<soft::OpCode::write>("fi_writemsg()", ep, *msg, flags);
    }

    static ssize_t silent(const char* call, fid_ep* ep, const void* buf, std::size_t len,
                          std::uint64_t flags, std::uint64_t address, std::uint64_t key,
                          std::uint64_t data = 0) {
        const iovec iov{const_cast<void*>(buf), len};
        return submit<Path>(call, ep,
                            {.op = soft::OpCode::write,
                             .completion_flags = kDone<soft::OpCode::write>,
                             .iov = &iov,
                             .count = 1,
                             .length = len,
                             .flags = flags,
                             .address = address,
                             .key = key,
                             .silent = true,
                             .data = data});
    }

    static ssize_t inject(fid_ep* ep, const void* buf, std::size_t len, fi_addr_t,
                          std::uint64_t address, std::uint64_t key) {
        return silent("fi_inject_write()", ep, buf, len, FI_INJECT, address, key);
    }

    static ssize_t writedata(fid_ep* ep, const void* buf, std::size_t len, void* desc,
                             std::uint64_t data, fi_addr_t, std::uint64_t address,
                             std::uint64_t key, void* context) {
        return one<soft::OpCode::write>("fi_writedata()", ep, buf, len, desc, address, key, context,
                                        FI_REMOTE_CQ_DATA, data);
    }

    static ssize_t injectdata(fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                              fi_addr_t, std::uint64_t address, std::uint64_t key) {
        return silent("fi_inject_writedata()", ep, buf, len, FI_INJECT | FI_REMOTE_CQ_DATA, address,
                      key, data);
    }

    static constexpr fi_ops_rma ops() {
        return {
            .size = sizeof(fi_ops_rma),
            .read = read,
            .readv = readv,
            .readmsg = readmsg,
            .write = write,
            .writev = writev,
            .writemsg = writemsg,
            .inject = inject,
            .writedata = writedata,
            .injectdata = injectdata,
        };
    }
};

} // namespace

fi_ops_rma rma_ops_unconnected = Rma<Unlinked>::ops();
fi_ops_rma rma_ops_iwarp = Rma<OverIwarp>::ops();
fi_ops_rma rma_ops_shm = Rma<OverShm>::ops();
fi_ops_rma rma_ops_verbs = Rma<OverVerbs>::ops();
fi_ops_rma rma_ops_checked = Rma<CheckedPath>::ops();

#define DAT_NO(slot) .slot = DAT_NOT_ENABLED(fi_ops_rma, slot)
fi_ops_rma rma_ops_not_enabled = {
    .size = sizeof(fi_ops_rma),
    DAT_NO(read),
    DAT_NO(readv),
    DAT_NO(readmsg),
    DAT_NO(write),
    DAT_NO(writev),
    DAT_NO(writemsg),
    DAT_NO(inject),
    DAT_NO(writedata),
    DAT_NO(injectdata),
};
#undef DAT_NO

} // namespace dat::ofi
