// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See stall_timer.h.
#include "engine/stall_timer.h"

#include "base/log.h"
#include "engine/domain.h"
#include "engine/endpoint.h"

namespace dat::engine {

EndLimit::Result EndLimit::look(Endpoint& endpoint, Timer& watch, bool peer_ended,
                                std::uint64_t moved) {
    Domain& domain = endpoint.domain();
    const bool dropping = peer_ended && endpoint.starved();
    const auto limit =
        dropping
            ? domain.settings().end_grace
            : std::chrono::duration_cast<std::chrono::milliseconds>(domain.settings().rnr_limit);
    if (const auto again = stall_timer_.look(moved, limit)) {
        domain.reactor().arm(watch, *again);
        return Result::waits;
    }
    if (!dropping) {
        return Result::too_long;
    }
    DAT_INFO(ep_data, "a peer has ended, and messages of its for which no receive was posted are "
                      "dropped (FI_DAT_END_GRACE)");
    return Result::drop;
}

} // namespace dat::engine
