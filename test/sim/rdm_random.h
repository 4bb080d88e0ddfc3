// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// One seeded random run of a world of reliable datagram endpoints, from its first action to
// rest, several times over. The same seed and options give the same run on every machine.
#ifndef DAT_SIM_RDM_RANDOM_H
#define DAT_SIM_RDM_RANDOM_H

#include "sim/rdm_world.h"

#include <array>
#include <cstdint>
#include <vector>

namespace dat::sim {

struct RdmRunOptions {
    std::uint64_t seed = 1;
    std::uint32_t steps = 200; // actions before everything winds down
    RdmFault fault = RdmFault::none;
    bool trace = false; // print actions and what they cause to stdout
};

// How often each stimulus met each state.
using RdmCoverage =
    std::array<std::array<std::uint64_t, core::kRdmStateCount>, core::kRdmStimulusCount>;

struct RdmRunResult {
    std::vector<RdmViolation> violations; // empty: the run passed
    std::uint64_t steps = 0;
    Key last{}; // of the last world
};

// `coverage` is added to.
RdmRunResult rdm_random_run(const RdmRunOptions& options, RdmCoverage& coverage);

} // namespace dat::sim

#endif
