// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a random run draws from.
#ifndef DAT_SIM_RANDOM_H
#define DAT_SIM_RANDOM_H

#include <cstdint>

namespace dat::sim {

// splitmix64: the same numbers everywhere.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t word() {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(word() % bound); }
    bool chance(std::uint32_t one_in) { return below(one_in) == 0; }

  private:
    std::uint64_t state_;
};

} // namespace dat::sim

#endif
