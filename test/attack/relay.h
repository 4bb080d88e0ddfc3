// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Carries packets between two wires, and does to them what a trial says.
#ifndef DAT_TEST_ATTACK_RELAY_H
#define DAT_TEST_ATTACK_RELAY_H

#include "packet.h"
#include "plan.h"
#include "tally.h"
#include "wire.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace dat::test {

struct Harm {
    std::uint64_t packets = 0;
    std::uint64_t lost = 0;
    std::uint64_t held_back = 0;
    std::uint64_t repeated = 0;
    std::uint64_t flipped = 0;
    std::uint64_t resets = 0;
    std::uint64_t mtus = 0; // changes
};

class Relay {
  public:
    // `flips` is counted up before a changed packet goes on.
    Relay(const std::array<Wire, 2>& wires, bool v6, Random& random, Count& flips)
        : wires_(wires), v6_(v6), random_(random), flips_(flips) {}
    // Until the trial's time is over, or `stop` says so.
    void run(const Trial& trial, const std::function<bool()>& stop);
    const Harm& harm() const { return harm_; }

  private:
    using Clock = std::chrono::steady_clock;

    struct Waiting {
        Clock::time_point due;
        std::uint64_t order; // of two that are due at once
        std::size_t to;
        Packet packet;
    };

    void take(std::size_t from, const Trial& trial);
    void pass(std::size_t from, Packet packet, const Trial& trial);
    void queue(std::size_t to, Packet packet, Clock::time_point due);
    Clock::time_point turn(std::size_t to, std::size_t size, const Trial& trial);
    Clock::time_point deliver();
    void change_mtu();
    bool chosen(std::uint64_t once_in) { return once_in != 0 && random_.once_in(once_in); }

    const std::array<Wire, 2> wires_;
    const bool v6_;
    Random& random_;
    Count& flips_;
    Harm harm_;
    std::vector<Waiting> waiting_; // a heap, the next one first
    std::uint64_t order_ = 0;
    std::array<Clock::time_point, 2> line_free_{}; // when all before has been sent, at its rate
};

} // namespace dat::test

#endif
