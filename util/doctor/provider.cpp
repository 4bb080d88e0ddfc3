// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// libfabric, the file of the provider, and the variables.
#include "config.h"
#include "doctor/facts.h"
#include "doctor/looks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <rdma/fabric.h>
#include <strings.h>
#include <unistd.h>

namespace dat::doctor {
namespace {

constexpr std::uint32_t kOldest = FI_VERSION(1, 17);

std::string version_text(std::uint32_t version) {
    return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

// The newest version node that the loaded libfabric has, "FABRIC_1.6": what a provider, or a
// program, may be linked against.
std::string newest_abi(const std::string& file) {
    const std::unique_ptr<void, int (*)(void*)> library(
        dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD), dlclose);
    constexpr int kMore = 32; // than there will be
    std::string newest = "none";
    for (int minor = 0; library && minor < kMore; ++minor) {
        const std::string node = "FABRIC_1." + std::to_string(minor);
        dlerror();
        dlvsym(library.get(), node.c_str(), node.c_str()); // its value is 0
        newest = dlerror() ? newest : node;
    }
    return newest;
}

std::string set_path(const std::string& folder) {
    return "export FI_PROVIDER_PATH=" +
           (folder.empty() ? "DIR, the folder in which `make install` has put libdat-fi.so"
                           : folder);
}

// Why nothing more of the provider can be told.
Finding unasked(const char* what) { return none(std::string("not looked at: ") + what); }

} // namespace

Finding look_libfabric(Facts& facts) {
    const std::uint32_t version = fi_version();
    const std::string& file = facts.libfabric_file();
    const std::string found = version_text(version) + " (ABI " + newest_abi(file) + "), " + file;
    if (version < kOldest) {
        return failure(found + " is too old",
                       "libfabric does not load a provider that is of a later version than itself",
                       "install libfabric " + version_text(kOldest) +
                           " or later, or name its folder in LD_LIBRARY_PATH");
    }
    return good(found);
}

Finding look_provider_file(Facts& facts) {
    const ProviderFile& place = facts.provider_file();
    const std::string said = place.by_variable ? "FI_PROVIDER_PATH names " : "libfabric looks in ";
    if (!place.path.empty() && place.readable) {
        return good(place.path);
    }
    if (place.is_file) {
        const std::string folder = place.folder.substr(0, place.folder.rfind('/'));
        return failure("FI_PROVIDER_PATH names the file " + place.folder,
                       "it has to name the folder of that file", set_path(folder));
    }
    if (place.exists && !place.readable) {
        return failure(said + place.folder + ", which this user cannot read",
                       "libfabric passes over a folder that it cannot read, without a word",
                       "as its owner: chmod a+rx " + place.folder);
    }
    return failure(
        said + place.folder +
            (place.exists ? ", which has no libdat-fi.so in it" : ", which is not there"),
        "libfabric says nothing of that; fi_info shows -61", set_path(place.known_elsewhere));
}

Finding look_provider_loads(Facts& facts) {
    const ProviderFile& place = facts.provider_file();
    if (place.path.empty()) {
        return unasked("there is no file");
    }
    if (access(place.path.c_str(), R_OK) != 0) {
        return failure(place.path + " cannot be read by this user", std::strerror(errno),
                       "as its owner: chmod a+r " + place.path);
    }
    const Outcome tried = in_child(10s, [&](const Report& report) {
        void* const module = dlopen(place.path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!module) {
            report.say("error", dlerror());
        } else if (!dlsym(module, "fi_prov_ini")) {
            report.say("error", "it has no function fi_prov_ini");
        }
    });
    const std::string why = tried.all_right() ? tried["error"] : tried.trouble;
    if (!why.empty()) {
        return failure(place.path + " cannot be loaded", why,
                       "install it again, built against the libfabric that is loaded here (" +
                           facts.libfabric_file() + ")");
    }
    return good("it has all that it needs");
}

Finding look_provider_chosen(Facts&) {
    const std::string list = variable("FI_PROVIDER");
    if (list.empty()) {
        return good("FI_PROVIDER is not set: every provider may be used");
    }
    const bool excluded = list.starts_with('^');
    bool named = false;
    std::string_view rest = std::string_view(list).substr(excluded ? 1 : 0);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find_first_of(",;"), rest.size());
        named = named || (end == 3 && strncasecmp(rest.data(), "dat", end) == 0);
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (named == excluded) {
        return failure("FI_PROVIDER=" + list + " keeps programs from dat",
                       "it is the list of the providers that libfabric lets programs have, or "
                       "behind a ^ of those that it does not",
                       "unset FI_PROVIDER, or export FI_PROVIDER=dat");
    }
    return good("FI_PROVIDER=" + list);
}

