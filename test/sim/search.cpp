// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See search.h.
#include "sim/search.h"

#include <cassert>

namespace dat::sim {
namespace {

class Ways {
  public:
    Ways(const Config& config, SearchResult& result)
        : mirrors_(config.may_connect[0] == config.may_connect[1] &&
                   config.listener[0] == config.listener[1]),
          result_(result) {}

    // Hosts that may do the same are interchangeable: of a world and its mirror
    // image one is enough.
    Key key(const World& world) const { return mirrors_ ? world.mirrored_key() : world.key(); }
    static bool is_progress(const Action& action) { return sim::is_progress(action.kind); }
    void cover(const World& world) const {
        for (const Reached& r : world.reached()) {
            if (r.state < core::State::destroyed) {
                result_.reached[static_cast<std::size_t>(r.stimulus)]
                               [static_cast<std::size_t>(r.state)] = true;
            }
        }
    }

  private:
    const bool mirrors_;
    SearchResult& result_;
};

} // namespace

SearchResult search(const SearchOptions& options) {
    assert(!options.config.timed && !options.config.notes);
    SearchResult result;
    const Ways ways(options.config, result);
    static_cast<Found&>(result) =
        Exhaustive<World, Ways>(ways, options.limit, options.audit).go(World(options.config));
    return result;
}

} // namespace dat::sim
