// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is done to packets, and when: a list of trials, in an order and of a mixture that a
// seed decides.
#ifndef DAT_TEST_ATTACK_PLAN_H
#define DAT_TEST_ATTACK_PLAN_H

#include "payload.h"

#include <cstdint>
#include <vector>

namespace dat::test {

// Each "once in" is of packets that carry TCP, 0 is never.
struct Trial {
    const char* name;
    std::uint64_t seconds;
    std::uint64_t lose = 0;
    std::uint64_t reorder = 0; // is held back for a moment
    std::uint64_t repeat = 0;
    std::uint64_t flip = 0;  // bits of the payload, and the checksum made right again
    std::uint64_t reset = 0; // a forged RST behind it
    std::uint64_t delay_ms = 0;
    std::uint64_t bits_a_second = 0; // 0: as fast as may be
    bool change_mtu = false;         // of both ends, every 500 ms
    bool cut = false;                // nothing passes at all
};

// Each trial, for `seconds` together at least: the single ones one after the other, then
// mixtures. The last one does nothing.
std::vector<Trial> make_plan(std::uint64_t seconds, Random& random);

} // namespace dat::test

#endif