Finding look_provider_offers(Facts& facts) {
    if (facts.provider_file().path.empty()) {
        return unasked("there is no file");
    }
    const Outcome& asked = facts.getinfo();
    if (!facts.offers().empty()) {
        return good("fi_getinfo() lists " + std::to_string(facts.offers().size()) +
                    (facts.offers().size() == 1 ? " entry" : " entries"));
    }
    if (look_provider_chosen(facts).status != Status::ok ||
        look_provider_loads(facts).status != Status::ok ||
        look_libfabric(facts).status != Status::ok) {
        return unasked("see above");
    }
    constexpr std::string_view kNothing = "fi_getinfo() finds nothing: ";
    std::string why = asked.line_with(kNothing);
    why = why.empty() ? asked.trouble : why.substr(why.find(kNothing) + kNothing.size());
    if (const std::string unfit = asked.line_with("FI_DAT_IFACE="); !unfit.empty()) {
        why = unfit;
    }
    std::string mend = "FI_LOG_LEVEL=info fi_info -p dat -t FI_EP_MSG shows more";
    std::vector<std::string> names;
    for (const ofi::LocalAddress& local : facts.addresses()) {
        if (std::ranges::find(names, local.interface) == names.end()) {
            names.push_back(local.interface);
        }
    }
    if (names.empty()) {
        mend = "ip link set lo up, and give an interface an address";
    } else if (why.find("FI_DAT_IFACE") != std::string::npos) {
        mend = "unset FI_DAT_IFACE, or name in it some of " + listed(names);
    } else if (why.find("FI_DAT_TRANSPORT") != std::string::npos) {
        mend = "unset FI_DAT_TRANSPORT";
    }
    return failure("fi_getinfo() answers " +
                       (asked["error"].empty() ? "without an entry of dat" : asked["error"]),
                   why, mend);
}

Finding look_provider_version(Facts& facts) {
    if (facts.offers().empty()) {
        return unasked("nothing is offered");
    }
    const std::string own =
        std::to_string(DAT_VERSION_MAJOR) + "." + std::to_string(DAT_VERSION_MINOR);
    const std::string& theirs = facts.offers().front().version;
    if (theirs != own) {
        return warning("the provider is of version " + theirs + ", this command of " + own,
                       "two installations are mixed: " + facts.provider_file().path,
                       "install both from one build, or name the other folder in "
                       "FI_PROVIDER_PATH");
    }
    return good(own);
}

// --- variables ----------------------------------------------------------------

namespace {

// What the provider's own lines say; those for which `wanted` is in it, first parts and last ones.
std::vector<std::string> lines_with(Facts& facts, std::string_view wanted) {
    std::vector<std::string> lines;
    for (const auto& [key, value] : facts.variables().facts) {
        if (key == "line" && value.find(wanted) != std::string::npos) {
            lines.push_back(value);
        }
    }
    return lines;
}

// The variables FI_DAT_* that are set.
std::vector<std::string> variables_set() {
    std::vector<std::string> names;
    for (char** each = environ; each && *each; ++each) {
        if (const std::string_view entry(*each); entry.starts_with("FI_DAT_")) {
            names.emplace_back(entry);
        }
    }
    std::ranges::sort(names);
    return names;
}

void add(std::string& text, const std::string& more) { text += (text.empty() ? "" : "; ") + more; }

} // namespace

Finding look_variables_known(Facts& facts) {
    constexpr std::string_view kNearest = "the nearest is ";
    std::string finding;
    std::string mend;
    for (const std::string& line : lines_with(facts, kNearest)) {
        const std::string name = line.substr(0, line.find(' '));
        const std::string nearest = line.substr(line.find(kNearest) + kNearest.size());
        add(finding, name + " is no variable of the provider, and is ignored");
        add(mend, "unset " + name + ", or, if that is meant, export " + nearest + "=" +
                      variable(name.c_str()));
    }
    if (!finding.empty()) {
        return warning(finding, "fi_info -g FI_DAT lists those that there are", mend);
    }
    const std::vector<std::string> set = variables_set();
    return good(set.empty() ? "none is set" : listed(set));
}

Finding look_variables_valid(Facts& facts) {
    constexpr std::string_view kIgnored = " is ignored: ";
    std::string finding;
    std::string mend;
    for (const std::string& line : lines_with(facts, kIgnored)) {
        const std::size_t at = line.find(kIgnored);
        add(finding, line.substr(0, at) + " is ignored");
        add(mend, line.substr(0, line.find('=')) + ": " + line.substr(at + kIgnored.size()));
    }
    for (const std::string& line : lines_with(facts, " fits nothing: ")) {
        const std::size_t at = line.find(" fits nothing: ");
        add(finding, line.substr(0, at) + " fits nothing");
        add(mend, "FI_DAT_IFACE: " + line.substr(at + std::strlen(" fits nothing: ")));
    }
    if (!finding.empty()) {
        return warning(finding, "the default is taken instead", mend);
    }
    return good("every value can be used");
}

Finding look_variables_agree(Facts& facts) {
    std::string finding;
    std::string mend;
    // `stronger` leaves nothing for `weaker` to decide.
    const auto contradict = [&](const char* stronger, const char* weaker) {
        if (!variable(stronger).empty() && !variable(weaker).empty()) {
            add(finding, std::string(weaker) + "=" + variable(weaker) + " has no effect, since " +
                             stronger + "=" + variable(stronger));
            add(mend, std::string("unset ") + weaker + ", or unset " + stronger);
        }
    };
    if (facts.variables()["shm"] == "0") {
        contradict("FI_DAT_SHM", "FI_DAT_SHM_PEERS");
    }
    if (facts.variables()["soft"] == "1") {
        for (const char* of_devices : {"FI_DAT_ACK_TIMEOUT", "FI_DAT_RETRIES",
                                       "FI_DAT_RESOLVE_TIMEOUT", "FI_DAT_FORK_SAFE"}) {
            contradict("FI_DAT_TRANSPORT", of_devices);
        }
    }
    if (!finding.empty()) {
        return warning(finding, "what the one decides the other would be for", mend);
    }
    return good("none makes another one meaningless");
}

} // namespace dat::doctor
