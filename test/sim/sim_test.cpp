// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The simulator held to account: seeded runs without a fault pass and reach the
// table, each planted fault is caught, a seed replays, and the search does what
// it says.
#include "sim/random_run.h"
#include "sim/search.h"

#include <criterion/criterion.h>

#include <string>

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

// Seeds within which a planted fault must be found; the rarest takes 387.
constexpr std::uint64_t kCanarySeeds = 3000;

RunOptions seeded(std::uint64_t seed, Fault fault = Fault::none) {
    RunOptions options;
    options.seed = seed;
    options.fault = fault;
    return options;
}

// Cells that no run can reach: calls that the two hosts of the world do not make.
bool out_of_scope(core::Stimulus stimulus) {
    return stimulus == core::Stimulus::dup_connect || stimulus == core::Stimulus::handoff;
}

// One connection, one message each way, every order of things.
SearchOptions tiny(Fault fault) {
    SearchOptions options;
    options.limit = 400000;
    options.audit = true;
    Config& config = options.config;
    config.fault = fault;
    config.timed = false;
    config.refused_calls = false;
    config.limit = 1;
    config.backlog = 1;
    config.budget = {
        .connects = 1, .requests = {1, 1}, .receives = {1, 1}, .calls = 2, .misfortunes = 1};
    config.may_connect = {true, false};
    return options;
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
            if (verdict == core::Verdict::go && !out_of_scope(stimulus)) {
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
        cr_assert(first.last == second.last);
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
    cr_assert_not(copy.key() == original.key());
    original.step({ActionKind::connect, 0, 0});
    cr_assert(copy.key() == original.key());
}

// A world and its mirror image have one mirrored key, and no other world has it.
Test(sim, mirror_image__has_the_same_mirrored_key) {
    Config config;
    World left(config), right(config), both(config);
    left.step({ActionKind::connect, 0, 0});
    right.step({ActionKind::connect, 1, 0});
    both.step({ActionKind::connect, 0, 0});
    both.step({ActionKind::connect, 1, 0});
    cr_assert(left.mirrored_key() == right.mirrored_key());
    cr_assert_not(left.key() == right.key());
    cr_assert_not(both.mirrored_key() == left.mirrored_key());
}

// The same world under a breadth-first search, in which anything that is on its
// way may come next: it comes to an end, nothing is broken, and worlds that the
// search takes for one behave as one. sim_search has larger ones.
Test(sim, search_of_a_tiny_world__ends_without_a_violation) {
    const SearchResult found = search(tiny(Fault::none));
    cr_assert(found.violation.empty(), "%s", found.violation.data());
    cr_assert_gt(found.worlds, 1000u);
    cr_assert_gt(found.audited, found.worlds);
}

// What a violation names leads to it again.
Test(sim, path_of_a_violation__replays) {
    const SearchOptions options = tiny(Fault::lose_completion);
    const SearchResult found = search(options);
    cr_assert_not(found.violation.empty());
    World world(options.config);
    for (const std::uint16_t index : found.path) {
        cr_assert(world.violations().empty());
        world.step(world.enabled_actions().at(index));
    }
    cr_assert_eq(world.violations().size(), 1u);
    cr_assert_eq(world.violations().front().rule, found.violation);
}
