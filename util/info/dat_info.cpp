// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_info: what fi_getinfo(3) lists of dat, in words: for each address the transport, the limits,
// and which peers it can talk to. Exit status: 0; 1 where nothing is listed; 2 for bad usage.
#include "command/command.h"
#include "command/text.h"
#include "info/entry.h"

#include <algorithm>
#include <cstdio>

namespace dat::info {
namespace {

int run(int argc, char** argv) {
    bool json = false;
    std::string on;
    command::Command command("dat_info", "Says in words what the libfabric provider dat offers.");
    command.text("--on", on, "NAME", "an interface, RDMA device or address: that alone");
    command.flag("--json", json, "prints it as JSON");
    if (!command.parse(argc, argv)) {
        return 0;
    }
    std::string why;
    std::vector<Entry> entries = list_entries(why);
    if (entries.empty()) {
        std::fprintf(stderr, "dat_info: nothing is offered: %s; dat_doctor looks for the cause\n",
                     why.c_str());
        return 1;
    }
    std::erase_if(entries, [&](const Entry& entry) {
        return !on.empty() && on != entry.domain && on != entry.address && on != entry.interface;
    });
    if (entries.empty()) {
        std::fprintf(
            stderr, "dat_info: nothing is offered on \"%s\"; dat_info without --on shows what is\n",
            on.c_str());
        return 1;
    }
    const std::string text = json ? json_of(entries) : text_of(entries);
    return command::print(text) ? 0 : 1;
}

} // namespace
} // namespace dat::info

int main(int argc, char** argv) {
    return dat::command::run("dat_info", 1, 2, [=] { return dat::info::run(argc, argv); });
}
