// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The usual post and the usual event, straight from the entry point to the provider and back:
// no allocation, system call or lock of their own. Whatever else there is about a post, errors
// too, is left to the general way (post.h), which then says what is wrong; an event that is not
// plain to dequeue_other(). The one file that includes the provider: its ofi/direct.h is
// inlined here. May include: dat-shim, ofi/direct.h, libfabric.
#ifndef DAT_SHIM_STRAIGHT_H
#define DAT_SHIM_STRAIGHT_H

#include "dat-shim/ep.h"
#include "dat-shim/evd.h"
#include "ofi/direct.h"

namespace dat::shim {

template <class Triplet>
[[gnu::always_inline]] inline Return Ep::post_send(std::int32_t count, const Triplet* iov,
                                                   std::uint64_t cookie, std::uint32_t flags) {
    void* memory;
    if (!is_plain<privilege::kLocalRead>(count, iov, flags, plain_sends_, requests_, memory))
        [[unlikely]] {
        return post_any_send(count, iov, cookie, flags);
    }
    Slot& slot = fill(requests_, Operation::send, cookie, 0);
    requests_.advance();
    const ssize_t rc = ofi::direct::send<kRequestFlags[0]>(ep_, memory, iov->segment_length, &slot);
    if (rc != 0) [[unlikely]] {
        requests_.retreat();
        return post_failed(rc);
    }
    return kSuccess;
}

template <class Triplet, class Remote>
[[gnu::always_inline]] inline Return Ep::post_write(std::int32_t count, const Triplet* iov,
                                                    std::uint64_t cookie, const Remote& remote,
                                                    std::uint32_t flags) {
    void* memory;
    if (!is_plain<privilege::kLocalRead>(count, iov, flags, plain_writes_, requests_, memory) ||
        iov->segment_length > remote.segment_length) [[unlikely]] {
        return post_any_write(count, iov, cookie, remote, flags, nullptr);
    }
    Slot& slot = fill(requests_, Operation::rdma_write, cookie, 0);
    requests_.advance();
    const ssize_t rc = ofi::direct::write<kRequestFlags[0]>(
        ep_, memory, iov->segment_length, &slot, remote.virtual_address, remote.rmr_context);
    if (rc != 0) [[unlikely]] {
        requests_.retreat();
        return post_failed(rc);
    }
    return kSuccess;
}

template <class Triplet>
[[gnu::always_inline]] inline Return Ep::post_recv(std::int32_t count, const Triplet* iov,
                                                   std::uint64_t cookie, std::uint32_t flags) {
    void* memory;
    if (!is_plain<privilege::kLocalWrite>(count, iov, flags, plain_receives_, receives_, memory))
        [[unlikely]] {
        return post_any_recv(count, iov, cookie, flags);
    }
    Slot& slot = fill(receives_, Operation::receive, cookie, 0);
    receives_.advance();
    const ssize_t rc = ofi::direct::receive<FI_COMPLETION>(ep_, memory, iov->segment_length, &slot);
    if (rc != 0) [[unlikely]] {
        receives_.retreat();
        return post_failed(rc);
    }
    return kSuccess;
}

template <class Plain> [[gnu::always_inline]] inline Evd::Next Evd::dequeue(Plain&& plain) {
    fid_cq* const cq = direct_.load(std::memory_order_acquire);
    if (!cq) [[unlikely]] {
        return Next::other;
    }
    const ofi::direct::Taken taken = ofi::direct::take(cq, [&](const ofi::direct::Success& done) {
        const Slot& slot = *static_cast<const Slot*>(done.context);
        if (!is_plain(slot, done.flags)) [[unlikely]] {
            return false;
        }
        plain(slot, static_cast<std::uint32_t>(done.length));
        slot.ring->reaped(slot.behind);
        return true;
    });
    if (taken == ofi::direct::Taken::one) [[likely]] {
        return Next::plain;
    }
    return taken == ofi::direct::Taken::none ? Next::none : Next::other;
}

} // namespace dat::shim

#endif
