// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Exhaustive search: every world that a first one can become, breadth first, to the end. Worlds
// are numbered in the order in which they are met, which is also the order in which they
// are looked at. Kept of each world: its key, one predecessor, and where progress leads from
// it; the worlds themselves only until they have been looked at.
#ifndef DAT_SIM_EXHAUSTIVE_H
#define DAT_SIM_EXHAUSTIVE_H

#include "sim/key_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dat::sim {

// From the first world to another: at each step, which of enabled_actions().
using Path = std::vector<std::uint16_t>;

// As "3.0.12".
inline std::string to_string(const Path& path) {
    std::string out;
    for (const std::uint16_t index : path) {
        out += (out.empty() ? "" : ".") + std::to_string(index);
    }
    return out;
}

// The other way round; nullopt: it is none.
inline std::optional<Path> path_of(const std::string& text) {
    Path path;
    for (const char* at = text.c_str(); *at != '\0';) {
        char* end = nullptr;
        const unsigned long index = std::strtoul(at, &end, 10);
        if (end == at || index > 0xffff || (*end != '\0' && *end != '.')) {
            return std::nullopt;
        }
        path.push_back(static_cast<std::uint16_t>(index));
        at = *end == '.' ? end + 1 : end;
    }
    return path;
}

struct Found {
    std::size_t worlds = 0;
    std::size_t transitions = 0;
    std::size_t depth = 0; // the longest of the shortest paths
    std::size_t front = 0; // most worlds held at once
    std::size_t audited = 0;

    std::string_view violation; // the rule that was broken; empty: none
    int host = 0;               // where
    Path path;                  // the actions that lead there
};

