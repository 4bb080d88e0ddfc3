// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See registry.h. May include: dat-shim, system headers.
#include "dat-shim/registry.h"

#include "dat-shim/conf.h"
#include "dat-shim/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace dat::shim {
namespace {

// Which file it is, and what is in it. 1.2 comes from Solaris, which has it in a folder of
// its own (U-49).
std::vector<ConfEntry> read_conf(unsigned major) {
    std::vector<std::string> paths{"/etc/dat.conf", "/etc/dat/dat.conf"};
    if (major == 1) {
        std::swap(paths.front(), paths.back());
    }
    if (const char* given = std::getenv("DAT_OVERRIDE")) {
        paths = {given};
    }
    for (const std::string& path : paths) {
        std::ifstream file(path);
        if (!file) {
            continue;
        }
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        return parse_conf(text, [&](const ConfProblem& problem) {
            std::fprintf(stderr, "libdat: %s:%zu:%zu: expected %s; the line is ignored\n",
                         path.c_str(), problem.line, problem.column, problem.expected.c_str());
        });
    }
    return {};
}

// The reference's variables that mean nothing here: said once, where messages are on.
void mention_ignored() {
    const bool loud = std::getenv("DAPL_DBG_TYPE") || std::getenv("DAT_DBG_TYPE");
    if (!loud) {
        return;
    }
    for (char** variable = environ; *variable; ++variable) {
        const std::string_view text(*variable);
        if (text.starts_with("DAPL_") && !text.starts_with("DAPL_DBG")) {
            std::fprintf(stderr, "libdat: %.*s is ignored; see dat_shim(7)\n",
                         static_cast<int>(text.find('=')), text.data());
        }
    }
}

// Read once: a library is for one version of the API.
const std::vector<ConfEntry>& conf(unsigned major) {
    static const std::vector<ConfEntry> entries = [major] {
        mention_ignored();
        return read_conf(major);
    }();
    return entries;
}

} // namespace

std::string device_of(const std::string& parameters) {
    std::istringstream words(parameters);
    std::string device;
    std::string port;
    words >> device >> port;
    const std::string adapter = rdma_port(device, port);
    return adapter.empty() ? device : adapter;
}

std::vector<Name> list_names(unsigned major) {
    std::vector<Name> names;
    const auto known = [&](const std::string& name) {
        return std::ranges::find(names, name, &Name::name) != names.end();
    };
    for (const ConfEntry& entry : conf(major)) {
        if (entry.is_default && entry.major == major && !known(entry.name)) {
            names.push_back({entry.name, entry.major, entry.minor, entry.thread_safe});
        }
    }
    for (const std::string& interface : interfaces()) {
        if (!known(interface)) {
            names.push_back({interface, major, major == 1 ? 2U : 0U, false});
        }
    }
    return names;
}

Return resolve(const std::string& name, unsigned offered, unsigned major, unsigned minor,
               bool thread_safe, std::string& device) {
    if (major != offered) {
        return fail(Type::provider_not_found, Sub::major_not_found);
    }
    Return why = kSuccess;
    for (const ConfEntry& entry : conf(offered)) {
        if (entry.name != name || entry.major != major) {
            continue;
        }
        if (entry.minor < minor) {
            why = fail(Type::provider_not_found, Sub::minor_not_found);
        } else if (entry.thread_safe != thread_safe) {
            why = fail(Type::provider_not_found, Sub::thread_safety_not_found);
        } else {
            device = device_of(entry.parameters);
            if (device.empty()) {
                device = adapter_in(name);
            }
            return device.empty() ? fail(Type::provider_not_found, Sub::name_not_registered)
                                  : kSuccess;
        }
    }
    if (why) {
        return why;
    }
    device = adapter_in(name);
    return device.empty() ? fail(Type::provider_not_found, Sub::name_not_registered) : kSuccess;
}

} // namespace dat::shim
