// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Exhaustive search of a simulated world: every world that a configuration can
// become, breadth first, to the end. Held against each of them is what World
// checks at every step, and that nothing is stuck: whatever has happened, what
// goes on by itself comes to an end, and then nothing is half-way.
#ifndef DAT_SIM_SEARCH_H
#define DAT_SIM_SEARCH_H

#include "sim/exhaustive.h"
#include "sim/world.h"

#include <array>
#include <cstddef>

namespace dat::sim {

struct SearchOptions {
    Config config;                  // not timed, without notes
    std::size_t limit = 50'000'000; // worlds; a search that meets it has failed
    bool audit = false;             // also hold equal keys against equal behaviour; slow
};

struct SearchResult : Found {
    std::array<std::array<bool, core::kStateCount>, core::kStimulusCount> reached{};
};

SearchResult search(const SearchOptions& options);

} // namespace dat::sim

#endif
