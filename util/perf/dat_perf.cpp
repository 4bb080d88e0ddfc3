// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_perf: compares libfabric providers on this machine or between two, and measures what the
// machine itself allows. Exit status: 0; 1 where something failed, a provider is missing, or a
// figure is worse than the baseline's; 2 for bad usage.
#include "baseline.h"
#include "command/command.h"
#include "command/text.h"
#include "compare.h"
#include "foreign.h"
#include "machine.h"
#include "remote.h"
#include "report.h"
#include "way.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace dat::perf {
namespace {

struct Options {
    std::string providers = "dat,tcp";
    std::string tests = "latency,bandwidth,rate";
    std::string sizes = "8:4M";
    std::size_t rounds = 7;
    double seconds = 0.1;
    std::uint64_t operations = 0;
    bool waits = false;
    bool no_limits = false;
    bool skip_missing = false;
    std::string address; // empty: loopback, or towards the other host
    std::size_t connections = 1;
    std::size_t pairs = 1;
    std::size_t threads = 1;
    std::size_t senders = 2;
    std::string with; // what else is installed
    std::string to;   // HOST[:PORT]; empty: this host
    std::string port = kDefaultPort;
    std::string baseline; // a file; empty: none
    double tolerance = 5;
    std::string json; // files; empty: none
    std::string csv;
    std::string html;
    std::string svg; // a folder
};

void write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) {
        fail("%s cannot be written: %s", path.c_str(), std::strerror(errno));
    }
}

// Shows on a terminal what is measured; anywhere else nothing.
class Progress {
  public:
    ~Progress() { clear(); }
    void show(std::size_t done, std::size_t all, const std::string& next) const {
        if (on_) {
            std::fprintf(stderr, "\r\033[K%zu of %zu: %s", done + 1, all, next.c_str());
        }
    }
    void clear() const {
        if (on_) {
            std::fputs("\r\033[K", stderr);
        }
    }

  private:
    const bool on_ = ::isatty(STDERR_FILENO) == 1;
};

// All that is reported.
struct Report {
    Facts machine;
    Facts there; // of the other host
    std::vector<Summary> summaries;
    std::string verdict; // beside the baseline
};

void write_reports(const Options& options, const Plan& plan, const Report& report) {
    if (!options.json.empty()) {
        write_file(options.json, json_text(report.machine, report.there, plan, report.summaries));
    }
    if (!options.csv.empty()) {
        write_file(options.csv, csv_text(report.summaries));
    }
    if (!options.html.empty()) {
        write_file(options.html,
                   html_text(report.machine, report.there, plan, report.summaries, report.verdict));
    }
    for (const Summary& summary : report.summaries) {
        if (!options.svg.empty()) {
            write_file(options.svg + "/" + summary.measure->name + ".svg", svg_text(summary));
        }
    }
}

// What cannot be written is better known before an hour of measuring.
void check_places(const Options& options) {
    for (const std::string& path : {options.json, options.csv, options.html}) {
        if (!path.empty()) {
            write_file(path, "");
        }
    }
    if (!options.svg.empty()) {
        std::filesystem::create_directories(options.svg);
    }
}

// Nothing is left in a buffer where a process is made.
void print(const std::string& text) {
    if (!command::print(text)) {
        fail("standard output cannot be written: %s", std::strerror(errno));
    }
}

Plan plan_of(const Options& options) {
    Plan plan;
    plan.sizes = parse_sizes(options.sizes);
    plan.rounds = options.rounds;
    plan.amount = {options.operations, options.seconds};
    plan.waits = options.waits;
    plan.limits = !options.no_limits;
    plan.address = options.address.empty() ? "127.0.0.1" : options.address;
    plan.connections = options.connections;
    plan.pairs = options.pairs;
    plan.threads = options.threads;
    plan.senders = options.senders;
    return plan;
}

