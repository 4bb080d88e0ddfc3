// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// From a posting call of libfabric to a slot of the endpoint. The calls are
// templates on a Path: how a request gets to the link. Nothing here allocates,
// locks beyond the domain's, or enters the kernel.
#ifndef DAT_OFI_POST_H
#define DAT_OFI_POST_H

#include "engine/post.h"
#include "engine/touchable.h"
#include "links/iwarp/link.h"
#include "links/shm/link.h"
#include "links/verbs/link.h"
#include "ofi/ep.h"
#include "ofi/errors.h"
#include "ofi/info.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_dat.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sys/uio.h>
#include <type_traits>
#include <utility>

namespace dat::ofi {

// The link is of a kind that is known, mostly.
template <class L> struct Linked {
    using Caller = engine::BiasedLockOwner;
    // Posts of it may have to say what their memory is registered as.
    static constexpr bool kNames =
        std::is_same_v<L, verbs::Link> || std::is_same_v<L, engine::Link>;
    // submit_fast() and receive_fast() are there for it.
    static constexpr bool kFast = std::is_same_v<L, verbs::Link>;
    // Memory of a post may be anywhere; else it is registered, as of a segment of an LMR.
    static constexpr bool kAnyMemory = true;
    // It is looked at before it is posted (FI_DAT_CHECK_BUFFERS).
    static constexpr bool kChecked = false;
    using Link = L;
    template <class Fill>
    [[gnu::always_inline]] static core::PostVerdict post(engine::Endpoint& endpoint, bool more,
                                                         Fill&& fill) {
        return engine::post_request<L>(endpoint, more, std::forward<Fill>(fill));
    }
    template <class Fill>
    [[gnu::always_inline]] static core::PostVerdict receive(engine::Endpoint& endpoint,
                                                            Fill&& fill) {
        return engine::post_receive<L>(endpoint, std::forward<Fill>(fill));
    }
};
using OverIwarp = Linked<iwarp::Link>;
using OverShm = Linked<shm::Link>;
using OverVerbs = Linked<verbs::Link>;
// There was no link when the caller looked at the table; there may be by now.
using Unlinked = Linked<engine::Link>;
// For any link: to find programs that post memory that cannot be touched.
struct CheckedPath : Unlinked {
    static constexpr bool kChecked = true;
};

// A request as the caller described it.
struct Post {
    engine::OpCode op;
    std::uint64_t completion_flags;
    const iovec* iov;
    std::size_t count;
    std::size_t length; // of all segments
    void* context = nullptr;
    std::uint64_t flags;
    std::uint64_t address = 0;
    std::uint64_t key = 0;
    engine::Role role = engine::Role::alone;          // silent: of an inject call
    std::uint64_t data = 0;                           // with FI_REMOTE_CQ_DATA in flags
    const engine::AtomicOperands* operands = nullptr; // of an atomic
    void* const* descriptors = nullptr;               // one for each segment, or nullptr
};

inline constexpr std::uint64_t kRequestFlags = kTxOpFlags | FI_MORE | FI_FENCE | FI_DAT_UNSIGNALLED;
// What most posts ask for, which go straight, with flags that the compiler knows.
inline constexpr std::uint64_t kUsual = FI_COMPLETION;
inline constexpr std::uint64_t kUsualPlaced = FI_COMPLETION | FI_TRANSMIT_COMPLETE;
inline constexpr std::uint64_t kDataFlags = FI_REMOTE_CQ_DATA | FI_DAT_SOLICITED;
inline constexpr std::uint64_t kReceiveFlags = kRxOpFlags | FI_MORE | FI_DAT_UNSIGNALLED;

// Logged refusals, out of the way of the fast path; they return the error.
int refuse_flags(const char* call, std::uint64_t flags, std::uint64_t offered)
    __attribute__((cold));
int refuse_count(const char* call, std::size_t count, std::size_t offered) __attribute__((cold));
int refuse_length(const char* call, std::size_t length, std::size_t offered) __attribute__((cold));
int refuse_inject(const char* call, std::size_t length, std::size_t offered) __attribute__((cold));
int refuse_key(const char* call, std::uint64_t key) __attribute__((cold));
int refuse_shared(const char* call) __attribute__((cold));
int refuse_data_to_peer(const char* call) __attribute__((cold));
int refuse_peer(const char* call) __attribute__((cold));
int refuse_without_reads(const char* call, bool is_read) __attribute__((cold));
int refuse_state(const char* call, Endpoint& ep) __attribute__((cold));
int refuse_low(const char* call, const iovec& segment) __attribute__((cold));
// -FI_EFAULT, logged, where a segment cannot be touched so; else 0. Asks the kernel.
int look_at(const char* call, const iovec* iov, std::size_t count, engine::Touch how);

// A segment within the first page, where nothing is: NULL, or a member of what NULL points to.
inline bool is_low(const iovec& segment) {
    constexpr std::uintptr_t kFirstPage = 4096;
    return reinterpret_cast<std::uintptr_t>(segment.iov_base) < kFirstPage && segment.iov_len > 0;
}

// The segments of a post. 0 or -FI_EFAULT.
template <class Path>
[[gnu::always_inline]] inline int check_memory(const char* call, const iovec* iov,
                                               std::size_t count, engine::Touch how) {
    if constexpr (Path::kAnyMemory) {
        for (std::size_t i = 0; i < count; ++i) {
            if (is_low(iov[i])) [[unlikely]] {
                return refuse_low(call, iov[i]);
            }
        }
    }
    if constexpr (Path::kChecked) {
        return look_at(call, iov, count, how);
    }
    return 0;
}

inline std::size_t total(const iovec* iov, std::size_t count) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < count; ++i) {
        length += iov[i].iov_len;
    }
    return length;
}

