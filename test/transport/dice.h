// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a thread does next, so that threads meet in many ways.
#ifndef DAT_TEST_TRANSPORT_DICE_H
#define DAT_TEST_TRANSPORT_DICE_H

#include <cstdint>

namespace dat::test {

// The same seed gives the same numbers; nothing depends on them.
class Dice {
  public:
    explicit Dice(std::uint32_t seed) : state_(seed * 2654435761U + 1) {}
    std::uint32_t below(std::uint32_t n) {
        state_ = state_ * 1664525U + 1013904223U;
        return (state_ >> 16) % n;
    }

  private:
    std::uint32_t state_;
};

} // namespace dat::test

#endif
