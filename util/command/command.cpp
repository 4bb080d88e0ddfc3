// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See command.h.
#include "command/command.h"

#include "config.h"

#include <CLI/CLI.hpp>
#include <cstdio>

namespace dat::command {

const char* version() { return PACKAGE_VERSION; }

std::string version_line(const char* name) { return std::string(name) + " (dat) " + version(); }

Command::Command(const char* name, const char* summary)
    : app_(std::make_unique<CLI::App>(summary, name)) {
    app_->set_version_flag("--version", version_line(name), "prints the version and ends");
    app_->get_formatter()->column_width(34);
}

Command::~Command() = default;

void Command::flag(const char* names, bool& value, const char* help) {
    app_->add_flag(names, value, help);
}

void Command::text(const char* names, std::string& value, const char* kind, const char* help) {
    app_->add_option(names, value, help)->type_name(kind);
}

void Command::list(const char* names, std::vector<std::string>& values, const char* kind,
                   const char* help) {
    app_->add_option(names, values, help)->type_name(kind)->delimiter(',')->allow_extra_args(false);
}

void Command::choice(const char* names, std::string& value, const std::vector<std::string>& words,
                     const char* help) {
    app_->add_option(names, value, help)->check(CLI::IsMember(words))->capture_default_str();
}

bool Command::parse(int argc, char** argv) {
    try {
        app_->parse(argc, argv);
    } catch (const CLI::ParseError& wrong) {
        if (wrong.get_exit_code() != 0) {
            throw Usage(wrong.what());
        }
        app_->exit(wrong); // --help, --version
        return false;
    }
    return true;
}

int run(const char* name, int trouble, int usage, const std::function<int()>& body) {
    try {
        return body();
    } catch (const Usage& wrong) {
        std::fprintf(stderr, "%s: %s (--help shows the options)\n", name, wrong.what());
        return usage;
    } catch (const std::exception& what) {
        std::fprintf(stderr, "%s: %s\n", name, what.what());
        return trouble;
    }
}

} // namespace dat::command
