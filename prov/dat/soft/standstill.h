// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// For how long a connection has stood still: the limits of U-9, U-42 and U-67 run while
// nothing moves. May include: soft, base.
#ifndef DAT_SOFT_STANDSTILL_H
#define DAT_SOFT_STANDSTILL_H

#include "base/log.h"
#include "soft/reactor.h"
#include "soft/settings.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace dat::soft {

class Standstill {
  public:
    // The limit runs from now. `moved`: a count that grows when something moves.
    void begin(std::uint64_t moved) {
        moved_ = moved;
        since_ = Clock::now();
    }
    // When to look again; none: it has stood still for as long as `limit`.
    std::optional<Clock::duration> look(std::uint64_t moved, Clock::duration limit) {
        const auto now = Clock::now();
        if (moved != moved_) {
            moved_ = moved;
            since_ = now;
        }
        if (now - since_ >= limit) {
            return std::nullopt;
        }
        return std::max<Clock::duration>(kStep, since_ + limit - now);
    }

  private:
    static constexpr std::chrono::milliseconds kStep{50};

    Clock::time_point since_{};
    std::uint64_t moved_ = 0;
};

// Of a connection that ends. `dropping`: its peer has ended, and messages of its wait for receives:
// behind the limit they are dropped, and the end is the peer's (U-67). Else it is broken (U-9).
inline std::chrono::milliseconds end_limit(const Settings& settings, bool dropping) {
    return dropping ? settings.end_grace : settings.rnr_limit;
}
inline void say_dropped() {
    DAT_INFO(ep_data, "a peer has ended, and messages of its for which no receive was posted are "
                      "dropped (FI_DAT_END_GRACE)");
}

} // namespace dat::soft

#endif
