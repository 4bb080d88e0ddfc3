// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// sim_search: every world that two endpoint cores, their Consumers and the
// network between them can become. A violation is printed as the actions that
// lead to it and the command that replays them. Exit status: 0 nothing is
// violated, 1 something is, 2 bad usage.
#include "sim/command.h"
#include "sim/search.h"

#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <string>

using namespace dat::sim;
namespace core = dat::core;

namespace {

constexpr const char* kUsage =
    "usage: sim_search [--size NAME] [--fault NAME] [--audit] [--replay PATH] [--list]\n"
    "\n"
    "  --size NAME    the world to search (full), see below\n"
    "  --fault NAME   plant a fault (sim_random --fault list prints the names)\n"
    "  --audit        also check that worlds that count as one behave as one\n"
    "  --replay PATH  no search: take these actions, as a violation prints them\n"
    "  --list         print the sizes that a test of this build can afford\n"
    "\n"
    "sizes:\n";

struct Options {
    std::string size = "full";
    Fault fault = Fault::none;
    bool audit = false;
    std::string replay;
};

using Kind = core::ServicePoint::Kind;

// A world to search. All of them: one operation a direction outstanding, any
// number of them one after another; a listener on either side; one misfortune
// (the connection breaks or is lost, a side dies, seen or unseen, ...) at any
// time; whatever is on its way, and any timer, may come next.
struct Size {
    const char* name;
    const char* what;
    void (*set)(Config&);
};

constexpr Size kSizes[] = {
    {"small", "A connects once; endpoints are freed and made again; messages may be too long",
     [](Config&) {}},
    {"full", "two attempts, by either side, crossing or one after the other with reset and reuse",
     [](Config& c) {
         c.budget.connects = 2;
         c.may_connect = {true, true};
         c.frees = c.long_sends = false;
     }},
    {"lanes", "as small; management and data may overtake each other",
     [](Config& c) { c.separate_lanes = true; }},
    {"no_ready", "as small; nobody offers ready-to-receive", [](Config& c) { c.no_ready = true; }},
    {"slow_flush", "as small; operations are let go of one by one",
     [](Config& c) { c.slow_flush = true; }},
    {"stale_timers", "A connects twice, no data; timers of an ended attempt still fire",
     [](Config& c) {
         c.budget.connects = 2;
         c.budget.requests = c.budget.receives = {0, 0};
         c.keep_timers = true;
         c.frees = false;
     }},
    {"provider", "as small; the provider makes an endpoint for each request",
     [](Config& c) { c.listener[1] = Kind::provider; }},
    {"reserved", "as small; B reserves its endpoint for one request",
     [](Config& c) { c.listener[1] = Kind::reserved; }},
};

Config config_of(const Options& options) {
    Config config;
    config.fault = options.fault;
    config.timed = false;
    config.refused_calls = false;
    config.unlisten = false;
    config.limit = 1;
    config.backlog = 1;
    config.budget.connects = 1;
    config.budget.misfortunes = 1;
    config.may_connect = {true, false};
    size_or_exit(kSizes, options.size.c_str()).set(config);
    return config;
}

Options parse(int argc, char** argv) {
    static const option kLong[] = {{"size", required_argument, nullptr, 's'},
                                   {"fault", required_argument, nullptr, 'f'},
                                   {"replay", required_argument, nullptr, 'r'},
                                   {"audit", no_argument, nullptr, 'a'},
                                   {"list", no_argument, nullptr, 'l'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};
    Options out;
    for (int c = 0; (c = getopt_long(argc, argv, "h", kLong, nullptr)) != -1;) {
        switch (c) {
        case 's':
            out.size = optarg;
            break;
        case 'f':
            out.fault = fault_or_exit<Fault>(optarg);
            break;
        case 'r':
            out.replay = optarg;
            break;
        case 'a':
            out.audit = true;
            break;
        case 'h':
            print_help(kUsage, kSizes);
        case 'l':
            print_sizes(kSizes, 1);
        default:
            std::exit(2);
        }
    }
    if (optind != argc) {
        bad("unexpected argument", argv[optind]);
    }
    return out;
}

int replay(const Config& config, const Path& path) {
    return dat::sim::replay<World>(config, path,
                                   [](const Action& action) { return is_progress(action.kind); });
}

void print_counts(const SearchResult& result) {
    std::size_t cells = 0, changes = 0;
    for (std::size_t i = 0; i < core::kStimulusCount; ++i) {
        for (std::size_t s = 0; s < core::kStateCount; ++s) {
            const auto verdict =
                core::cell(static_cast<core::Stimulus>(i), static_cast<core::State>(s)).verdict;
            cells += result.reached[i][s] ? 1 : 0;
            changes += result.reached[i][s] && verdict == core::Verdict::go ? 1 : 0;
        }
    }
    std::printf("%zu worlds, %zu transitions, depth %zu, at most %zu held at once\n", result.worlds,
                result.transitions, result.depth, result.front);
    std::printf("%zu cells of the table met, %zu of them go ahead\n", cells, changes);
    if (result.audited > 0) {
        std::printf("%zu worlds met again behave as the first\n", result.audited);
    }
}

} // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    SearchOptions what;
    what.config = config_of(options);
    what.audit = options.audit;
    if (!options.replay.empty()) {
        const std::optional<Path> path = path_of(options.replay);
        if (!path) {
            bad("not a path", options.replay.c_str());
        }
        return replay(what.config, *path);
    }
    const SearchResult result = search(what);
    print_counts(result);
    if (result.violation.empty()) {
        std::printf("passed: size %s, fault %s\n", options.size.c_str(),
                    name(options.fault).data());
        return 0;
    }
    replay(what.config, result.path);
    std::printf("FAILED: %s\n", result.violation.data());
    std::printf("replay: sim_search --size %s --fault %s --replay %s\n", options.size.c_str(),
                name(options.fault).data(), to_string(result.path).c_str());
    return 1;
}
