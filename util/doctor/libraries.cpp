// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which libraries programs load that this project has one of the same name of, and dat.conf.
#include "config.h"
#include "dat-shim/conf_file.h"
#include "doctor/facts.h"
#include "doctor/looks.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <sstream>
#include <unistd.h>

namespace dat::doctor {
namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string resolved(const std::string& path) {
    std::array<char, PATH_MAX> whole{};
    return realpath(path.c_str(), whole.data()) ? whole.data() : "";
}

// The provider is in each library of this project, with the names of its variables.
bool is_ours(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    return bytes.find("FI_DAT_") != std::string::npos;
}

struct Loaded {
    std::string path; // empty: none, and `why`
    std::string why;
};

// What the dynamic linker takes, asked of itself.
Loaded loaded(const char* name) {
    const Outcome tried = in_child(10s, [name](const Report& report) {
        void* const library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (!library) {
            return report.say("why", dlerror());
        }
        link_map* map = nullptr;
        if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0) {
            report.say("path", map->l_name);
        }
    });
    return {tried["path"], tried.all_right() ? tried["why"] : tried.trouble};
}

// Where one of this project may be: folders of LD_LIBRARY_PATH, and where it is installed.
std::string ours(const char* name) {
    std::vector<std::string> folders;
    std::istringstream path(variable("LD_LIBRARY_PATH"));
    for (std::string folder; std::getline(path, folder, ':');) {
        folders.push_back(folder);
    }
    folders.emplace_back(DAT_UDAPL_DIR);
    for (const std::string& folder : folders) {
        std::string file = folder + "/" + name;
        if (access(file.c_str(), R_OK) == 0 && is_ours(file)) {
            return file;
        }
    }
    return {};
}

// How the linker came to it.
std::string way_to(const std::string& path) {
    std::istringstream folders(variable("LD_LIBRARY_PATH"));
    for (std::string folder; std::getline(folders, folder, ':');) {
        if (folder == folder_of(path)) {
            return "by LD_LIBRARY_PATH";
        }
    }
    return "by /etc/ld.so.conf";
}

Finding look_library(const char* name) {
    const Loaded found = loaded(name);
    const std::string own = ours(name);
    if (found.path.empty()) {
        if (!own.empty()) {
            return warning(std::string("programs find no ") + name + "; dat's is " + own, found.why,
                           "export LD_LIBRARY_PATH=" + folder_of(own) +
                               ", or write that folder into a file of /etc/ld.so.conf.d, and run "
                               "ldconfig");
        }
        // The library may be there, and what it needs not.
        return found.why.find(std::string(name) + ": cannot open") != std::string::npos
                   ? none("none is installed")
                   : failure(std::string("programs cannot load ") + name, found.why,
                             "install what is missing, or take that library away");
    }
    if (is_ours(found.path)) {
        return good(found.path + ", " + way_to(found.path));
    }
    if (own.empty()) {
        return none(found.path + ", which is not dat's; dat's is not installed");
    }
    const std::string rest = variable("LD_LIBRARY_PATH");
    return warning("programs load " + found.path + ", " + way_to(found.path) +
                       ", which is not dat's; dat's is " + own,
                   "the first of that name wins",
                   "export LD_LIBRARY_PATH=" + folder_of(own) + (rest.empty() ? "" : ":" + rest));
}

// Programs read dat.conf with the library that they load.
bool conf_matters(unsigned& major) {
    for (const auto& [name, version] :
         {std::pair("libdat2.so.2", 2U), std::pair("libdat.so.1", 1U)}) {
        const Loaded found = loaded(name);
        if (!found.path.empty() && is_ours(resolved(found.path))) {
            major = version;
            return true;
        }
    }
    return false;
}

Finding conf_not_read() {
    return none("not looked at: no program reads it with a library of dat's");
}

} // namespace

Finding look_library_dat2(Facts&) { return look_library("libdat2.so.2"); }
Finding look_library_dat(Facts&) { return look_library("libdat.so.1"); }
Finding look_library_rpma(Facts&) { return look_library("librpma.so.0"); }

Finding look_conf_file(Facts&) {
    unsigned major = 0;
    if (!conf_matters(major)) {
        return conf_not_read();
    }
    const shim::ConfFile file = shim::read_conf_file(major);
    if (!file.unreadable.empty()) {
        const auto& [path, why] = file.unreadable.front();
        return warning(path + " cannot be read, and is taken for empty", why,
                       variable("DAT_OVERRIDE").empty()
                           ? "let it be a file that everybody may read: chmod a+r " + path
                           : "unset DAT_OVERRIDE, or let it name a file that can be read");
    }
    if (!file.problems.empty()) {
        const shim::ConfProblem& first = file.problems.front();
        return warning(file.path + ": " + std::to_string(file.problems.size()) +
                           (file.problems.size() == 1 ? " line is" : " lines are") +
                           " ignored, the first is line " + std::to_string(first.line),
                       "column " + std::to_string(first.column) + ": expected " + first.expected,
                       "correct it: man dat_conf has the fields and an example");
    }
    return file.path.empty()
               ? none("there is none, and none is needed: interfaces go by their names")
               : good(file.path + ", entries: " + std::to_string(file.entries.size()));
}

Finding look_conf_devices(Facts& facts) {
    unsigned major = 0;
    if (!conf_matters(major)) {
        return conf_not_read();
    }
    const shim::ConfFile file = shim::read_conf_file(major);
    std::vector<std::string> without;
    for (const shim::ConfEntry& entry : file.entries) {
        std::istringstream words(entry.parameters);
        std::string device;
        std::string port;
        words >> device >> port;
        const auto is_it = [&](const Offer& offer) {
            return offer.domain == device || offer.address == device ||
                   offer.domain == device + "/" + (port == "0" || port.empty() ? "1" : port);
        };
        std::string why;
        const bool there = device.empty() || std::ranges::any_of(facts.offers(), is_it) ||
                           std::ranges::any_of(
                               ofi::resolve({device.c_str(), nullptr, AF_UNSPEC, false, true}, why),
                               [&](const ofi::SocketAddress& address) {
                                   return ofi::find_local(facts.addresses(), address) != nullptr;
                               });
        if (entry.major == major && !there) {
            without.push_back(entry.name + " (" + device + ")");
        }
    }
    if (!without.empty()) {
        std::vector<std::string> domains;
        for (const Offer& offer : facts.offers()) {
            if (std::ranges::find(domains, offer.domain) == domains.end()) {
                domains.push_back(offer.domain);
            }
        }
        const std::size_t count = without.size();
        constexpr std::size_t kNamed = 4;
        without.resize(std::min(count, kNamed));
        return warning(file.path + ": " + std::to_string(count) +
                           (count == 1 ? " entry names" : " entries name") +
                           " what this host has not: " + listed(without) +
                           (count > kNamed ? " ..." : ""),
                       "dat_ia_open() of such a name fails",
                       "take them out, or let them name one of " + listed(domains));
    }
    return file.path.empty() ? none("there is no dat.conf") : good("every entry has one");
}

} // namespace dat::doctor
