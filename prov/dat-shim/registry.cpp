// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See registry.h. May include: dat-shim, libfabric, system headers.
#include "dat-shim/registry.h"

#include "dat-shim/conf.h"
#include "dat-shim/device.h"

#include <rdma/providers/fi_log.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace dat::shim {
namespace {

struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

// Nothing: errno says why.
std::optional<std::string> contents_of(const std::string& path) {
    const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "re"));
    if (!file) {
        return std::nullopt;
    }
    std::string text;
    char part[4096];
    while (const std::size_t size = std::fread(part, 1, sizeof part, file.get())) {
        text.append(part, size);
    }
    return std::ferror(file.get()) ? std::nullopt : std::optional(text);
}

// Which file it is, and what is in it. 1.2 comes from Solaris, which has it in a folder of
// its own (U-49). Where DAT_OVERRIDE names one, no other is looked for.
std::vector<ConfEntry> read_conf(unsigned major) {
    std::vector<std::string> paths{"/etc/dat.conf", "/etc/dat/dat.conf"};
    if (major == 1) {
        std::swap(paths.front(), paths.back());
    }
    const char* const given = std::getenv("DAT_OVERRIDE");
    if (given) {
        paths = {given};
    }
    for (const std::string& path : paths) {
        const std::optional<std::string> text = contents_of(path);
        if (!text) {
            if (given || errno != ENOENT) { // neither of the others has to be there
                std::fprintf(stderr, "libdat: %s: %s; taken for empty\n", path.c_str(),
                             std::strerror(errno));
            }
            continue;
        }
        return parse_conf(*text, [&](const ConfProblem& problem) {
            std::fprintf(stderr, "libdat: %s:%zu:%zu: expected %s; the line is ignored\n",
                         path.c_str(), problem.line, problem.column, problem.expected.c_str());
        });
    }
    return {};
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
