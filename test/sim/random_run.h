// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One seeded random run of the simulated world, from its first action to rest.
// The same seed and options give the same run on every machine.
#ifndef DAT_SIM_RANDOM_RUN_H
#define DAT_SIM_RANDOM_RUN_H

#include "sim/world.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dat::sim {

// Takes what happens, with the number of the action, from 1; 0: before the first.
class Recorder {
  public:
    virtual void take(std::uint64_t step, const Recorded& what) = 0;

  protected:
    ~Recorder() = default;
};

struct RunOptions {
    std::uint64_t seed = 1;
    std::uint32_t steps = 120; // actions before everything winds down
    Fault fault = Fault::none;
    bool trace = false;           // print actions and what they cause to stdout
    Recorder* recorder = nullptr; // what they cause goes there
};

// How often each stimulus met each state.
using Coverage = std::array<std::array<std::uint64_t, core::kStateCount>, core::kStimulusCount>;

struct RunResult {
    std::vector<Violation> violations; // empty: the run passed
    std::uint64_t steps = 0;           // actions taken, winding down included
    Key last{};                        // of the last world
};

// `coverage` is added to.
RunResult random_run(const RunOptions& options, Coverage& coverage);

} // namespace dat::sim

#endif