// Why the way cannot be measured; empty: it can. What versions are there is put into the notes.
std::string reason_against(const Way& way, Plan& plan, Remote* remote) {
    std::string here;
    if (way.kind == Kind::fabric) {
        const std::vector<std::string> lines = missing({way}, plan.address, here);
        if (!lines.empty()) {
            return lines.front();
        }
    } else {
        try {
            require_foreign(way, remote != nullptr);
        } catch (const NotOffered& reason) {
            return way.label + ": " + reason.what();
        }
    }
    if (!remote) {
        return {};
    }
    std::string there;
    const std::string reason = remote->reason_against(way, there);
    if (!reason.empty()) {
        return "on " + remote->name() + ": " + way.label + ": " + reason;
    }
    if (here != there) {
        plan.notes.push_back(way.label + ": version " + here + " here, " + there + " on " +
                             remote->name());
        std::fprintf(stderr, "dat_perf: %s\n", plan.notes.back().c_str());
    }
    return {};
}

// Removes from the plan what is not here, where the user allows it. False: it ends here.
bool check_providers(Plan& plan, bool skip, Remote* remote) {
    std::vector<Way> here;
    for (const Way& way : plan.ways) {
        const std::string reason = reason_against(way, plan, remote);
        if (reason.empty()) {
            here.push_back(way);
            continue;
        }
        std::fprintf(stderr, "dat_perf: %s\n", reason.c_str());
        // What is only measured beside is not waited for.
        if (!skip && way.kind == Kind::fabric) {
            return false;
        }
        plan.notes.push_back(way.kind == Kind::fabric ? reason : "not measured: " + reason);
    }
    plan.ways = here;
    return !here.empty();
}

// Measures everything, and prints what text_of() makes of each summary as it is there.
template <class TextOf>
int measure(const Options& options, const Plan& plan, Remote* remote, Report& report,
            const Baseline* baseline, TextOf&& text_of) {
    check_places(options);
    report.machine = machine();
    if (remote) {
        report.there = remote->machine();
    }
    print(head_text(report.machine, report.there, plan));
    const Progress progress;
    Comparison comparison(plan, remote,
                          [&](std::size_t done, std::size_t all, const std::string& next) {
                              progress.show(done, all, next);
                          });
    for (const Measure* one : plan.measures) {
        Summary summary = comparison.run(*one);
        if (!summary.points.front().rows.empty()) {
            report.summaries.push_back(std::move(summary));
            progress.clear();
            print(text_of(report.summaries.back()));
        }
    }
    bool worse = false;
    if (baseline) {
        const double tolerance = options.tolerance / 100;
        const Verdict verdict = baseline->compare(report.summaries, tolerance);
        report.verdict = verdict_text(*baseline, verdict, tolerance);
        print(report.verdict);
        worse = verdict.worse();
    }
    write_reports(options, plan, report);
    return comparison.failed() || worse ? 1 : 0;
}

// Each connection may be a descriptor, and more than one on its way.
void allow_descriptors() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int compare(const Options& options) {
    allow_descriptors();
    Plan plan = plan_of(options);
    plan.ways = parse_ways(options.providers);
    if (!options.with.empty()) {
        const std::vector<Way> more = parse_foreign(options.with);
        plan.ways.insert(plan.ways.end(), more.begin(), more.end());
    }
    plan.measures = parse_tests(options.tests);
    std::optional<Baseline> baseline;
    if (!options.baseline.empty()) {
        baseline.emplace(options.baseline, plan);
    }
    std::optional<Remote> remote;
    if (!options.to.empty()) {
        remote.emplace(options.to);
        plan.to = remote->name();
        plan.address = options.address.empty() ? remote->own_address() : options.address;
        if (!remote->other_libfabric().empty()) {
            plan.notes.push_back("libfabric " + remote->other_libfabric() + " on " +
                                 remote->name() + ", not the same as here");
            std::fprintf(stderr, "dat_perf: %s\n", plan.notes.back().c_str());
        }
    }
    Remote* const there = remote ? &*remote : nullptr;
    if (!check_providers(plan, options.skip_missing, there)) {
        return 1;
    }
    Report report;
    return measure(options, plan, there, report, baseline ? &*baseline : nullptr, table_text);
}

int floor(const Options& options) {
    Plan plan = plan_of(options);
    plan.limits = true;
    plan.measures = parse_tests("latency,bandwidth,rate,rma,connect");
    std::erase_if(plan.measures, [](const Measure* one) {
        return one->pattern == Pattern::write || one->pattern == Pattern::read; // as bandwidth
    });
    plan.measures.push_back(&memcpy_measure());
    Report report;
    const int status = measure(options, plan, nullptr, report, nullptr,
                               [](const Summary&) { return std::string(); });
    print(floor_text(report.summaries));
    return status;
}

