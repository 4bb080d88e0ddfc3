// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_top: shows the connections of this user's processes, and why they ended. Exit status: 0; 1
// where something failed; 2 for bad usage.
#include "command/command.h"
#include "command/text.h"
#include "top/view.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>

namespace dat::top {
namespace {

struct Options {
    double interval_s = 1;
    bool once = false;
    bool json = false;
    std::string prometheus; // a file, or -; empty: none
    pid_t process = 0;      // 0: all
    bool ends = false;
};

// Those that have not answered by then are shown as such.
constexpr std::chrono::milliseconds kPatience{500};

void print(const std::string& text) {
    if (!command::print(text)) {
        throw std::runtime_error(std::string("standard output: ") + std::strerror(errno));
    }
}

// Whole or not at all, whenever the collector looks.
void write_textfile(const std::string& path, const std::string& text) {
    if (path == "-") {
        return print(text);
    }
    const std::string extra_segments = path + "." + std::to_string(::getpid());
    std::ofstream file(extra_segments);
    file << text;
    file.close();
    if (!file || ::rename(extra_segments.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(extra_segments.c_str());
        throw std::runtime_error(path + " cannot be written: " + std::strerror(error));
    }
}

std::string text_of(const Options& options, const Sight& sight, const Sight* before) {
    if (options.json) {
        return json_text(sight, before);
    }
    const Style style{command::Paint(stdout), command::columns_of(stdout)};
    return options.ends ? ends_text(sight, style) : top_text(sight, before, style);
}

void pause_for(double seconds) { ::poll(nullptr, 0, static_cast<int>(seconds * 1000)); }

int run(int argc, char** argv) {
    Options options;
    command::Command command("dat_top", "Shows the connections of this user's processes.");
    CLI::App& app = command.app();
    app.add_option("--interval", options.interval_s, "seconds between two looks")
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    command.flag("--once", options.once, "looks twice, an interval apart, prints once and ends");
    CLI::Option* const json = app.add_flag("--json", options.json, "a line of JSON for each look");
    app.add_option("--prometheus", options.prometheus,
                   "looks once and writes a textfile for node_exporter; - is standard output")
        ->excludes(json);
    app.add_option("--pid", options.process, "of this process alone")->check(CLI::PositiveNumber);
    app.require_subcommand(0, 1);
    app.fallthrough();
    app.add_subcommand("ends", "the last connections that ended, who ended them and why")
        ->callback([&options] { options.ends = true; });
    if (!command.parse(argc, argv)) {
        return 0;
    }
    const std::optional<pid_t> only =
        options.process > 0 ? std::optional(options.process) : std::nullopt;
    Looker looker;
    Sight before = looker.look(kPatience, only);
    if (!options.prometheus.empty()) {
        write_textfile(options.prometheus, prometheus_text(before));
        return 0;
    }
    if (options.ends) {
        print(text_of(options, before, nullptr));
        return 0;
    }
    const bool live = !options.once && !options.json && ::isatty(STDOUT_FILENO) == 1;
    if (!options.once) {
        print((live ? "\033[H\033[J" : "") + text_of(options, before, nullptr));
    }
    for (;;) {
        pause_for(options.interval_s);
        Sight now = looker.look(kPatience, only);
        print((live ? "\033[H\033[J" : "") + text_of(options, now, &before));
        if (options.once) {
            return 0;
        }
        before = std::move(now);
    }
}

} // namespace
} // namespace dat::top

int main(int argc, char** argv) {
    return dat::command::run("dat_top", 1, 2, [=] { return dat::top::run(argc, argv); });
}