inline engine::Level level(std::uint64_t flags) {
    if ((flags & FI_DELIVERY_COMPLETE) != 0) {
        return engine::Level::delivered;
    }
    return (flags & FI_TRANSMIT_COMPLETE) != 0 ? engine::Level::placed : engine::Level::taken;
}

// Copies the payload into memory of the slot: the caller's is free at once.
inline void copy_inline(engine::Request& request, std::byte* area, const Post& post) {
    std::byte* at = area;
    for (std::size_t i = 0; i < post.count; ++i) {
        if (post.iov[i].iov_len > 0) {
            std::memcpy(at, post.iov[i].iov_base, post.iov[i].iov_len);
            at += post.iov[i].iov_len;
        }
    }
    request.iov = {area, post.length};
    request.iov_count = 1;
}

// `extra_segments`: the slot's room for several segments, here and below.
template <class Slot>
[[gnu::always_inline]] inline void fill_segments(Slot& slot, engine::Iov* extra_segments,
                                                 const iovec* iov, std::size_t count) {
    engine::Iov* to = engine::set_segments(slot, count, extra_segments);
    for (std::size_t i = 0; i < count; ++i) {
        to[i] = {static_cast<std::byte*>(iov[i].iov_base), iov[i].iov_len};
    }
}

// `names`: of the slot; nullptr: they are not wanted.
inline void fill_names(const void** names, void* const* descriptors, std::size_t count) {
    if (names) {
        for (std::size_t i = 0; i < count; ++i) {
            names[i] = descriptors ? descriptors[i] : nullptr;
        }
    }
}

[[gnu::always_inline]] inline void fill(engine::Receive& receive, engine::Iov* extra_segments,
                                        const iovec* iov, std::size_t count, void* context,
                                        bool reported, bool multi) {
    receive.context = context;
    receive.completion_flags = FI_RECV | FI_MSG;
    receive.capacity = total(iov, count);
    receive.signaled = reported;
    receive.multi = multi;
    fill_segments(receive, extra_segments, iov, count);
}

[[gnu::always_inline]] inline void fill(engine::Request& request, std::byte* area,
                                        engine::Iov* extra_segments, const Post& post,
                                        bool reported) {
    request.context = post.context;
    request.completion_flags = post.completion_flags | (post.flags & FI_DAT_UNSIGNALLED);
    request.length = post.length;
    request.remote_address = post.address;
    request.remote_key = engine::MrTable::short_key(post.key);
    request.ordinal = 0;
    request.op = post.op;
    request.level = level(post.flags);
    request.solicited = (post.flags & FI_DAT_SOLICITED) != 0;
    request.has_data = (post.flags & FI_REMOTE_CQ_DATA) != 0;
    request.data = post.data;
    request.fence = (post.flags & FI_FENCE) != 0;
    request.signaled = reported;
    request.role = post.role;
    request.inlined = (post.flags & FI_INJECT) != 0 && !engine::is_answered(post.op);
    if (post.operands) {
        std::memcpy(area, post.operands, sizeof *post.operands);
    }
    if (request.inlined) {
        copy_inline(request, area, post);
        return;
    }
    fill_segments(request, extra_segments, post.iov, post.count);
}

