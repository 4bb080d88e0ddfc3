// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// For how long a connection has stood still: the limit of U-9 and U-42 runs while
// nothing moves. May include: soft.
#ifndef DAT_SOFT_STANDSTILL_H
#define DAT_SOFT_STANDSTILL_H

#include "soft/reactor.h"

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

} // namespace dat::soft

#endif
