// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_perf: compares libfabric providers on this machine, and measures what the machine
// itself allows. Exit status: 0; 1 where something failed or a provider is missing; 2
// for bad usage. May include: util/perf, util/command, std, CLI11.
#include "command/command.h"
#include "command/text.h"
#include "compare.h"
#include "machine.h"
#include "report.h"
#include "way.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
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
    std::string address = "127.0.0.1";
    std::size_t connections = 1;
    std::string json; // files; empty: none
    std::string csv;
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

void write_reports(const Options& options, const Facts& facts, const Plan& plan,
                   const std::vector<Summary>& summaries) {
    if (!options.json.empty()) {
        write_file(options.json, json_text(facts, plan, summaries));
    }
    if (!options.csv.empty()) {
        write_file(options.csv, csv_text(summaries));
    }
    for (const Summary& summary : summaries) {
        if (!options.svg.empty()) {
            write_file(options.svg + "/" + summary.measure->name + ".svg", svg_text(summary));
        }
    }
}

// What cannot be written is better known before an hour of measuring.
void check_places(const Options& options) {
    for (const std::string& path : {options.json, options.csv}) {
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
    plan.address = options.address;
    plan.connections = options.connections;
    return plan;
}

// Removes from the plan what is not here, where the user allows it. False: it ends here.
bool check_providers(Plan& plan, bool skip) {
    std::vector<Way> here;
    for (const Way& way : plan.ways) {
        const std::vector<std::string> lines = missing({way}, plan.address);
        if (lines.empty()) {
            here.push_back(way);
            continue;
        }
        std::fprintf(stderr, "dat_perf: %s\n", lines.front().c_str());
        if (!skip) {
            return false;
        }
    }
    plan.ways = here;
    return !here.empty();
}

// Measures everything, and prints what text_of() makes of each summary as it is there.
template <class TextOf>
int measure(const Options& options, const Plan& plan, std::vector<Summary>& summaries,
            TextOf&& text_of) {
    check_places(options);
    const Facts facts = machine();
    print(head_text(facts, plan));
    const Progress progress;
    Comparison comparison(plan, [&](std::size_t done, std::size_t all, const std::string& next) {
        progress.show(done, all, next);
    });
    for (const Measure* one : plan.measures) {
        Summary summary = comparison.run(*one);
        if (!summary.points.front().rows.empty()) {
            summaries.push_back(std::move(summary));
            progress.clear();
            print(text_of(summaries.back()));
        }
    }
    write_reports(options, facts, plan, summaries);
    return comparison.failed() ? 1 : 0;
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
    plan.measures = parse_tests(options.tests);
    if (!check_providers(plan, options.skip_missing)) {
        return 1;
    }
    std::vector<Summary> summaries;
    return measure(options, plan, summaries, table_text);
}

int floor(const Options& options) {
    Plan plan = plan_of(options);
    plan.limits = true;
    plan.measures = parse_tests("latency,bandwidth,rate,rma,connect");
    std::erase_if(plan.measures, [](const Measure* one) {
        return one->pattern == Pattern::write || one->pattern == Pattern::read; // as bandwidth
    });
    plan.measures.push_back(&memcpy_measure());
    std::vector<Summary> summaries;
    const int status =
        measure(options, plan, summaries, [](const Summary&) { return std::string(); });
    print(floor_text(summaries));
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
    command.add_option("--svg", options.svg, "writes a picture of each test into this folder");
}

int run(int argc, char** argv) {
    Options options;
    command::Command command("dat_perf", "Compares libfabric providers on this machine.");
    CLI::App& app = command.app();
    app.require_subcommand(1);
    CLI::App* comparing = app.add_subcommand(
        "compare", "measures providers in one run, in alternation, beside the machine's limits");
    comparing
        ->add_option("--providers", options.providers,
                     "names between commas, the first is what the others are compared with; "
                     "behind a name @VARIABLE=VALUE, @msg, @rdm")
        ->capture_default_str();
    comparing->add_option("--test", options.tests, "any of " + test_names())->capture_default_str();
    add_common(*comparing, options);
    comparing->add_flag("--no-limits", options.no_limits, "leaves out what the machine allows");
    comparing->add_flag("--skip-missing", options.skip_missing,
                        "goes on without providers that are not here");
    comparing->add_option("--address", options.address, "of this host, to measure over")
        ->capture_default_str();
    comparing
        ->add_option("--connections", options.connections,
                     "so many between the two processes; the test turns uses them all, the others "
                     "the first")
        ->check(CLI::Range(1, 100000))
        ->capture_default_str();
    CLI::App* machines = app.add_subcommand(
        "floor", "measures what the machine itself allows: cache lines, copies, sockets");
    add_common(*machines, options);
    if (!command.parse(argc, argv)) {
        return 0;
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