// What not every peer serves: data and atomics are for `dat` peers; a peer may serve
// no RDMA reads (RFC 6581 4: IRD 0), and one that is not `dat` cannot confirm a
// delivery then either (U-61). 0 or -FI_EOPNOTSUPP.
inline int check_peer(const char* call, engine::Endpoint& endpoint, engine::OpCode op,
                      std::uint64_t flags) {
    const engine::Link* link = endpoint.link();
    if (!link) {
        return 0; // the state answers
    }
    if (((flags & FI_REMOTE_CQ_DATA) != 0 || engine::is_atomic(op)) && !link->dat_peer()) {
        return refuse_peer(call);
    }
    if ((flags & FI_REMOTE_CQ_DATA) != 0 && op == engine::OpCode::write && endpoint.sink() &&
        link->kind() == engine::LinkKind::verbs) {
        return refuse_data_to_peer(call);
    }
    const bool read = engine::is_answered(op);
    if (!read && (flags & FI_DELIVERY_COMPLETE) == 0) {
        return 0;
    }
    return (read ? link->peer_serves_reads() : link->confirms_delivery())
               ? 0
               : refuse_without_reads(call, read);
}

// Of data that 4 bytes do not hold. 0 or -FI_E*.
int check_wide_data(const char* call, Endpoint& ep, std::uint64_t data) __attribute__((cold));

// Of a length beyond Endpoint::narrow_size(); not under the lock. 0 or -FI_E*.
int check_long(const char* call, Endpoint& ep, std::size_t length) __attribute__((cold));

// The limits of every request. 0 or -FI_E*.
template <class Path>
[[gnu::always_inline]] inline int check_request(const char* call, Endpoint& ep, const Post& post) {
    if (post.length > ep.narrow_size()) [[unlikely]] {
        if (const int rc = check_long(call, ep, post.length)) {
            return rc;
        }
    }
    if ((post.flags & FI_INJECT) != 0 && post.length > ep.inject_size() &&
        !engine::is_answered(post.op)) [[unlikely]] {
        return refuse_inject(call, post.length, ep.inject_size());
    }
    if (post.key > UINT32_MAX && !ep.domain().long_keys()) [[unlikely]] {
        return refuse_key(call, post.key);
    }
    const auto how = engine::is_answered(post.op) ? engine::Touch::write : engine::Touch::read;
    return check_memory<Path>(call, post.iov, post.count, how);
}

// Those of some, under the lock. 0 or -FI_E*.
[[gnu::always_inline]] inline int check_odd_request(const char* call, Endpoint& ep,
                                                    const Post& post) {
    if (engine::is_answered(post.op) ||
        (post.flags & (FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA)) != 0) {
        if (post.op == engine::OpCode::read && post.count > ep.read_segments()) [[unlikely]] {
            return refuse_count(call, post.count, ep.read_segments());
        }
        if (post.data > UINT32_MAX) [[unlikely]] {
            if (const int rc = check_wide_data(call, ep, post.data)) {
                return rc;
            }
        }
        return check_peer(call, ep.engine(), post.op, post.flags);
    }
    return 0;
}

// What a verdict is to the caller.
inline ssize_t result_of(const char* call, Endpoint& ep, core::PostVerdict verdict) {
    return verdict == core::PostVerdict::refused ? refuse_state(call, ep) : fi_result(verdict);
}

// Every request comes through here, but those of several remote segments. `call` names it in a log
// line. `complete(request)` fills in what is to be read only then. Where it is inlined into a call
// that knows most of the Post, little of it is left.
template <class Path, class Complete>
[[gnu::always_inline]] inline ssize_t submit_here(const char* call, fid_ep* f, const Post& post,
                                                  Complete&& complete) {
    Endpoint& ep = ep_of(f);
    if (const int rc = check_request<Path>(call, ep, post)) [[unlikely]] {
        return rc;
    }
    typename Path::Caller in(ep.biased_lock());
    const bool reported = post.role != engine::Role::silent && ep.tx_reported(post.flags);
    engine::Endpoint& endpoint = ep.engine();
    if (const int rc = check_odd_request(call, ep, post)) [[unlikely]] {
        return rc;
    }
    const core::PostVerdict verdict = Path::post(
        endpoint, (post.flags & FI_MORE) != 0,
        [&](engine::Request & request, std::uint64_t seq) __attribute__((always_inline)) {
            fill(request, endpoint.inline_area(seq), endpoint.request_extra_segments(seq), post,
                 reported);
            complete(request);
            if constexpr (Path::kNames) {
                fill_names(endpoint.request_names(seq), post.descriptors, post.count);
            }
        });
    if (verdict == core::PostVerdict::posted) [[likely]] {
        in.leave(); // here, so that a caller need not ask what this returns
        return 0;
    }
    return result_of(call, ep, verdict);
}

