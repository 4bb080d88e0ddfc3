// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The simulator held to account: seeded runs without a fault pass and reach the
// table, each planted fault is caught, a seed replays, and a search can drive
// the same world to the end. May include: core.
#include "sim/random_run.h"

#include <criterion/criterion.h>

#include <deque>
#include <string>
#include <unordered_set>
#include <vector>

using namespace dat::sim;
namespace core = dat::core;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kRuns = 3000;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr std::uint64_t kRuns = 3000;
#else
constexpr std::uint64_t kRuns = 20000;
#endif
#else
constexpr std::uint64_t kRuns = 20000;
#endif

// Seeds within which a planted fault must be found; the rarest takes 50.
constexpr std::uint64_t kCanarySeeds = 500;

RunOptions seeded(std::uint64_t seed, Fault fault = Fault::none) {
    RunOptions options;
    options.seed = seed;
    options.fault = fault;
    return options;
}

// Cells that no run can reach: calls that the two hosts of the world do not
// make, and causes that its domain reports under another name.
bool out_of_scope(core::Stimulus stimulus, core::State state) {
    using enum core::Stimulus;
    return stimulus == dup_connect || stimulus == handoff ||
           (stimulus == requester_gone && state >= core::State::connected) ||
           (stimulus == peer_disconnected && state == core::State::completion_pending);
}

struct Searched {
    std::size_t worlds = 0;
    std::string_view violation; // empty: none
};

// Breadth first through every world that `config` can become.
Searched search(const Config& config, std::size_t limit) {
    std::unordered_set<std::uint64_t> seen;
    std::deque<World> front;
    front.emplace_back(config);
    seen.insert(front.front().hash());
    while (!front.empty() && seen.size() < limit) {
        World world = std::move(front.front());
        front.pop_front();
        const std::vector<Action> actions = world.enabled_actions();
        bool rests = true;
        for (const Action& action : actions) {
            rests = rests && !is_progress(action.kind);
            World next = world;
            next.step(action);
            if (!next.violations().empty()) {
                return {seen.size(), next.violations().front().rule};
            }
            if (seen.insert(next.hash()).second) {
                front.push_back(std::move(next));
            }
        }
        if (rests) {
            world.check_rest();
            if (!world.violations().empty()) {
                return {seen.size(), world.violations().front().rule};
            }
        }
    }
    return {seen.size(), front.empty() ? "" : "the search did not come to an end"};
}

// One connection, one message, every order of things.
Config small(Fault fault) {
    Config config;
    config.fault = fault;
    config.timed = false;
    config.refused_calls = false;
    config.limit = 1;
    config.backlog = 1;
    config.budget = {.connects = 1, .posts = 2, .calls = 2, .misfortunes = 1};
    config.may_connect = {true, false};
    return config;
}

} // namespace

// EP-70, DISC-8, U-7, FREE-2, EP-75, DISC-16: they hold in every seeded run.
Test(sim, runs_without_a_fault__keep_every_rule) {
    Coverage coverage{};
    for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
        const RunResult result = random_run(seeded(seed), coverage);
        cr_assert(result.violations.empty(), "%s\nreplay: sim_random --seed %llu --runs 1 --trace",
                  result.violations.front().rule.data(), static_cast<unsigned long long>(seed));
    }
}

// The runs mean something: each cell that goes ahead has been met.
Test(sim, runs__reach_every_cell_that_goes_ahead) {
    Coverage coverage{};
    for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
        random_run(seeded(seed), coverage);
    }
    for (std::size_t i = 0; i < core::kStimulusCount; ++i) {
        for (std::size_t s = 0; s < core::kStateCount; ++s) {
            const auto stimulus = static_cast<core::Stimulus>(i);
            const auto state = static_cast<core::State>(s);
            const core::Verdict verdict = core::cell(stimulus, state).verdict;
            if (verdict == core::Verdict::go && !out_of_scope(stimulus, state)) {
                cr_expect_gt(coverage[i][s], 0u, "%s in %s", core::name(stimulus).data(),
                             core::name(state).data());
            }
        }
    }
}

// The canary: whatever is planted is found, so the checks can fail.
Test(sim, each_planted_fault__is_caught) {
    Coverage coverage{};
    for (std::size_t i = 1; i < static_cast<std::size_t>(Fault::count_); ++i) {
        const auto fault = static_cast<Fault>(i);
        bool caught = false;
        for (std::uint64_t seed = 1; seed <= kCanarySeeds && !caught; ++seed) {
            caught = !random_run(seeded(seed, fault), coverage).violations.empty();
        }
        cr_expect(caught, "%s was not caught", name(fault).data());
    }
}

// A seed replays: the same actions, the same last world.
Test(sim, same_seed__gives_the_same_run) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        Coverage first_coverage{}, second_coverage{};
        const RunResult first = random_run(seeded(seed), first_coverage);
        const RunResult second = random_run(seeded(seed), second_coverage);
        cr_assert_eq(first.steps, second.steps);
        cr_assert_eq(first.hash, second.hash);
        cr_assert(first_coverage == second_coverage);
    }
}

// A world is a value: a copy goes its own way, and two that went the same way
// are the same.
Test(sim, copy_of_a_world__is_independent) {
    Config config;
    World original(config);
    World copy = original;
    const std::string before = original.canonical();
    copy.step({ActionKind::connect, 0, 0});
    cr_assert(original.canonical() == before);
    cr_assert_neq(copy.hash(), original.hash());
    original.step({ActionKind::connect, 0, 0});
    cr_assert_eq(copy.hash(), original.hash());
}

// The same world under a breadth-first search, in which anything that is on
// its way may come next: it comes to an end, and nothing is broken.
Test(sim, search_of_a_small_world__ends_without_a_violation) {
    const Searched found = search(small(Fault::none), 400000);
    cr_assert(found.violation.empty(), "%s", found.violation.data());
    cr_assert_gt(found.worlds, 1000u);
}

// Without the request's memory of a gone requester, or without a limit, the
// search finds an endpoint that waits for ever.
Test(sim, search_without_a_safeguard__finds_what_it_guards_against) {
    for (const Fault fault :
         {Fault::forget_requester, Fault::no_handshake_limit, Fault::no_rnr_limit}) {
        const Searched found = search(small(fault), 400000);
        cr_expect_not(found.violation.empty(), "%s", name(fault).data());
        cr_expect_neq(found.violation, "the search did not come to an end");
    }
}
