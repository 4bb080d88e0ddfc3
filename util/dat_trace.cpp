// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_trace: prints what processes have recorded with FI_DAT_TRACE, as Chrome trace events, as a
// page of HTML, or what is in each file. Exit status: 0, 1 where a file cannot be used or the
// output not be written, 2 for bad usage.
#include "command/command.h"
#include "trace/model.h"
#include "trace/output.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

using namespace dat::trace;
using dat::command::Usage;

namespace {

struct Options {
    bool html = false;
    bool summary = false;
    bool json = false;
    std::string output;
    std::vector<std::string> traces;
};

// False: there is nothing more to do.
bool parse(int argc, char** argv, Options& options) {
    dat::command::Command command(
        "dat_trace",
        "Prints what processes have recorded with FI_DAT_TRACE=TRACE as Chrome trace "
        "events, which https://ui.perfetto.dev and chrome://tracing open. Several files "
        "are brought together.");
    command.flag("--html", options.html,
                 "one page of HTML instead, for any browser; it needs no network");
    command.flag("--summary", options.summary,
                 "a line for each file instead: what is in it, and how its clock compares");
    command.flag("--json", options.json, "the summary as JSON");
    command.text("-o,--output", options.output, "FILE", "write to FILE instead of standard output");
    command.app()
        .add_option("trace", options.traces, "files that FI_DAT_TRACE named")
        ->type_name("TRACE");
    if (!command.parse(argc, argv)) {
        return false;
    }
    if (options.html && (options.summary || options.json)) {
        throw Usage("--html and --summary do not go together: choose one");
    }
    if (options.traces.empty()) {
        throw Usage("no trace file is named: it has to be one that FI_DAT_TRACE named");
    }
    return true;
}

void write(const Options& options, const Model& model, std::FILE* file) {
    if (options.html) {
        write_page(model, file);
    } else if (options.json) {
        write_summary_json(model, file);
    } else if (options.summary) {
        write_summary(model, file);
    } else {
        write_chrome(model, file);
    }
}

int print(const Options& options) {
    const Model model = read_traces(options.traces); // before the output is made
    std::FILE* file = stdout;
    if (!options.output.empty()) {
        file = std::fopen(options.output.c_str(), "w");
        if (!file) {
            throw Unusable(options.output + ": " + std::strerror(errno));
        }
    }
    write(options, model, file);
    const bool failed = std::ferror(file) != 0;
    if ((file == stdout ? std::fflush(file) : std::fclose(file)) != 0 || failed) {
        throw Unusable("the output cannot be written: " + std::string(std::strerror(errno)));
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    return dat::command::run("dat_trace", 1, 2, [=] {
        try {
            Options options;
            return parse(argc, argv, options) ? print(options) : 0;
        } catch (const std::bad_alloc&) {
            throw Unusable("there is not enough memory for so large a trace");
        }
    });
}
