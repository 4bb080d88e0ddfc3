// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_doctor: looks at what keeps programs from running over dat, or makes them slow, and says how
// to mend it. Exit status: 0; 1 with a WARN; 2 with a FAIL; 3 for bad usage, or where it cannot be
// carried out.
#include "command/command.h"
#include "command/text.h"
#include "doctor/facts.h"
#include "doctor/greeting.h"
#include "doctor/report.h"
#include "doctor/serve.h"

#include <algorithm>
#include <csignal>
#include <stdexcept>

namespace dat::doctor {
namespace {

struct Chosen {
    Options options;
    std::vector<std::string> only; // names of checks; empty: all
    std::string port = kDefaultPort;
    bool serve = false;
    bool json = false;
    bool list = false;
};

std::vector<const Check*> wanted(const std::vector<std::string>& names) {
    std::vector<const Check*> found;
    for (const Check& check : checks()) {
        if (names.empty() || std::ranges::find(names, name_of(check)) != names.end()) {
            found.push_back(&check);
        }
    }
    for (const std::string& name : names) {
        if (std::ranges::none_of(checks(),
                                 [&](const Check& check) { return name_of(check) == name; })) {
            throw command::Usage("\"" + name + "\" is no check; --list shows those that there are");
        }
    }
    return found;
}

int list() {
    command::Table table;
    for (const Check& check : checks()) {
        table.add({name_of(check), check.what, check.probe});
    }
    return command::print(table.text()) ? 0 : 3;
}

int look(const Chosen& chosen) {
    Facts facts(chosen.options);
    std::vector<Result> results;
    bool written = true;
    for (const Check* check : wanted(chosen.only)) {
        results.push_back({check, check->look(facts)});
        if (!chosen.json) { // as soon as it is there
            written = command::print(text_of(results.back())) && written;
        }
    }
    written = command::print(chosen.json ? json_of(results) : "\n" + sum_of(results)) && written;
    if (!written) {
        throw std::runtime_error("the report cannot be written");
    }
    return exit_status(results);
}

int run(int argc, char** argv) {
    Chosen chosen;
    command::Command command("dat_doctor", "Finds what keeps programs from running over the "
                                           "libfabric provider dat, and says how to mend it.");
    command.text("--peer", chosen.options.peer, "HOST[:PORT]",
                 "looks at the way to that host as well, where dat_doctor --serve runs");
    command.flag("--serve", chosen.serve, "answers dat_doctor --peer of other hosts, until ended");
    command.text("--port", chosen.port, "PORT", "of --serve: the port, 0 for any (47471)");
    command.flag("--mpi", chosen.options.mpi, "looks at Open MPI as well");
    command.list("--check", chosen.only, "NAME[,NAME...]", "looks at these alone");
    command.flag("--list", chosen.list, "lists what is looked at, and how");
    command.flag("--json", chosen.json, "prints the report as JSON");
    if (!command.parse(argc, argv)) {
        return 0;
    }
    std::signal(SIGPIPE, SIG_IGN); // a peer, or a reader, that has gone is an error
    if (chosen.list) {
        return list();
    }
    if (chosen.serve) {
        serve(chosen.port);
    }
    return look(chosen);
}

} // namespace
} // namespace dat::doctor

int main(int argc, char** argv) {
    return dat::command::run("dat_doctor", 3, 3, [=] { return dat::doctor::run(argc, argv); });
}
