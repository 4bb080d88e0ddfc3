// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The calls of a plain message or write and of its completion for a library that has the provider
// linked in (dat-shim/fast.h): inlined there, with flags that the compiler knows, they are
// fi_sendmsg(), fi_writemsg(), fi_recvmsg() and fi_cq_read() without the calls and without entries
// that are written only to be read. BiasedLock, states, errors and log lines are theirs. Objects
// are this provider's, of a domain of FI_THREAD_SAFE: nothing looks at that.
#ifndef DAT_OFI_DIRECT_H
#define DAT_OFI_DIRECT_H

#include "ofi/cq.h"
#include "ofi/post.h"
#include "ofi/provider.h"

#include <cstddef>
#include <cstdint>
#include <sys/types.h>
#include <sys/uio.h>
#include <utility>

namespace dat::ofi::direct {

struct Path : OverShm {
    using Caller = engine::SharedBiasedLockOwner;
    static constexpr bool kAnyMemory = false;
};

// FI_DAT_CHECK_BUFFERS, FI_DAT_TRACE, probes: posts have to go by the tables of the endpoint.
inline bool watches(fid_ep* ep) {
    return parameters().settings.check_buffers || ep_of(ep).engine().trace();
}

// A message of one segment; `flags` as fi_sendmsg() has them, without FI_INJECT. 0 or -FI_E*.
// The endpoint is enabled. Its link is expected to be memory, any other goes by a virtual call.
template <std::uint64_t flags>
[[gnu::always_inline]] inline ssize_t send(fid_ep* ep, void* base, std::size_t length,
                                           void* context) {
    static_assert((flags & FI_INJECT) == 0);
    const iovec iov{base, length};
    return submit_here<Path>(
        "a send", ep, {engine::OpCode::send, FI_SEND | FI_MSG, &iov, 1, length, context, flags});
}

// An RDMA write of one segment, to where `there()` says, the address and key of the peer's region;
// the rest as above.
struct Place {
    std::uint64_t address;
    std::uint32_t key;
};
template <std::uint64_t flags, class There>
[[gnu::always_inline]] inline ssize_t write(fid_ep* ep, void* base, std::size_t length,
                                            void* context, There&& there) {
    static_assert((flags & FI_INJECT) == 0);
    const iovec iov{base, length};
    return submit_here<Path>(
        "a write", ep, {engine::OpCode::write, FI_RMA | FI_WRITE, &iov, 1, length, context, flags},
        [&](engine::Request & request) __attribute__((always_inline)) {
            const Place place = there();
            request.remote_address = place.address;
            request.remote_key = place.key;
        });
}

// A receive of one segment; `flags` as fi_recvmsg() has them. 0 or -FI_E*. The endpoint is
// enabled.
template <std::uint64_t flags>
[[gnu::always_inline]] inline ssize_t receive(fid_ep* ep, void* base, std::size_t length,
                                              void* context) {
    const iovec iov{base, length};
    return receive_here<Path>("a receive", ep, &iov, nullptr, 1, context, flags);
}

// What fi_cq_read() tells of a success, as far as FI_CQ_FORMAT_MSG.
struct Success {
    void* context;
    std::uint64_t flags;
    std::size_t length;
};

enum class Taken : std::uint8_t {
    one,
    none,  // the queue is empty
    other, // the oldest is a failure, or not for the sink: it stays
};

// The oldest in the queue, if the sink takes it. Under the lock. Precondition: !cq.empty().
template <class Sink>
[[gnu::always_inline]] inline Taken take_front(CompletionQueue& cq, Sink&& sink) {
    const core::Completion& first = cq.front();
    if (first.status != core::DtoStatus::success ||
        !sink(Success{first.context, first.flags, first.length})) [[unlikely]] {
        return Taken::other;
    }
    cq.pop();
    return Taken::one;
}

// The rest of take(), under the lock.
template <class Sink> [[gnu::noinline]] Taken take_moving(CompletionQueue& cq, Sink sink) {
    do {
        if (!cq.empty()) {
            return take_front(cq, sink);
        }
        core::Success drawn;
        if (cq.offered() && cq.draw(drawn)) {
            if (!sink(Success{drawn.context, drawn.flags, drawn.length})) [[unlikely]] {
                cq.push({drawn.context, drawn.flags, drawn.length, drawn.buffer, 0, 0,
                         core::DtoStatus::success});
                return Taken::other;
            }
            return Taken::one;
        }
    } while (cq.move());
    return Taken::none;
}

// The oldest completion, if `sink(const Success&)` takes it; runs under the lock. The sink is
// copied: with nothing but values in it, it costs the caller no memory.
template <class Sink> [[gnu::always_inline]] inline Taken take(fid_cq* f, Sink sink) {
    CompletionQueue& cq = cq_of(f);
    const Path::Caller in(cq.biased_lock());
    if (!cq.empty()) [[likely]] {
        return take_front(cq, sink);
    }
    return take_moving(cq, sink);
}

// The oldest completions, failures among them, at most `most`; `sink(const core::Completion&)`
// gets each, under the lock. How many: 0 where the queue is empty.
template <class Sink> std::size_t take_all(fid_cq* f, std::size_t most, Sink&& sink) {
    CompletionQueue& cq = cq_of(f);
    const Path::Caller in(cq.biased_lock());
    std::size_t taken = 0;
    do {
        for (; taken < most; ++taken) {
            core::Success drawn;
            if (!cq.empty()) {
                sink(cq.front());
                cq.pop();
            } else if (cq.offered() && cq.draw(drawn)) {
                sink(core::Completion{drawn.context, drawn.flags, drawn.length, drawn.buffer,
                                      drawn.data, 0, core::DtoStatus::success});
            } else {
                break;
            }
        }
    } while (taken == 0 && cq.move());
    return taken;
}

// Takes out the completions that `gone(const core::Completion&)` says yes to, under the lock.
// Takes no memory.
template <class Predicate> void remove_if(fid_cq* f, Predicate&& gone) {
    CompletionQueue& cq = cq_of(f);
    const Path::Caller in(cq.biased_lock());
    cq.remove_if(std::forward<Predicate>(gone));
}

} // namespace dat::ofi::direct

#endif
