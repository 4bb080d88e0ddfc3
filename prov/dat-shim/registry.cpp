// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See registry.h. May include: dat-shim, libfabric, system headers.
#include "dat-shim/registry.h"

#include "base/log.h"
#include "dat-shim/conf.h"
#include "dat-shim/device.h"
#include "soft/kernel.h"

#include <rdma/providers/fi_log.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>

namespace dat::shim {
namespace {

constexpr std::size_t kLongest = std::size_t{4} << 20; // bytes of a dat.conf
constexpr std::size_t kNamed = 16;                     // lines that are named as bad

struct Descriptor {
    int fd;
    ~Descriptor() { close(fd); }
};

struct Contents {
    std::optional<std::string> text; // nothing: `why` says why
    std::string why;
    bool missing = false; // there is no such file
};

bool is_exhausted(int error) { return error == EMFILE || error == ENFILE; }

Contents unreadable(int error) { return {std::nullopt, std::strerror(error), error == ENOENT}; }

// What may block, or never ends, is not even opened: opening a device may do something. /dev/null
// is how one says that there is to be no file.
Contents not_regular(const struct stat& status) {
    if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3)) {
        return {std::string(), {}, false};
    }
    return S_ISDIR(status.st_mode)
               ? unreadable(EISDIR)
               : Contents{std::nullopt, "not a regular file, which it has to be", false};
}

Contents contents_of(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        return unreadable(errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return not_regular(status);
    }
    const Descriptor file{open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
    if (file.fd < 0 && is_exhausted(errno)) {
        throw std::bad_alloc(); // it is read the next time
    }
    if (file.fd < 0 || fstat(file.fd, &status) != 0) {
        return unreadable(errno);
    }
    if (!S_ISREG(status.st_mode)) { // it is another one by now
        return not_regular(status);
    }
    // The size may be 0, as in /proc, or grow meanwhile.
    std::string text;
    char part[4096];
    while (text.size() <= kLongest) {
        const ssize_t size = read(file.fd, part, sizeof part);
        if (size == 0) {
            return {std::move(text), {}, false};
        }
        if (size > 0) {
            text.append(part, static_cast<std::size_t>(size));
        } else if (errno != EINTR) {
            return unreadable(errno);
        }
    }
    return {std::nullopt, "longer than " + std::to_string(kLongest) + " bytes", false};
}

// Which file it is, and what is in it. 1.2 comes from Solaris, which has it in a folder of
// its own (U-49). Where DAT_OVERRIDE names one, no other is looked for.
std::vector<ConfEntry> read_conf(unsigned major) {
    const kernel::NoCancel within;
    std::vector<std::string> paths{"/etc/dat.conf", "/etc/dat/dat.conf"};
    if (major == 1) {
        std::swap(paths.front(), paths.back());
    }
    const char* const given = std::getenv("DAT_OVERRIDE");
    if (given) {
        paths = {given};
    }
    for (const std::string& path : paths) {
        const Contents contents = contents_of(path);
        if (!contents.text) {
            if (given || !contents.missing) { // neither of the others has to be there
                std::fprintf(stderr, "libdat: %s: %s; taken for empty\n", path.c_str(),
                             contents.why.c_str());
            }
            continue;
        }
        std::size_t bad = 0;
        auto entries = parse_conf(*contents.text, [&](const ConfProblem& problem) {
            if (bad++ < kNamed) {
                std::fprintf(stderr, "libdat: %s:%zu:%zu: expected %s; the line is ignored\n",
                             path.c_str(), problem.line, problem.column, problem.expected.c_str());
            }
        });
        if (bad > kNamed) {
            std::fprintf(stderr, "libdat: %s: %zu more lines are ignored\n", path.c_str(),
                         bad - kNamed);
        }
        return entries;
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
    if (fi_log_enabled(nullptr, FI_LOG_WARN, FI_LOG_CORE)) {
        const std::string there = names_there_are(major);
        if (device.empty() || device == name) {
            DAT_WARN(core, "dat_ia_open(): there is no IA of the name \"%s\"; there are:%s",
                     name.c_str(), there.c_str());
        } else {
            DAT_WARN(core,
                     "dat_ia_open(): the entry \"%s\" of dat.conf says \"%s\", where nothing is "
                     "offered: it has to be an interface, RDMA device or address of this host; "
                     "there are:%s",
                     name.c_str(), device.c_str(), there.c_str());
        }
    }
    return fail(Type::provider_not_found, Sub::name_not_registered);
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
            return device.empty() ? no_such_device(name, entry.parameters, offered) : kSuccess;
        }
    }
    if (why) {
        return why;
    }
    device = adapter_in(name);
    return device.empty() ? no_such_device(name, device, offered) : kSuccess;
}

} // namespace dat::shim
