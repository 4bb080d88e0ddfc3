// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// RDMA reads and writes, fi_rma(3).
#include "base/canary.h"
#include "base/log.h"
#include "engine/inbox.h"
#include "ofi/no_op.h"
#include "ofi/post.h"

#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <span>

namespace dat::ofi {
namespace {

// Remote segments that are together as long as the local ones, and not more than `offered`. The
// length is within that of a message. 0 or -FI_E*.
int check_remote(const char* call, const Endpoint& ep, const fi_msg_rma& msg, std::size_t length,
                 std::size_t offered) {
    if (msg.rma_iov_count == 0 || msg.rma_iov_count > offered) {
        DAT_WARN(ep_data, "%s: %zu remote segments, 1 to %zu are offered", call, msg.rma_iov_count,
                 offered);
        return -FI_EINVAL;
    }
    std::size_t left = length;
    for (std::size_t i = 0; i < msg.rma_iov_count; ++i) {
        const fi_rma_iov& each = msg.rma_iov[i];
        if (each.key > UINT32_MAX && !ep.domain().long_keys()) {
            return refuse_key(call, each.key);
        }
        if (each.len > left || (i + 1 == msg.rma_iov_count && each.len != left)) {
            DAT_WARN(ep_data,
                     "%s: remote segment %zu of %zu has %zu bytes, %zu of the %zu local bytes are "
                     "left for it; they have to be as long together as the local ones",
                     call, i + 1, msg.rma_iov_count, each.len, left, length);
            return -FI_EINVAL;
        }
        left -= each.len;
    }
    return 0;
}

// The i-th request of an operation over `remote`, whose first byte is at `offset` of the local
// ones; its segments are in `local`. The levels that wait for the peer, and what it is told, are
// the last one's: it confirms in order.
Post part_of(const Post& whole, std::span<const fi_rma_iov> remote, std::size_t i,
             std::size_t offset, std::span<iovec, engine::kMaxIov> local, bool reported) {
    constexpr std::uint64_t kOfLast = kDataFlags | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
    std::array<engine::Iov, engine::kMaxIov> from;
    for (std::size_t k = 0; k < whole.count; ++k) {
        from[k] = {static_cast<std::byte*>(whole.iov[k].iov_base), whole.iov[k].iov_len};
    }
    const bool last = i + 1 == remote.size();
    Post part = whole;
    part.count = engine::gather({from.data(), whole.count}, offset, remote[i].len, local);
    part.iov = local.data();
    part.length = remote[i].len;
    part.address = remote[i].addr;
    part.key = remote[i].key;
    part.flags &= ~((last ? 0 : kOfLast) | (i == 0 ? 0 : FI_FENCE));
    part.role = last ? engine::Role::last : reported ? engine::Role::part : engine::Role::owed_part;
    return part;
}

// An operation over several remote segments: a request for each, which are posted together.
template <class Path>
ssize_t submit_divided(const char* call, fid_ep* f, const Post& post, const fi_msg_rma& msg) {
    Endpoint& ep = ep_of(f);
    if (const int rc = check_request<Path>(call, ep, post)) {
        return rc;
    }
    typename Path::Caller in(ep.biased_lock());
    engine::Endpoint& endpoint = ep.engine();
    const std::size_t offered =
        std::min<std::size_t>(ep.domain().offering().remote_segments, endpoint.limits().requests);
    if (const int rc = check_remote(call, ep, msg, post.length, offered)) {
        return rc;
    }
    if (const int rc = check_odd_request(call, ep, post)) {
        return rc;
    }
    const bool reported = ep.tx_reported(post.flags);
    const std::span remote(msg.rma_iov, msg.rma_iov_count);
    std::size_t offset = 0;
    const core::PostVerdict verdict = engine::post_divided(
        endpoint, remote.size(), (post.flags & FI_MORE) != 0,
        [&](engine::Request& request, std::uint64_t seq, std::size_t i) {
            std::array<iovec, engine::kMaxIov> local;
            Post each = post;
            if (i < remote.size()) {
                each = part_of(post, remote, i, offset, local, reported);
                offset += remote[i].len;
            }
            fill(request, endpoint.inline_area(seq), endpoint.request_extra_segments(seq), each,
                 reported && each.role != engine::Role::part);
        });
    return verdict == core::PostVerdict::posted ? 0 : result_of(call, ep, verdict);
}

// The calls over one Path.
template <class Path> struct Rma {
    template <engine::OpCode Op>
    static constexpr std::uint64_t kDone = FI_RMA |
                                           (Op == engine::OpCode::read ? FI_READ : FI_WRITE);

    template <engine::OpCode Op>
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

    template <engine::OpCode Op>
    [[gnu::noinline]] static ssize_t one(const char* call, fid_ep* ep, const void* buf,
                                         std::size_t len, void* desc, std::uint64_t address,
                                         std::uint64_t key, void* context,
                                         std::uint64_t more_flags = 0, std::uint64_t data = 0) {
        const iovec iov{const_cast<void*>(buf), len};
        return vector<Op>(call, ep, &iov, &desc, 1, address, key, context, more_flags, data);
    }

    template <engine::OpCode Op>
    static ssize_t message(const char* call, fid_ep* ep, const fi_msg_rma& msg,
                           std::uint64_t flags) {
        constexpr std::uint64_t kOffered =
            Op == engine::OpCode::write ? kRequestFlags | kDataFlags : kRequestFlags;
        if (const int rc = check(call, msg.iov_count, flags, kOffered)) {
            return rc;
        }
        const std::size_t length = total(msg.msg_iov, msg.iov_count);
        const std::uint64_t data = (flags & FI_REMOTE_CQ_DATA) != 0 ? msg.data : 0;
        if (msg.rma_iov_count != 1 || msg.rma_iov[0].len != length) [[unlikely]] {
            return submit_divided<Path>(call, ep,
                                        {.op = Op,
                                         .completion_flags = kDone<Op>,
                                         .iov = msg.msg_iov,
                                         .count = msg.iov_count,
                                         .length = length,
                                         .context = msg.context,
                                         .flags = flags,
                                         .data = data},
                                        msg);
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
                             .data = data,
                             .descriptors = msg.desc});
    }

