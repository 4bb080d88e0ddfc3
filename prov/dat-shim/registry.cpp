// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See registry.h.
#include "dat-shim/registry.h"

#include "dat-shim/conf_file.h"
#include "dat-shim/device.h"
#include "dat-shim/reason.h"
#include "engine/kernel.h"

#include <rdma/providers/fi_log.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace dat::shim {
namespace {

constexpr std::size_t kNamed = 16; // lines that are named as bad

std::vector<ConfEntry> read_conf(unsigned major) {
    ConfFile file = read_conf_file(major);
    for (const auto& [path, why] : file.unreadable) {
        std::fprintf(stderr, "libdat: %s: %s; taken for empty\n", path.c_str(), why.c_str());
    }
    const std::size_t named = std::min(file.problems.size(), kNamed);
    for (std::size_t i = 0; i < named; ++i) {
        const ConfProblem& problem = file.problems[i];
        std::fprintf(stderr, "libdat: %s:%zu:%zu: expected %s; the line is ignored\n",
                     file.path.c_str(), problem.line, problem.column, problem.expected.c_str());
    }
    if (file.problems.size() > kNamed) {
        std::fprintf(stderr, "libdat: %s: %zu more lines are ignored\n", file.path.c_str(),
                     file.problems.size() - kNamed);
    }
    return std::move(file.entries);
}

// The reference's variables that mean nothing here: said once, where messages are on.
void mention_ignored() {
    if (!fi_log_enabled(nullptr, FI_LOG_WARN, FI_LOG_CORE)) {
        return;
    }
    for (char** variable = environ; *variable; ++variable) {
        const std::string_view text(*variable);
        if (text.starts_with("DAPL_") && !text.starts_with("DAPL_DBG")) {
            fi_log(nullptr, FI_LOG_WARN, FI_LOG_CORE, __func__, __LINE__,
                   "%.*s is ignored; see dat_shim(7)\n", static_cast<int>(text.find('=')),
                   text.data());
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

namespace {

// What can be opened, for a line of the log, which has an end: a dat.conf may have many, whose
// devices are not there.
std::string names_there_are(unsigned major) {
    const std::vector<std::string> here = interfaces();
    std::string text;
    std::string of_conf;
    for (const Name& name : list_names(major)) {
        (std::ranges::find(here, name.name) != here.end() ? text : of_conf) += ' ' + name.name;
    }
    text = text.empty() ? " none" : text;
    return of_conf.empty() ? text : text + "; in dat.conf:" + of_conf;
}

} // namespace

Return no_such_device(const std::string& name, const std::string& device, unsigned major) {
    if (out_of_descriptors()) {
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
    const Return code = fail(Type::provider_not_found, Sub::name_not_registered);
    if (!fi_log_enabled(nullptr, FI_LOG_WARN, FI_LOG_CORE)) {
        return code;
    }
    const std::string there = names_there_are(major);
    return device.empty() || device == name
               ? because(code, "there is no IA of the name \"%s\"; there are:%s", name.c_str(),
                         there.c_str())
               : because(
                     code,
                     "the entry \"%s\" of dat.conf says \"%s\", where nothing is offered: it "
                     "has to be an interface, RDMA device or address of this host; there are:%s",
                     name.c_str(), device.c_str(), there.c_str());
}

Return resolve(const std::string& name, unsigned offered, unsigned major, unsigned minor,
               bool thread_safe, std::string& device) {
    if (major != offered) {
        return because(fail(Type::provider_not_found, Sub::major_not_found),
                       "version %u.%u is asked for; this library is for %u.x", major, minor,
                       offered);
    }
    const ConfEntry* unfit = nullptr;
    for (const ConfEntry& entry : conf(offered)) {
        if (entry.name != name || entry.major != major) {
            continue;
        }
        if (entry.minor < minor || entry.thread_safe != thread_safe) {
            unfit = &entry;
            continue;
        }
        device = device_of(entry.parameters);
        if (device.empty()) {
            device = adapter_in(name);
        }
        return device.empty() ? no_such_device(name, entry.parameters, offered) : kSuccess;
    }
    if (unfit && unfit->minor < minor) {
        return because(fail(Type::provider_not_found, Sub::minor_not_found),
                       "version %u.%u is asked for; the entry \"%s\" of dat.conf says u%u.%u",
                       major, minor, name.c_str(), unfit->major, unfit->minor);
    }
    if (unfit) {
        return because(fail(Type::provider_not_found, Sub::thread_safety_not_found),
                       "%s is asked for; the entry \"%s\" of dat.conf says %s",
                       thread_safe ? "threadsafe" : "nonthreadsafe", name.c_str(),
                       thread_safe ? "nonthreadsafe" : "threadsafe");
    }
    device = adapter_in(name);
    return device.empty() ? no_such_device(name, device, offered) : kSuccess;
}

} // namespace dat::shim