void add_common(CLI::App& command, Options& options) {
    command
        .add_option("--sizes", options.sizes,
                    "FIRST:LAST[:FACTOR], or a list; K, M and G are powers of 1024")
        ->capture_default_str();
    command.add_option("--rounds", options.rounds, "how often each is measured")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command.add_option("--seconds", options.seconds, "how long each time, about")
        ->check(CLI::Range(0.001, 600.0))
        ->capture_default_str();
    command
        .add_option("--operations", options.operations,
                    "so many each time instead, whatever it takes")
        ->check(CLI::Range(1, 1000000000));
    command.add_flag("--wait", options.waits,
                     "waits for completions (fi_cq_sread, poll) instead of polling");
    command.add_option("--json", options.json, "writes everything into this file");
    command.add_option("--csv", options.csv, "writes each run into this file");
    command.add_option("--html", options.html, "writes a page with everything into this file");
    command.add_option("--svg", options.svg, "writes a picture of each test into this folder");
}

void add_compare(CLI::App& command, Options& options) {
    command
        .add_option("--providers", options.providers,
                    "names between commas, the first is what the others are compared with; "
                    "behind a name @VARIABLE=VALUE, @msg, @rdm")
        ->capture_default_str();
    command.add_option("--test", options.tests, "any of " + test_names())->capture_default_str();
    command.add_option("--to", options.to,
                       "HOST[:PORT] where dat_perf serve runs: between two hosts");
    add_common(command, options);
    command.add_option("--with", options.with, "what else is measured beside: ucx, openmpi");
    command.add_flag("--no-limits", options.no_limits, "leaves out what the machine allows");
    command.add_flag("--skip-missing", options.skip_missing,
                     "goes on without providers that are not here");
    command.add_option("--address", options.address,
                       "of this host, to measure over (127.0.0.1, or towards HOST)");
    command
        .add_option("--connections", options.connections,
                    "so many between the two processes; the test turns uses them all, the others "
                    "the first")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    command.add_option("--pairs", options.pairs, "so many pairs of processes at the same time")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command
        .add_option("--threads", options.threads,
                    "so many threads in each process, each with its own endpoint")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command
        .add_option("--senders", options.senders,
                    "so many processes send to one in the test incast")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command.add_option("--baseline", options.baseline,
                       "a file that --json has written: exit status 1 if a figure is worse now");
    command
        .add_option("--tolerance", options.tolerance,
                    "percent by which a figure may be worse than the baseline's")
        ->check(CLI::Range(0.0, 1000.0))
        ->capture_default_str();
}

int run(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == kMpiSide) {
        return mpi_side(argc, argv);
    }
    Options options;
    command::Command command("dat_perf", "Compares libfabric providers on this machine, or between "
                                         "two.");
    CLI::App& app = command.app();
    app.require_subcommand(1);
    CLI::App* comparing = app.add_subcommand(
        "compare", "measures providers in one run, in alternation, beside the machine's limits");
    add_compare(*comparing, options);
    CLI::App* serving =
        app.add_subcommand("serve", "is the other host of compare --to, until it is ended");
    serving->add_option("--port", options.port, "to listen on; 0: any that is free")
        ->capture_default_str();
    serving->add_option("--address", options.address,
                        "of this host, to measure over (that at which the other reaches it)");
    CLI::App* machines = app.add_subcommand(
        "floor", "measures what the machine itself allows: cache lines, copies, sockets");
    add_common(*machines, options);
    if (!command.parse(argc, argv)) {
        return 0;
    }
    if (serving->parsed()) {
        allow_descriptors();
        serve(options.port, options.address);
    }
    return comparing->parsed() ? compare(options) : floor(options);
}

} // namespace
} // namespace dat::perf

int main(int argc, char** argv) {
    return dat::command::run("dat_perf", 1, 2, [=] {
        try {
            return dat::perf::run(argc, argv);
        } catch (const dat::perf::Usage& wrong) { // of what is behind the options
            throw dat::command::Usage(wrong.what());
        }
    });
}
