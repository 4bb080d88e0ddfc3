// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The usual post and the usual event, straight from the entry point to the provider and back:
// no allocation, system call or lock of their own. A request that gives no completion (DTO-21) is
// as usual, one call further. Whatever else there is about a post, errors
// too, is left to the general way (post.h), which then says what is wrong; an event that is not
// plain to dequeue_other(). The one file that includes the provider: its ofi/direct.h is
// inlined here.
#ifndef DAT_SHIM_FAST_H
#define DAT_SHIM_FAST_H

#include "dat-shim/ep.h"
#include "dat-shim/evd.h"
#include "ofi/direct.h"

#include <utility>

namespace dat::shim {

// A plain post that has been checked. `call(slot)`: the provider's, 0 or -FI_E*.
template <class Call>
[[gnu::always_inline]] inline Return Ep::post_plain(DtoRing& ring, Operation operation,
                                                    std::uint64_t cookie, std::uint32_t flags,
                                                    Call&& call) {
    Slot& slot = fill(ring, operation, cookie, flags);
    ring.advance();
    const ssize_t rc = std::forward<Call>(call)(&slot);
    if (rc != 0) [[unlikely]] {
        ring.retreat();
        return post_failed(rc);
    }
    return kSuccess;
}

template <std::uint32_t kFlags, class Triplet, class Other>
[[gnu::always_inline]] inline Return Ep::post_plain_send(std::int32_t count, const Triplet* iov,
                                                         std::uint64_t cookie, std::uint32_t flags,
                                                         Other&& other) {
    iovec segment;
    if (!is_plain<privilege::kLocalRead>(count, iov, flags ^ kFlags, plain_sends_, requests_,
                                         segment)) [[unlikely]] {
        return std::forward<Other>(other)();
    }
    return post_plain(
        requests_, Operation::send, cookie,
        kFlags, [&](Slot * slot) __attribute__((always_inline)) {
            return ofi::direct::send<kRequestFlags[kFlags]>(ep_, segment.iov_base, segment.iov_len,
                                                            slot);
        });
}

template <class Triplet>
[[gnu::always_inline]] inline Return Ep::post_send(std::int32_t count, const Triplet* iov,
                                                   std::uint64_t cookie, std::uint32_t flags) {
    return post_plain_send<0>(count, iov, cookie, flags,
                              [&] { return post_quiet_send(count, iov, cookie, flags); });
}

template <class Triplet>
[[gnu::noinline]] Return Ep::post_quiet_send(std::int32_t count, const Triplet* iov,
                                             std::uint64_t cookie, std::uint32_t flags) {
    return post_plain_send<completion::kSuppress>(
        count, iov, cookie, flags, [&] { return post_any_send(count, iov, cookie, flags); });
}

template <std::uint32_t kFlags, class Triplet, class Remote, class Other>
[[gnu::always_inline]] inline Return
Ep::post_plain_write(std::int32_t count, const Triplet* iov, std::uint64_t cookie,
                     const Remote& remote, std::uint32_t flags, Other&& other) {
    iovec segment;
    if (!is_plain<privilege::kLocalRead>(count, iov, flags ^ kFlags, plain_writes_, requests_,
                                         segment)) [[unlikely]] {
        return std::forward<Other>(other)();
    }
    return post_plain(
        requests_, Operation::rdma_write, cookie,
        kFlags, [&](Slot * slot) __attribute__((always_inline)) {
            return ofi::direct::write<kRequestFlags[kFlags]>(
                ep_, segment.iov_base, segment.iov_len, slot, [&] {
                    return ofi::direct::Place{remote.virtual_address, remote.rmr_context};
                });
        });
}

template <class Triplet, class Remote>
[[gnu::always_inline]] inline Return Ep::post_write(std::int32_t count, const Triplet* iov,
                                                    std::uint64_t cookie, const Remote& remote,
                                                    std::uint32_t flags) {
    return post_plain_write<0>(count, iov, cookie, remote, flags,
                               [&] { return post_quiet_write(count, iov, cookie, remote, flags); });
}

template <class Triplet, class Remote>
[[gnu::noinline]] Return Ep::post_quiet_write(std::int32_t count, const Triplet* iov,
                                              std::uint64_t cookie, const Remote& remote,
                                              std::uint32_t flags) {
    return post_plain_write<completion::kSuppress>(count, iov, cookie, remote, flags, [&] {
        return post_any_write(count, iov, cookie, remote, flags, nullptr);
    });
}

template <class Triplet>
[[gnu::always_inline]] inline Return Ep::post_recv(std::int32_t count, const Triplet* iov,
                                                   std::uint64_t cookie, std::uint32_t flags) {
    iovec segment;
    if (!is_plain<privilege::kLocalWrite>(count, iov, flags, plain_receives_, receives_, segment))
        [[unlikely]] {
        return post_any_recv(count, iov, cookie, flags);
    }
    return post_plain(
        receives_, Operation::receive, cookie, 0, [&](Slot * slot) __attribute__((always_inline)) {
            return ofi::direct::receive<FI_COMPLETION>(ep_, segment.iov_base, segment.iov_len,
                                                       slot);
        });
}

// The oldest completions, failures among them, each as an event for `sink(const Event&)`; at most
// `most`. 0: there is none. Their slots are read and given back under the lock: a thread that
// dequeues a later one meanwhile would have given them back as well, and they were posted with
// again before they are read.
template <class Sink> std::size_t take_events(fid_cq* cq, std::size_t most, Sink&& sink) {
    return ofi::direct::take_all(cq, most, [&](const core::Completion& done) {
        Event event{};
        complete(done, event);
        sink(event);
    });
}

template <class Plain> [[gnu::always_inline]] inline Evd::Next Evd::dequeue(Plain plain) {
    fid_cq* const cq = direct_.load(std::memory_order_acquire);
    if (!cq) [[unlikely]] {
        return Next::other;
    }
    const ofi::direct::Taken taken = ofi::direct::take(
        cq, [plain](const ofi::direct::Success& done) __attribute__((always_inline)) {
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