template <class Path>
[[gnu::always_inline]] inline ssize_t submit_here(const char* call, fid_ep* f, const Post& post) {
    return submit_here<Path>(call, f, post, [](engine::Request&) {});
}

template <class Path> ssize_t submit(const char* call, fid_ep* f, const Post& post) {
    return submit_here<Path>(call, f, post);
}

// A Post of one segment, known flags with FI_COMPLETION, and nothing else to look at. False:
// submit() has to, nothing happened.
template <class Path> [[gnu::always_inline]] inline bool submit_fast(fid_ep* f, const Post& post) {
    Endpoint& ep = ep_of(f);
    if (post.length - 1 >= ep.narrow_size() || post.key > UINT32_MAX) [[unlikely]] { // 0 as well
        return false;
    }
    const engine::InsideAtOnce in(ep);
    engine::Endpoint& endpoint = ep.engine();
    return in && engine::post_fast<typename Path::Link>(
                     endpoint, [&](engine::Request & request, std::uint64_t seq)
                                   __attribute__((always_inline)) {
                                       fill(request, endpoint.inline_area(seq),
                                            endpoint.request_extra_segments(seq), post, true);
                                       fill_names(endpoint.request_names(seq), post.descriptors, 1);
                                   });
}

// The same for a receive of one segment that is reported. A descriptor says nothing where names are
// not wanted.
template <class Path>
[[gnu::always_inline]] inline bool receive_fast(fid_ep* f, const iovec& iov, void* descriptor,
                                                void* context) {
    Endpoint& ep = ep_of(f);
    if (iov.iov_len == 0 || ep.engine().shared()) [[unlikely]] {
        return false;
    }
    const engine::InsideAtOnce in(ep);
    engine::Endpoint& endpoint = ep.engine();
    return in && engine::receive_fast<typename Path::Link>(
                     endpoint, [&](engine::Receive & receive, std::uint64_t seq)
                                   __attribute__((always_inline)) {
                                       fill(receive, endpoint.receive_extra_segments(seq), &iov, 1,
                                            context, true, false);
                                       const void** const name = endpoint.receive_names(seq);
                                       return name ? *name = descriptor : nullptr;
                                   });
}

// Every receive of an endpoint comes through here, as requests through submit_here().
template <class Path>
[[gnu::always_inline]] inline ssize_t receive_here(const char* call, fid_ep* f, const iovec* iov,
                                                   void* const* descriptors, std::size_t count,
                                                   void* context, std::uint64_t flags) {
    Endpoint& ep = ep_of(f);
    if (ep.engine().shared()) [[unlikely]] { // U-33
        return refuse_shared(call);
    }
    const bool multi = (flags & FI_MULTI_RECV) != 0;
    if (multi) [[unlikely]] {
        if ((ep.domain().offering().rx_op_flags & FI_MULTI_RECV) == 0) {
            return refuse_flags(call, flags, kReceiveFlags & ~FI_MULTI_RECV);
        }
        if (count != 1) {
            return refuse_count(call, count, 1);
        }
    }
    if (const int rc = check_memory<Path>(call, iov, count, engine::Touch::write)) [[unlikely]] {
        return rc;
    }
    typename Path::Caller in(ep.biased_lock());
    const bool reported = ep.rx_reported(flags);
    const core::PostVerdict verdict = Path::receive(
        ep.engine(), [&](engine::Receive & receive, std::uint64_t seq)
                         __attribute__((always_inline)) {
                             fill(receive, ep.engine().receive_extra_segments(seq), iov, count,
                                  context, reported, multi);
                             receive.completion_flags |= flags & FI_DAT_UNSIGNALLED;
                             if constexpr (Path::kNames) {
                                 fill_names(ep.engine().receive_names(seq), descriptors, count);
                             }
                             if (multi) {
                                 receive.posted_flags = receive.completion_flags;
                             }
                         });
    if (verdict == core::PostVerdict::posted) [[likely]] {
        in.leave(); // here, so that a caller need not ask what this returns
        return 0;
    }
    return verdict == core::PostVerdict::refused ? refuse_state(call, ep) : fi_result(verdict);
}

// What the calls with vectors and flags check before they may use them. 0 or -FI_E*.
inline int check(const char* call, std::size_t count, std::uint64_t flags, std::uint64_t offered) {
    if (count > engine::kMaxIov) [[unlikely]] {
        return refuse_count(call, count, engine::kMaxIov);
    }
    if ((flags & ~offered) != 0) [[unlikely]] {
        return refuse_flags(call, flags, offered);
    }
    return 0;
}

} // namespace dat::ofi

#endif
