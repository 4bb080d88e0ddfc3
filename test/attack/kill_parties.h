// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The processes of the kill test: survivors, who stay for the whole run, and victims, who
// are killed or stopped at a moment of their short lives.
#ifndef DAT_TEST_ATTACK_KILL_PARTIES_H
#define DAT_TEST_ATTACK_KILL_PARTIES_H

#include "lane.h"
#include "tally.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace dat::test {

// One listens and one connects, with each progress model.
inline constexpr int kSurvivors = 4;
inline constexpr int kVictimsEach = 2;
inline constexpr int kVictims = kSurvivors * kVictimsEach;

enum class Order { kRun, kRest, kStop };

// What a survivor has when nothing is connected.
struct AtRest {
    std::uint64_t descriptors;
    std::uint64_t allocated;   // bytes
    std::uint64_t resident;    // bytes
    std::uint64_t connections; // since its start
};

// In memory that all processes share.
struct Board {
    Tally tally;
    Ledger ledger;
    std::atomic<Order> order;
    Count rests; // survivors that have come to rest, since the start
    std::array<std::atomic<std::uint16_t>, kSurvivors> survivor_port;
    std::array<std::atomic<std::uint16_t>, kVictims> victim_port; // 0: listens nowhere
    std::array<std::atomic<Phase>, kVictims> phase;
    std::array<AtRest, kSurvivors> at_rest;
};

enum class End {
    kByTimer,  // kills itself so long after a phase has begun
    kBySignal, // is killed by the test
    kStopped,  // is stopped, and killed while it is
    kGoesOn,   // is stopped some times, goes on, and has to lose nothing
    kInOrder,  // is left alone
};

struct Fate {
    End end = End::kInOrder;
    Phase phase = Phase::kStart; // of kByTimer
    std::uint64_t delay_us = 0;  // of kByTimer, kBySignal
    std::uint64_t life_us = 0;   // after which it says farewell and ends by itself
    std::uint64_t seed = 0;
};

// Neither returns: they are processes.
[[noreturn]] void run_survivor(Board& board, int number, std::uint64_t seed,
                               const std::string& replay);
[[noreturn]] void run_victim(Board& board, int number, const Fate& fate, const std::string& replay);

} // namespace dat::test

#endif
