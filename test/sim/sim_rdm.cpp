// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// sim_rdm: peers of reliable datagram endpoints over a simulated network, in seeded random runs,
// or with --search in every way that there is. What fails is printed with the command that
// replays it. Exit status: 0 all passed, 1 something is violated, 2 bad usage.
#include "sim/command.h"
#include "sim/exhaustive.h"
#include "sim/rdm_random.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>
#include <string>

using namespace dat::sim;
namespace core = dat::core;

namespace {

constexpr const char* kUsage =
    "usage: sim_rdm [--seed N] [--runs N] [--steps N] [--fault NAME] [--trace] [--coverage]\n"
    "       sim_rdm --search SIZE [--fault NAME] [--audit] [--replay PATH] [--coverage]\n"
    "\n"
    "  --seed N       first seed (1); each run takes the next one\n"
    "  --runs N       number of runs (20000)\n"
    "  --steps N      actions of a run before it winds down (200)\n"
    "  --search SIZE  search the whole of that world, see below\n"
    "  --fault NAME   plant a fault; \"list\" prints the names\n"
    "  --trace        print every action and what it causes\n"
    "  --audit        also check that worlds that count as one behave as one\n"
    "  --replay PATH  no search: take these actions, as a violation prints them\n"
    "  --coverage     print how often each stimulus met each state\n"
    "  --list         print the sizes that a test of this build can afford\n"
    "  --page         print the table of a peer, as prov/dat/core/RDM_STATES.md has it\n"
    "\n"
    "sizes:\n";

// A world to search: two hosts but where it says otherwise, each of which may do what it says
// at any time; whatever is on its way, and any timer, may come next.
struct Size {
    const char* name;
    const char* what;
    void (*set)(RdmConfig&);
};

constexpr Size kSizes[] = {
    {"crossing", "an operation each, one attempt; nothing goes wrong",
     [](RdmConfig& c) {
         c.posts = 1;
         c.limits.attempts = 1;
     }},
    {"three", "three hosts, an operation each; nothing goes wrong",
     [](RdmConfig& c) {
         c.hosts = 3;
         c.posts = 1;
     }},
    {"calm", "two operations each, and a release; nothing goes wrong",
     [](RdmConfig& c) {
         c.posts = 2;
         c.releases = 1;
     }},
    {"one", "an operation each; one misfortune; restart at the same address",
     [](RdmConfig& c) {
         c.posts = 1;
         c.misfortunes = 1;
         c.restarts = 1;
     }},
    {"receives", "as one, without restart; receives that name the other host",
     [](RdmConfig& c) {
         c.posts = c.receives = 1;
         c.misfortunes = 1;
     }},
    {"two", "two operations each; one misfortune; restart at the same address",
     [](RdmConfig& c) {
         c.posts = 2;
         c.misfortunes = 1;
         c.restarts = 1;
     }},
    {"release", "as one; a connection that is idle may be let go",
     [](RdmConfig& c) {
         c.posts = c.releases = 1;
         c.misfortunes = 1;
         c.restarts = 1;
     }},
    {"clock", "as one; who restarts has begun earlier, by its clock",
     [](RdmConfig& c) {
         c.posts = 1;
         c.misfortunes = 1;
         c.restarts = 1;
         c.clock_back = true;
     }},
    {"forget", "an operation each; peers are removed, and there anew",
     [](RdmConfig& c) { c.posts = c.forgets = 1; }},
    {"unlucky", "an operation each; two misfortunes, and a restart",
     [](RdmConfig& c) {
         c.posts = 1;
         c.misfortunes = 2;
         c.restarts = 1;
     }},
};

struct Options {
    RdmRunOptions run;
    std::uint64_t runs = 20000;
    const Size* size = nullptr;
    std::string replay;
    bool audit = false;
    bool coverage = false;
};

std::string cell_text(const core::RdmCell& cell, core::RdmState state) {
    if (cell.verdict == core::RdmVerdict::impossible) {
        return "";
    }
    std::string out(cell.verdict == core::RdmVerdict::go && (cell.todo != 0 || cell.next != state)
                        ? ""
                        : core::name(cell.verdict));
    for (std::size_t i = 0; i < static_cast<std::size_t>(core::RdmAction::count_); ++i) {
        const auto action = static_cast<core::RdmAction>(i);
        if ((cell.todo & core::todo(action)) != 0) {
            out += (out.empty() ? "" : ", ") + std::string(core::name(action));
        }
    }
    if (cell.next != state) {
        out +=
            (out.empty() ? "" : " ") + ("**" + std::string(core::abbreviation(cell.next)) + "**");
    }
    return out;
}

[[noreturn]] void print_page() {
    std::printf("<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n"
                "<!-- Made by `sim_rdm --page` from rdm_peer.def. -->\n"
                "# The states of a peer of a reliable datagram endpoint\n\n");
    for (std::size_t s = 0; s < core::kRdmStateCount; ++s) {
        const auto state = static_cast<core::RdmState>(s);
        std::printf("- `%s` (%s): %s\n", core::name(state).data(), core::abbreviation(state).data(),
                    core::meaning(state).data());
    }
    std::printf("\n## What can happen\n\n");
    for (std::size_t i = 0; i < core::kRdmStimulusCount; ++i) {
        const auto stimulus = static_cast<core::RdmStimulus>(i);
        std::printf("- `%s` (%s): %s\n", core::name(stimulus).data(),
                    core::stimulus_class(stimulus).data(), core::meaning(stimulus).data());
    }
    std::printf("\n## The table\n\nWhat is done, in its order, and the next state where it is "
                "another one. An empty cell\ncannot come. REM is the end of the peer.\n\n| |");
    for (std::size_t s = 0; s < core::kRdmStateCount; ++s) {
        std::printf(" %s |", core::abbreviation(static_cast<core::RdmState>(s)).data());
    }
    std::printf("\n|");
    for (std::size_t s = 0; s <= core::kRdmStateCount; ++s) {
        std::printf(" --- |");
    }
    for (std::size_t i = 0; i < core::kRdmStimulusCount; ++i) {
        const auto stimulus = static_cast<core::RdmStimulus>(i);
        std::printf("\n| `%s` |", core::name(stimulus).data());
        for (std::size_t s = 0; s < core::kRdmStateCount; ++s) {
            const auto state = static_cast<core::RdmState>(s);
            std::printf(" %s |", cell_text(core::cell(stimulus, state), state).c_str());
        }
    }
    std::printf("\n");
    std::exit(0);
}

Options parse(int argc, char** argv) {
    static const option kLong[] = {{"seed", required_argument, nullptr, 's'},
                                   {"runs", required_argument, nullptr, 'r'},
                                   {"steps", required_argument, nullptr, 'n'},
                                   {"search", required_argument, nullptr, 'x'},
                                   {"fault", required_argument, nullptr, 'f'},
                                   {"replay", required_argument, nullptr, 'p'},
                                   {"trace", no_argument, nullptr, 't'},
                                   {"audit", no_argument, nullptr, 'a'},
                                   {"coverage", no_argument, nullptr, 'c'},
                                   {"list", no_argument, nullptr, 'l'},
                                   {"page", no_argument, nullptr, 'm'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};
    Options out;
    for (int c = 0; (c = getopt_long(argc, argv, "h", kLong, nullptr)) != -1;) {
        switch (c) {
        case 's':
            out.run.seed = number_or_exit(optarg);
            break;
        case 'r':
            out.runs = number_or_exit(optarg);
            break;
        case 'n':
            out.run.steps = static_cast<std::uint32_t>(number_or_exit(optarg));
            break;
        case 'x':
            out.size = &size_or_exit(kSizes, optarg);
            break;
        case 'f':
            out.run.fault = fault_or_exit<RdmFault>(optarg);
            break;
        case 'p':
            out.replay = optarg;
            break;
        case 't':
            out.run.trace = true;
            break;
        case 'a':
            out.audit = true;
            break;
        case 'c':
            out.coverage = true;
            break;
        case 'l':
            print_sizes(kSizes, 4);
        case 'm':
            print_page();
        case 'h':
            print_help(kUsage, kSizes);
        default:
            std::exit(2);
        }
    }
    if (optind != argc) {
        bad("unexpected argument", argv[optind]);
    }
    return out;
}

int random_runs(Options& options) {
    RdmCoverage coverage{};
    std::uint64_t steps = 0;
    const std::uint64_t first = options.run.seed;
    for (std::uint64_t i = 0; i < options.runs; ++i) {
        options.run.seed = first + i;
        const RdmRunResult result = rdm_random_run(options.run, coverage);
        steps += result.steps;
        if (!result.violations.empty()) {
            const auto seed = static_cast<unsigned long long>(options.run.seed);
            print(result.violations);
            std::printf("FAILED: seed %llu after %llu actions\n", seed,
                        static_cast<unsigned long long>(result.steps));
            std::printf("replay: sim_rdm --seed %llu --runs 1 --steps %u --fault %s --trace\n",
                        seed, options.run.steps, name(options.run.fault).data());
            return 1;
        }
    }
    if (options.coverage) {
        print_coverage<core::RdmState, core::RdmStimulus>(coverage);
    }
    std::printf("passed: %llu runs from seed %llu, %llu actions\n",
                static_cast<unsigned long long>(options.runs),
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(steps));
    return 0;
}

int replay(const RdmConfig& config, const Path& path) {
    return dat::sim::replay<RdmWorld>(
        config, path, [](const RdmSimAction& action) { return is_progress(action); });
}

struct Ways {
    static Key key(const RdmWorld& world) { return world.key(); }
    static bool is_progress(const RdmSimAction& action) { return dat::sim::is_progress(action); }
    void cover(const RdmWorld& world) const {
        for (const RdmWorld::Reached& r : world.reached()) {
            ++coverage[static_cast<std::size_t>(r.stimulus)][static_cast<std::size_t>(r.state)];
        }
    }
    RdmCoverage& coverage;
};

int search(const Options& options) {
    constexpr std::size_t kLimit = 3'000'000;
    RdmConfig config;
    config.hosts = 2;
    config.timed = false;
    config.fault = options.run.fault;
    config.posts = config.receives = config.releases = config.forgets = 0;
    config.misfortunes = config.restarts = 0;
    config.limits.attempts = 2;
    options.size->set(config);
    if (!options.replay.empty()) {
        const std::optional<Path> path = path_of(options.replay);
        if (!path) {
            bad("not a path", options.replay.c_str());
        }
        return replay(config, *path);
    }
    RdmCoverage coverage{};
    const Ways ways{coverage};
    const Found found =
        Exhaustive<RdmWorld, Ways>(ways, kLimit, options.audit).go(RdmWorld(config));
    std::printf("%zu worlds, %zu transitions, depth %zu, at most %zu held at once\n", found.worlds,
                found.transitions, found.depth, found.front);
    if (found.audited > 0) {
        std::printf("%zu worlds met again behave as the first\n", found.audited);
    }
    if (options.coverage) {
        print_coverage<core::RdmState, core::RdmStimulus>(coverage);
    }
    if (found.violation.empty()) {
        std::printf("passed: size %s, fault %s\n", options.size->name,
                    name(options.run.fault).data());
        return 0;
    }
    replay(config, found.path);
    std::printf("FAILED: %s\n", found.violation.data());
    std::printf("replay: sim_rdm --search %s --fault %s --replay %s\n", options.size->name,
                name(options.run.fault).data(), to_string(found.path).c_str());
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    return options.size ? search(options) : random_runs(options);
}
