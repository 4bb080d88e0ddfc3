// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Exhaustive search of a simulated world: every world that a configuration can
// become, breadth first, to the end. Held against each of them is what World
// checks at every step, and that nothing is stuck: whatever has happened, what
// goes on by itself comes to an end, and then nothing is half-way.
// May include: core.
#ifndef DAT_SIM_SEARCH_H
#define DAT_SIM_SEARCH_H

#include "sim/world.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dat::sim {

// From the first world to another: at each step, which of enabled_actions().
using Path = std::vector<std::uint16_t>;

struct SearchOptions {
    Config config;                  // not timed, without notes
    std::size_t limit = 50'000'000; // worlds; a search that meets it has failed
    bool audit = false;             // also hold equal keys against equal behaviour; slow
};

struct SearchResult {
    std::size_t worlds = 0;
    std::size_t transitions = 0;
    std::size_t depth = 0; // the longest of the shortest paths
    std::size_t front = 0; // most worlds held at once
    std::size_t audited = 0;
    std::array<std::array<bool, core::kStateCount>, core::kStimulusCount> reached{};

    std::string_view violation; // the rule that was broken; empty: none
    int host = 0;               // where
    Path path;                  // the actions that lead there
};

SearchResult search(const SearchOptions& options);

} // namespace dat::sim

#endif
