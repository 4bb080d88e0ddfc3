// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See plan.h.
#include "plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace dat::test {

namespace {

constexpr std::array kSingle{
    Trial{.name = "nothing", .seconds = 1},
    Trial{.name = "loss", .seconds = 3, .lose = 40},
    Trial{.name = "reordering", .seconds = 3, .reorder = 8},
    Trial{.name = "duplication", .seconds = 2, .repeat = 4},
    Trial{.name = "delay", .seconds = 3, .delay_ms = 20},
    Trial{.name = "1 Mbit/s", .seconds = 4, .bits_a_second = 1'000'000},
    Trial{.name = "flipped bits", .seconds = 4, .flip = 300},
    Trial{.name = "flipped bits, many", .seconds = 3, .flip = 10},
    Trial{.name = "resets", .seconds = 3, .reset = 200},
    Trial{.name = "MTU changes", .seconds = 4, .change_mtu = true},
    Trial{.name = "cut", .seconds = 4, .cut = true},
};

// One of `values`, or, as often, none.
std::uint64_t perhaps(Random& random, std::uint64_t value) { return random.once_in(2) ? value : 0; }

Trial mixture(Random& random) {
    Trial trial{.name = "mixture", .seconds = random.between(2, 4)};
    trial.lose = perhaps(random, random.between(20, 200));
    trial.reorder = perhaps(random, random.between(5, 50));
    trial.repeat = perhaps(random, random.between(5, 50));
    trial.flip = perhaps(random, random.between(50, 1000));
    trial.reset = perhaps(random, random.between(300, 3000));
    trial.delay_ms = perhaps(random, random.between(1, 10));
    trial.bits_a_second = random.once_in(4) ? random.between(500'000, 20'000'000) : 0;
    trial.change_mtu = random.once_in(3);
    return trial;
}

} // namespace

std::vector<Trial> make_plan(std::uint64_t seconds, Random& random) {
    std::vector<Trial> plan;
    std::uint64_t sum = 0;
    while (sum < seconds) {
        std::vector<Trial> round(kSingle.begin(), kSingle.end());
        for (int i = 0; i < 4; ++i)
            round.push_back(mixture(random));
        for (std::size_t left = round.size(); left > 1; --left)
            std::swap(round[left - 1], round[random.below(left)]);
        for (const Trial& trial : round)
            sum += trial.seconds;
        plan.insert(plan.end(), round.begin(), round.end());
    }
    plan.push_back({.name = "nothing", .seconds = 2});
    return plan;
}

} // namespace dat::test
