// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// sim_random: seeded random runs of two endpoint cores over a simulated
// network. A run that fails prints its seed and the command that replays it.
// Exit status: 0 all runs passed, 1 one failed, 2 bad usage.
#include "sim/command.h"
#include "sim/random_run.h"
#include "sim/trace_file.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <getopt.h>

using namespace dat::sim;
namespace core = dat::core;

namespace {

constexpr const char* kUsage =
    "usage: sim_random [--seed N] [--runs N] [--steps N] [--fault NAME] [--trace] [--coverage]\n"
    "                  [--trace-file FILE]\n"
    "\n"
    "  --seed N      first seed (1); each run takes the next one\n"
    "  --runs N      number of runs (20000)\n"
    "  --steps N     actions of a run before it winds down (120)\n"
    "  --fault NAME  plant a fault; \"list\" prints the names\n"
    "  --trace       print every action and what it causes\n"
    "  --trace-file FILE  write the run that fails, or the last, to FILE, for dat_trace\n"
    "  --coverage    print how often each stimulus met each state\n";

struct Options {
    RunOptions run;
    std::uint64_t runs = 20000;
    bool coverage = false;
    const char* trace_file = nullptr;
};

Options parse(int argc, char** argv) {
    static const option kLong[] = {{"seed", required_argument, nullptr, 's'},
                                   {"runs", required_argument, nullptr, 'r'},
                                   {"steps", required_argument, nullptr, 'n'},
                                   {"fault", required_argument, nullptr, 'f'},
                                   {"trace", no_argument, nullptr, 't'},
                                   {"coverage", no_argument, nullptr, 'c'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {"trace-file", required_argument, nullptr, 'o'},
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
        case 'f':
            out.run.fault = fault_or_exit<Fault>(optarg);
            break;
        case 't':
            out.run.trace = true;
            break;
        case 'c':
            out.coverage = true;
            break;
        case 'o':
            out.trace_file = optarg;
            break;
        case 'h':
            std::fputs(kUsage, stdout);
            std::exit(0);
        default:
            std::exit(2);
        }
    }
    if (optind != argc) {
        bad("unexpected argument", argv[optind]);
    }
    return out;
}

// A seed gives the same run again, which is written down then.
int write_trace(RunOptions run, const char* path) {
    TraceFile file;
    if (const int error = file.open(path); error != 0) {
        std::fprintf(stderr, "sim_random: %s: %s\n", path, std::strerror(-error));
        return 2;
    }
    Coverage coverage{};
    run.recorder = &file;
    run.trace = false;
    random_run(run, coverage);
    std::printf("trace: dat_trace --html -o page.html %s\n", path);
    return 0;
}

int report_failure(const RunOptions& run, const RunResult& result) {
    const auto seed = static_cast<unsigned long long>(run.seed);
    for (const Violation& violation : result.violations) {
        std::printf("host %c: %s\n", violation.host == 0 ? 'A' : 'B', violation.rule.data());
    }
    std::printf("FAILED: seed %llu after %llu actions\n", seed,
                static_cast<unsigned long long>(result.steps));
    std::printf("replay: sim_random --seed %llu --runs 1 --steps %u --fault %s --trace\n", seed,
                run.steps, name(run.fault).data());
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    Options options = parse(argc, argv);
    Coverage coverage{};
    std::uint64_t steps = 0;
    const std::uint64_t first = options.run.seed;
    for (std::uint64_t i = 0; i < options.runs; ++i) {
        options.run.seed = first + i;
        const RunResult result = random_run(options.run, coverage);
        steps += result.steps;
        if (!result.violations.empty()) {
            if (options.trace_file && write_trace(options.run, options.trace_file) != 0) {
                return 2;
            }
            return report_failure(options.run, result);
        }
    }
    if (options.trace_file && options.runs > 0 &&
        write_trace(options.run, options.trace_file) != 0) {
        return 2;
    }
    if (options.coverage) {
        print_coverage<core::State, core::Stimulus>(coverage);
    }
    std::printf("passed: %llu runs from seed %llu, %llu actions\n",
                static_cast<unsigned long long>(options.runs),
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(steps));
    return 0;
}
