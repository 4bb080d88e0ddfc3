// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_trace: prints what processes have recorded with FI_DAT_TRACE, as Chrome trace events, as a
// page of HTML, or in a few lines. Exit status: 0, 1 where a file cannot be used or the output not
// be written, 2 for bad usage. May include: util/trace, core.
#include "config.h"

#include "trace/model.h"
#include "trace/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <getopt.h>
#include <memory>
#include <new>
#include <string>
#include <vector>

using namespace dat::trace;

namespace {

constexpr const char* kUsage =
    "usage: dat_trace [--html | --summary] [-o FILE] TRACE...\n"
    "\n"
    "Prints what processes have recorded with FI_DAT_TRACE=TRACE as Chrome trace events, which\n"
    "https://ui.perfetto.dev and chrome://tracing open. Several files are brought together.\n"
    "\n"
    "  --html             one page of HTML instead, for any browser; it needs no network\n"
    "  --summary          a line for each file instead: what is in it\n"
    "  -o, --output FILE  write to FILE instead of standard output\n"
    "  --version          the version\n"
    "  --help             this text\n";

struct Options {
    void (*write)(const Model&, std::FILE*) = write_chrome;
    std::string output;
    std::vector<std::string> traces;
};

// What the user wrote cannot be understood.
struct Usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// False: there is nothing more to do.
bool parse(int argc, char** argv, Options& options) {
    static const option kLong[] = {
        {"html", no_argument, nullptr, 'm'},         {"summary", no_argument, nullptr, 's'},
        {"output", required_argument, nullptr, 'o'}, {"version", no_argument, nullptr, 'v'},
        {"help", no_argument, nullptr, 'h'},         {nullptr, 0, nullptr, 0}};
    bool chosen = false;
    opterr = 0;
    for (int c = 0; (c = getopt_long(argc, argv, ":o:h", kLong, nullptr)) != -1;) {
        switch (c) {
        case 'm':
        case 's':
            if (chosen) {
                throw Usage("--html and --summary do not go together: choose one");
            }
            chosen = true;
            options.write = c == 'm' ? write_page : write_summary;
            break;
        case 'o':
            options.output = optarg;
            break;
        case 'v':
            std::printf("dat_trace (dat) %d.%d\n", DAT_VERSION_MAJOR, DAT_VERSION_MINOR);
            return false;
        case 'h':
            std::fputs(kUsage, stdout);
            return false;
        default:
            throw Usage(std::string(c == ':' ? "a value is missing: " : "no such option: ") +
                        argv[optind - 1]);
        }
    }
    options.traces.assign(argv + optind, argv + argc);
    if (options.traces.empty()) {
        throw Usage("no trace file is named: it has to be one that FI_DAT_TRACE named");
    }
    return true;
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
    options.write(model, file);
    const bool failed = std::ferror(file) != 0;
    if ((file == stdout ? std::fflush(file) : std::fclose(file)) != 0 || failed) {
        throw Unusable("the output cannot be written: " + std::string(std::strerror(errno)));
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    Options options;
    try {
        return parse(argc, argv, options) ? print(options) : 0;
    } catch (const Usage& usage) {
        std::fprintf(stderr, "dat_trace: %s (--help shows the options)\n", usage.what());
        return 2;
    } catch (const Unusable& trouble) {
        std::fprintf(stderr, "dat_trace: %s\n", trouble.what());
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "dat_trace: there is not enough memory for so large a trace\n");
    }
    return 1;
}