    static ssize_t read(fid_ep* ep, void* buf, std::size_t len, void* desc, fi_addr_t,
                        std::uint64_t address, std::uint64_t key, void* context) {
        return one<engine::OpCode::read>("fi_read()", ep, buf, len, desc, address, key, context);
    }

    static ssize_t readv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                         std::uint64_t address, std::uint64_t key, void* context) {
        return vector<engine::OpCode::read>("fi_readv()", ep, iov, desc, count, address, key,
                                            context);
    }

    static ssize_t readmsg(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) {
        return message<engine::OpCode::read>("fi_readmsg()", ep, *msg, flags);
    }

    // An RDMA write of one segment.
    [[gnu::always_inline]] static Post post_of(const iovec& iov, void* const& desc,
                                               std::uint64_t address, std::uint64_t key,
                                               void* context, std::uint64_t flags) {
        return {.op = engine::OpCode::write,
                .completion_flags = kDone<engine::OpCode::write>,
                .iov = &iov,
                .count = 1,
                .length = iov.iov_len,
                .context = context,
                .flags = flags,
                .address = address,
                .key = key,
                .descriptors = &desc};
    }

    DAT_NO_CANARY static ssize_t write(fid_ep* ep, const void* buf, std::size_t len, void* desc,
                                       fi_addr_t, std::uint64_t address, std::uint64_t key,
                                       void* context) {
        const std::uint64_t flags = ep_of(ep).tx_usual();
        const iovec iov{const_cast<void*>(buf), len};
        const auto usual = [&](std::uint64_t known) __attribute__((always_inline)) {
            return post_of(iov, desc, address, key, context, known);
        };
        if constexpr (Path::kFast) {
            if ((flags == kUsual && submit_fast<Path>(ep, usual(kUsual))) ||
                (flags == kUsualPlaced && submit_fast<Path>(ep, usual(kUsualPlaced)))) [[likely]] {
                return 0;
            }
        } else if (flags == kUsual) [[likely]] {
            return submit_here<Path>("fi_write()", ep, usual(kUsual));
        } else if (flags == kUsualPlaced) {
            return submit_here<Path>("fi_write()", ep, usual(kUsualPlaced));
        }
        return one<engine::OpCode::write>("fi_write()", ep, buf, len, desc, address, key, context);
    }

    static ssize_t writev(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                          std::uint64_t address, std::uint64_t key, void* context) {
        return vector<engine::OpCode::write>("fi_writev()", ep, iov, desc, count, address, key,
                                             context);
    }

    static ssize_t writemsg(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) {
        return message<engine::OpCode::write>("fi_writemsg()", ep, *msg, flags);
    }

    static ssize_t silent(const char* call, fid_ep* ep, const void* buf, std::size_t len,
                          std::uint64_t more_flags, std::uint64_t address, std::uint64_t key,
                          std::uint64_t data = 0) {
        const iovec iov{const_cast<void*>(buf), len};
        return submit<Path>(call, ep,
                            {.op = engine::OpCode::write,
                             .completion_flags = kDone<engine::OpCode::write>,
                             .iov = &iov,
                             .count = 1,
                             .length = len,
                             .flags = ep_of(ep).injected_flags() | more_flags,
                             .address = address,
                             .key = key,
                             .role = engine::Role::silent,
                             .data = data});
    }

    static ssize_t inject(fid_ep* ep, const void* buf, std::size_t len, fi_addr_t,
                          std::uint64_t address, std::uint64_t key) {
        return silent("fi_inject_write()", ep, buf, len, 0, address, key);
    }

    static ssize_t writedata(fid_ep* ep, const void* buf, std::size_t len, void* desc,
                             std::uint64_t data, fi_addr_t, std::uint64_t address,
                             std::uint64_t key, void* context) {
        return one<engine::OpCode::write>("fi_writedata()", ep, buf, len, desc, address, key,
                                          context, FI_REMOTE_CQ_DATA, data);
    }

    static ssize_t injectdata(fid_ep* ep, const void* buf, std::size_t len, std::uint64_t data,
                              fi_addr_t, std::uint64_t address, std::uint64_t key) {
        return silent("fi_inject_writedata()", ep, buf, len, FI_REMOTE_CQ_DATA, address, key, data);
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
