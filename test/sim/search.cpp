// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See search.h. Worlds are numbered in the order in which they are met, which
// is also the order in which they are looked at. Kept of each world: its key, one
// predecessor, and where progress leads from it; the worlds themselves only
// until they have been looked at. May include: core.
#include "sim/search.h"

#include "sim/key_set.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <utility>

namespace dat::sim {
namespace {

constexpr std::uint32_t kNobody = ~0u;

class Search {
  public:
    explicit Search(const SearchOptions& options)
        : options_(options),
          mirrors_(options.config.may_connect[0] == options.config.may_connect[1] &&
                   options.config.listener[0] == options.config.listener[1]) {
        assert(!options.config.timed && !options.config.notes);
    }

    SearchResult go() {
        meet(World(options_.config), kNobody, 0);
        for (std::uint32_t number = 0; !front_.empty() && passing(); ++number) {
            if (number == level_end_) {
                ++result_.depth;
                level_end_ = static_cast<std::uint32_t>(seen_.size());
            }
            const World world = std::move(front_.front());
            front_.pop_front();
            look_at(world, number);
            if (passing() && seen_.size() > options_.limit) {
                fail({0, "search: more worlds than the limit"}, number);
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

    // Hosts that may do the same are interchangeable: of a world and its mirror
    // image one is enough.
    Key key(const World& world) const { return mirrors_ ? world.mirrored_key() : world.key(); }

    std::uint32_t meet(World&& world, std::uint32_t from, std::size_t choice) {
        const KeySet::Entry entry = seen_.insert(key(world));
        if (entry.fresh) {
            from_.push_back(from);
            choice_.push_back(static_cast<std::uint16_t>(choice));
            front_.push_back(std::move(world));
            result_.front = std::max(result_.front, front_.size());
        } else if (options_.audit) {
            doubles_.push_back({entry.number, behaviour(world)});
        }
        return entry.number;
    }

    void look_at(const World& world, std::uint32_t number) {
        const std::vector<Action> actions = world.enabled_actions();
        first_edge_.push_back(edges_.size());
        for (std::size_t i = 0; i < actions.size(); ++i) {
            World next = world;
            next.step(actions[i]);
            ++result_.transitions;
            cover(next);
            if (!next.violations().empty()) {
                fail(next.violations().front(), number);
                result_.path.push_back(static_cast<std::uint16_t>(i));
                return;
            }
            const std::uint32_t to = meet(std::move(next), number, i);
            if (is_progress(actions[i].kind)) {
                edges_.push_back(to);
            }
        }
        if (edges_.size() == first_edge_.back()) {
            check_at_rest(world, number);
        }
        if (options_.audit) {
            behaviours_.push_back(behaviour(world));
        }
    }

    void cover(const World& world) {
        for (const Reached& r : world.reached()) {
            if (r.state < core::State::destroyed) {
                result_.reached[static_cast<std::size_t>(r.stimulus)]
                               [static_cast<std::size_t>(r.state)] = true;
            }
        }
    }

    // Nothing goes on by itself any more, so nothing may be half-way.
    void check_at_rest(World world, std::uint32_t number) {
        world.check_rest();
        if (!world.violations().empty()) {
            fail(world.violations().front(), number);
        }
    }

    void fail(const Violation& violation, std::uint32_t number) {
        result_.violation = violation.rule;
        result_.host = violation.host;
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
            fail({0, "quiescence: the world does not come to rest"},
                 static_cast<std::uint32_t>(stuck - ways.begin()));
        }
    }

    // --- audit ---------------------------------------------------------

    // Equal for worlds that lead to the same worlds.
    std::uint64_t behaviour(const World& world) const {
        std::uint64_t sum = 0;
        for (const Action& action : world.enabled_actions()) {
            World next = world;
            next.step(action);
            const Key to = key(next);
            const std::uint64_t tag =
                (is_progress(action.kind) ? 3u : 1u) + (next.violations().empty() ? 0u : 4u);
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
                fail({0, "search: equal keys, but worlds that behave differently"}, d.number);
                return;
            }
        }
    }

    struct Double {
        std::uint32_t number;
        std::uint64_t behaviour;
    };

    const SearchOptions& options_;
    const bool mirrors_;
    SearchResult result_;
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

} // namespace

SearchResult search(const SearchOptions& options) { return Search(options).go(); }

} // namespace dat::sim
