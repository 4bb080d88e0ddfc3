// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// For how long a connection has stood still: the limits of U-9, U-42 and U-67 run while
// nothing moves.
#ifndef DAT_ENGINE_STALL_TIMER_H
#define DAT_ENGINE_STALL_TIMER_H

#include "engine/reactor.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace dat::engine {

class Endpoint;

class StallTimer {
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

// For how long a connection that ends may wait for receives, or for its peer (U-9, U-42). Where
// the peer has ended, and messages of its wait for receives, they are dropped behind the limit,
// and the end is the peer's (U-67). Else the connection is broken.
class EndLimit {
  public:
    enum class Result : std::uint8_t {
        waits,   // the timer is armed for the next look
        drop,    // what waits is dropped, which is logged
        too_long // the connection is to be broken
    };

    // The limit runs from now; `moved` as in StallTimer.
    void begin(std::uint64_t moved) { stall_timer_.begin(moved); }
    // `watch` looks again.
    Result look(Endpoint& endpoint, Timer& watch, bool peer_ended, std::uint64_t moved);

  private:
    StallTimer stall_timer_;
};

} // namespace dat::engine

#endif
