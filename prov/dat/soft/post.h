// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The path of a post, the same for every kind of link and without a virtual
// call: the operation table that was set for link kind L instantiates it. Inlined
// always: of a slot that is filled from what the compiler knows, a few stores are left.
// May include: soft.
#ifndef DAT_SOFT_POST_H
#define DAT_SOFT_POST_H

#include "soft/endpoint.h"

#include <utility>

namespace dat::soft {

// Stands for the link of an endpoint that has none yet: nothing is transmitted,
// since the state refuses or flushes every request.
class NoLink : public Link {
  public:
    void transmit(std::uint64_t, bool) {}
};

// Posts a request. `fill(request, seq)` writes the slot, whose contents are those
// of an earlier request; it runs only where the post is accepted. `more`: another
// post follows at once, so sending may wait for it (FI_MORE).
template <class L, class Fill>
[[gnu::always_inline]] inline core::PostVerdict post_request(Endpoint& endpoint, bool more,
                                                             Fill&& fill) {
    std::uint64_t seq = 0;
    const core::PostVerdict verdict = endpoint.begin_request(seq);
    if (verdict == core::PostVerdict::posted) [[likely]] {
        std::forward<Fill>(fill)(endpoint.request(seq), seq);
        static_cast<L*>(endpoint.link())->transmit(seq, more);
    } else if (verdict == core::PostVerdict::flushed) {
        std::forward<Fill>(fill)(endpoint.request(seq), seq);
        endpoint.request_flushed();
    }
    return verdict;
}

// Posts a receive; as above. The same for every link.
template <class Fill>
[[gnu::always_inline]] inline core::PostVerdict post_receive(Endpoint& endpoint, Fill&& fill) {
    std::uint64_t seq = 0;
    const core::PostVerdict verdict = endpoint.begin_receive(seq);
    if (verdict == core::PostVerdict::posted || verdict == core::PostVerdict::flushed) {
        std::forward<Fill>(fill)(endpoint.receive(seq), seq);
        endpoint.receive_filled(seq, verdict);
    }
    return verdict;
}

} // namespace dat::soft

#endif
