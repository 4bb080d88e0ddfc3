// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One side of a proof, in a process of its own: a domain with some lanes, which listens, or
// connects again and again.
#ifndef DAT_TEST_ATTACK_PARTY_H
#define DAT_TEST_ATTACK_PARTY_H

#include "lane.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dat::test {

struct PartyOptions {
    std::string name; // for messages
    Transport transport{};
    std::size_t lanes = 1;
    bool listens = false;
    // Where to connect to; empty: nowhere at the moment. Not for one that listens.
    std::function<Bytes()> target;
    // One connected lane ends once in so many steps, in any way; 0: only by a farewell.
    std::uint64_t end_once_in = 0;
    std::uint64_t leave_once_in = 0; // likewise by a farewell
};

class Party {
  public:
    // `terms` outlives it.
    Party(const PartyOptions& options, Terms& terms);
    ~Party();

    std::uint16_t port() const { return side_->port(); }
    // Moves everything once; gives the processor away where there is nothing to do.
    void run_once();
    // From here on: no new connections; those that there are say farewell, if `leave`.
    void wind_down(bool leave);
    void go_on() { winding_down_ = false; }
    bool idle() const;

  private:
    bool take_events();
    void request(const Event& event);
    bool step(Lane& lane);

    const PartyOptions options_;
    Terms& terms_;
    std::optional<Side> side_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    bool winding_down_ = false;
    bool leave_ = false;
    unsigned idle_rounds_ = 0;
};

// Before anything else of a process: what its messages begin with, and what is printed
// behind them.
void name_process(const std::string& name, const std::string& replay, Tally* tally);

inline constexpr int kViolated = 3; // exit status of a party that saw something wrong

} // namespace dat::test

#endif
