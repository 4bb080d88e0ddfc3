// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The path of a post, the same for every kind of link and without a virtual
// call: the operation table that was set for link kind L instantiates it. Inlined
// always: of a slot that is filled from what the compiler knows, a few stores are left.
#ifndef DAT_ENGINE_POST_H
#define DAT_ENGINE_POST_H

#include "engine/endpoint.h"

#include <type_traits>
#include <utility>

namespace dat::engine {

// An L, unless the endpoint got a link of another kind since the caller took the table.
template <class L>
[[gnu::always_inline]] inline void transmit(Link& link, Request& request, std::uint64_t seq,
                                            bool more) {
    if constexpr (!std::is_same_v<L, Link>) {
        if (link.kind() == L::kKind) [[likely]] {
            return static_cast<L&>(link).L::transmit(request, seq, more);
        }
    }
    link.transmit(request, seq, more);
}

// An endpoint that is traced is posted to by the path that expects no kind of link.
template <class L, class Slot>
[[gnu::always_inline]] inline void note_post(Endpoint& endpoint, std::uint64_t seq,
                                             const Slot& slot) {
    if constexpr (std::is_same_v<L, Link>) {
        if (EndpointTrace* const trace = endpoint.trace()) [[unlikely]] {
            trace->posted(seq, slot, endpoint.core().attempt());
        }
    }
}

// Posts a request. L: the expected kind of link, or Link. `fill(request, seq)` writes the slot,
// whose contents are those of an earlier request; it runs only where the post is accepted. `more`:
// another post follows at once, so sending may wait for it (FI_MORE).
template <class L, class Fill>
[[gnu::always_inline]] inline core::PostVerdict post_request(Endpoint& endpoint, bool more,
                                                             Fill&& fill) {
    std::uint64_t seq = 0;
    const core::PostVerdict verdict = endpoint.begin_request(seq);
    if (verdict == core::PostVerdict::posted) [[likely]] {
        Request& request = endpoint.request(seq);
        std::forward<Fill>(fill)(request, seq);
        endpoint.count_posted(request);
        note_post<L>(endpoint, seq, request);
        transmit<L>(*endpoint.link(), request, seq, more);
    } else if (verdict == core::PostVerdict::flushed) {
        std::forward<Fill>(fill)(endpoint.request(seq), seq);
        endpoint.count_posted(endpoint.request(seq));
        note_post<L>(endpoint, seq, endpoint.request(seq));
        endpoint.request_flushed();
    } else {
        endpoint.look_for_room();
    }
    return verdict;
}

// Posts `count` requests as one operation, all of them or none, and sends them together.
// `fill(request, seq, i)` writes the slot of the i-th, with its Role. Where the operation is
// flushed it takes one slot, and `i` is `count`.
template <class Fill>
inline core::PostVerdict post_divided(Endpoint& endpoint, std::size_t count, bool more,
                                      Fill&& fill) {
    std::uint64_t seq = 0;
    if (!endpoint.core().takes_request()) {
        const core::PostVerdict verdict = endpoint.begin_request(seq);
        if (verdict == core::PostVerdict::flushed) {
            fill(endpoint.request(seq), seq, count);
            endpoint.count_posted(endpoint.request(seq));
            note_post<Link>(endpoint, seq, endpoint.request(seq));
            endpoint.request_flushed();
        } else {
            endpoint.look_for_room();
        }
        return verdict;
    }
    const core::DtoStream& stream = endpoint.core().requests();
    if (stream.limit() - stream.outstanding() < count) {
        return core::PostVerdict::full;
    }
    endpoint.completions().begin_divided();
    for (std::size_t i = 0; i < count; ++i) {
        seq = endpoint.begin_taken_request();
        fill(endpoint.request(seq), seq, i);
        endpoint.count_posted(endpoint.request(seq));
        note_post<Link>(endpoint, seq, endpoint.request(seq));
    }
    endpoint.link()->transmit(endpoint.request(seq), seq, more);
    return core::PostVerdict::posted;
}

// The usual request, over an L. False: it may not be posted, or it is not that simple now;
// nothing happened, and post_request() has to. Nothing but the endpoint is needed behind the
// call of the device, so a caller saves few registers.
template <class L, class Fill>
[[gnu::always_inline]] inline bool post_fast(Endpoint& endpoint, Fill&& fill) {
    if (!endpoint.core().takes_request()) [[unlikely]] {
        return false;
    }
    Link* const link = endpoint.link();
    if (link->kind() != L::kKind || !static_cast<L*>(link)->takes_fast()) [[unlikely]] {
        return false;
    }
    const std::uint64_t seq = endpoint.begin_taken_request();
    Request& request = endpoint.request(seq);
    std::forward<Fill>(fill)(request, seq);
    endpoint.count_posted(request);
    if (!static_cast<L*>(link)->transmit_fast(request, seq)) [[unlikely]] {
        static_cast<L*>(endpoint.link())->transmit_last();
    }
    return true;
}

// The same for a receive. `fill` returns what its segment is registered as, nullptr: unknown.
template <class L, class Fill>
[[gnu::always_inline]] inline bool receive_fast(Endpoint& endpoint, Fill&& fill) {
    Link* const link = endpoint.link();
    if (!link || link->kind() != L::kKind || !endpoint.core().takes_receive() ||
        endpoint.watched() || !endpoint.matches_next(endpoint.core().receives().next()))
        [[unlikely]] {
        return false;
    }
    const std::uint64_t seq = endpoint.begin_taken_receive();
    Receive& receive = endpoint.receive(seq);
    const void* const name = std::forward<Fill>(fill)(receive, seq);
    if (static_cast<L*>(link)->take_fast(receive, seq, name)) [[likely]] {
        endpoint.match_posted();
    } else {
        endpoint.receive_filled(endpoint.core().receives().next() - 1, core::PostVerdict::posted);
    }
    return true;
}

// A link that wants each receive at once, and took this one.
template <class L>
[[gnu::always_inline]] inline bool take_posted(Endpoint& endpoint, const Receive& receive,
                                               std::uint64_t seq) {
    if constexpr (requires(L & link) { link.take_posted(receive, seq, nullptr); }) {
        Link* const link = endpoint.link();
        if (link && link->kind() == L::kKind && endpoint.matches_next(seq) &&
            static_cast<L*>(link)->take_posted(receive, seq, endpoint.receive_names(seq)))
            [[likely]] {
            endpoint.match_posted();
            return true;
        }
    }
    return false;
}

// Posts a receive; as above.
template <class L = Link, class Fill>
[[gnu::always_inline]] inline core::PostVerdict post_receive(Endpoint& endpoint, Fill&& fill) {
    std::uint64_t seq = 0;
    const core::PostVerdict verdict = endpoint.begin_receive(seq);
    if (verdict == core::PostVerdict::posted) [[likely]] {
        Receive& receive = endpoint.receive(seq);
        std::forward<Fill>(fill)(receive, seq);
        note_post<L>(endpoint, seq, receive);
        endpoint.receive_filled(seq, verdict, take_posted<L>(endpoint, receive, seq));
    } else if (verdict == core::PostVerdict::flushed) {
        std::forward<Fill>(fill)(endpoint.receive(seq), seq);
        note_post<L>(endpoint, seq, endpoint.receive(seq));
        endpoint.receive_filled(seq, verdict);
    } else {
        endpoint.look_for_room();
    }
    return verdict;
}

} // namespace dat::engine

#endif
