// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// When a thread that polls in vain may give its processor away: not if it only looks now and then,
// for then it does something else in between, and needs the processor for that.
#ifndef DAT_ENGINE_IDLE_YIELD_H
#define DAT_ENGINE_IDLE_YIELD_H

#include "engine/reactor.h"

#include <chrono>
#include <cstdint>
#include <utility>

namespace dat::engine {

class IdleYield {
  public:
    // Polls in vain that come before.
    static constexpr std::uint32_t kPolls = 64;

    // Both are told now and then, with the number of polls so far. Something came.
    void stirred(std::uint64_t polls) {
        polls_ = polls;
        vain_ = 0;
    }
    // Nothing came since either was told. True: it may yield.
    bool in_vain(std::uint64_t polls, Clock::time_point now) {
        const std::uint64_t more = polls - polls_;
        const auto since = now - std::exchange(told_, now);
        polls_ = polls;
        vain_ = since > more * kSlowest ? 0 : vain_ + more;
        return vain_ >= kPolls;
    }
    // It has, and is back.
    void yielded(Clock::time_point now) { told_ = now; }

  private:
    static constexpr std::chrono::microseconds kSlowest{4}; // for a poll

    std::uint64_t polls_ = 0;
    std::uint64_t vain_ = 0;
    Clock::time_point told_{};
};

} // namespace dat::engine

#endif