// World: enabled_actions(), step(action), violations(), each with a rule and a host, and
// check_rest(). Ways: key(world), is_progress(action), and cover(world) after each step.
// `limit`: worlds; a search that meets it has failed. `audit`: also hold equal keys against
// equal behaviour; slow.
template <class World, class Ways> class Exhaustive {
  public:
    Exhaustive(const Ways& ways, std::size_t limit, bool audit)
        : ways_(ways), limit_(limit), audit_(audit) {}

    Found go(World&& first) {
        meet(std::move(first), kNobody, 0);
        for (std::uint32_t number = 0; !front_.empty() && passing(); ++number) {
            if (number == level_end_) {
                ++result_.depth;
                level_end_ = static_cast<std::uint32_t>(seen_.size());
            }
            const World world = std::move(front_.front());
            front_.pop_front();
            look_at(world, number);
            if (passing() && seen_.size() > limit_) {
                fail("search: more worlds than the limit", 0, number);
            }
        }
        result_.worlds = seen_.size();
        if (passing()) {
            check_progress_ends();
        }
        if (passing()) {
            check_doubles();
        }
        return std::move(result_);
    }

  private:
    bool passing() const { return result_.violation.empty(); }

    static constexpr std::uint32_t kNobody = ~0u;

    std::uint32_t meet(World&& world, std::uint32_t from, std::size_t choice) {
        const KeySet::Entry entry = seen_.insert(ways_.key(world));
        if (entry.fresh) {
            from_.push_back(from);
            choice_.push_back(static_cast<std::uint16_t>(choice));
            front_.push_back(std::move(world));
            result_.front = std::max(result_.front, front_.size());
        } else if (audit_) {
            doubles_.push_back({entry.number, behaviour(world)});
        }
        return entry.number;
    }

    void look_at(const World& world, std::uint32_t number) {
        const auto actions = world.enabled_actions();
        first_edge_.push_back(edges_.size());
        for (std::size_t i = 0; i < actions.size(); ++i) {
            World next = world;
            next.step(actions[i]);
            ++result_.transitions;
            ways_.cover(next);
            if (!next.violations().empty()) {
                fail(next.violations().front().rule, next.violations().front().host, number);
                result_.path.push_back(static_cast<std::uint16_t>(i));
                return;
            }
            const std::uint32_t to = meet(std::move(next), number, i);
            if (ways_.is_progress(actions[i])) {
                edges_.push_back(to);
            }
        }
        if (edges_.size() == first_edge_.back()) {
            check_at_rest(world, number);
        }
        if (audit_) {
            behaviours_.push_back(behaviour(world));
        }
    }

    // Nothing goes on by itself any more, so nothing may be half-way.
    void check_at_rest(World world, std::uint32_t number) {
        world.check_rest();
        if (!world.violations().empty()) {
            fail(world.violations().front().rule, world.violations().front().host, number);
        }
    }

    void fail(std::string_view rule, int host, std::uint32_t number) {
        result_.violation = rule;
        result_.host = host;
        for (; from_[number] != kNobody; number = from_[number]) {
            result_.path.push_back(choice_[number]);
        }
        std::reverse(result_.path.begin(), result_.path.end());
    }

    // From every world, every way on by progress alone comes to an end: worlds at
    // rest are taken away, then those whose every way leads to such, and so on;
    // what remains goes round for ever.
    void check_progress_ends() {
        const std::size_t count = seen_.size();
        first_edge_.push_back(edges_.size());
        std::vector<std::uint32_t> first_in(count + 1, 0);
        for (const std::uint32_t to : edges_) {
            ++first_in[to + 1];
        }
        for (std::size_t i = 0; i < count; ++i) {
            first_in[i + 1] += first_in[i];
        }
        std::vector<std::uint32_t> sources(edges_.size()), next_in = first_in, ways(count), done;
        for (std::uint32_t from = 0; from < count; ++from) {
            ways[from] = static_cast<std::uint32_t>(first_edge_[from + 1] - first_edge_[from]);
            for (std::size_t e = first_edge_[from]; e != first_edge_[from + 1]; ++e) {
                sources[next_in[edges_[e]]++] = from;
            }
            if (ways[from] == 0) {
                done.push_back(from);
            }
        }
        for (std::size_t i = 0; i < done.size(); ++i) {
            for (std::uint32_t e = first_in[done[i]]; e != first_in[done[i] + 1]; ++e) {
                if (--ways[sources[e]] == 0) {
                    done.push_back(sources[e]);
                }
            }
        }
        if (done.size() != count) {
            const auto stuck = std::find_if(ways.begin(), ways.end(), [](auto n) { return n > 0; });
            fail("quiescence: the world does not come to rest", 0,
                 static_cast<std::uint32_t>(stuck - ways.begin()));
        }
    }

    // --- audit ---------------------------------------------------------

    // Equal for worlds that lead to the same worlds.
    std::uint64_t behaviour(const World& world) const {
        std::uint64_t sum = 0;
        for (const auto& action : world.enabled_actions()) {
            World next = world;
            next.step(action);
            const Key to = ways_.key(next);
            const std::uint64_t tag =
                (ways_.is_progress(action) ? 3u : 1u) + (next.violations().empty() ? 0u : 4u);
            sum += (to.high ^ (to.low >> 7)) * tag;
        }
        return sum;
    }

    // That worlds with one key are one: by induction over the steps it follows
    // that leaving out the second loses nothing.
    void check_doubles() {
        result_.audited = doubles_.size();
        for (const Double& d : doubles_) {
            if (behaviours_[d.number] != d.behaviour) {
                fail("search: equal keys, but worlds that behave differently", 0, d.number);
                return;
            }
        }
    }

    struct Double {
        std::uint32_t number;
        std::uint64_t behaviour;
    };

    const Ways& ways_;
    const std::size_t limit_;
    const bool audit_;
    Found result_;
    KeySet seen_;
    std::deque<World> front_;
    std::uint32_t level_end_ = 1;
    // By number:
    std::vector<std::uint32_t> from_;   // a world that leads there
    std::vector<std::uint16_t> choice_; // by which of its actions
    std::vector<std::size_t> first_edge_;
    std::vector<std::uint32_t> edges_; // where progress leads to
    std::vector<std::uint64_t> behaviours_;
    std::vector<Double> doubles_;
};

} // namespace dat::sim

#endif
