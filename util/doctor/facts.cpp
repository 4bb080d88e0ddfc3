// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See facts.h.
#include "doctor/facts.h"

#include "base/log.h"
#include "config.h"
#include "doctor/peer.h"
#include "ofi/provider.h"
#include "perf/fabric_info.h"

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <link.h>
#include <netdb.h>
#include <rdma/fi_errno.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dat::doctor {
namespace {

constexpr char kFile[] = "libdat-fi.so";
constexpr auto kLimit = 30s; // of a probe within this host

std::string loaded_file(const char* name) {
    struct Search {
        const char* name;
        std::string path;
    } search{name, {}};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* context) {
            auto& wanted = *static_cast<Search*>(context);
            if (std::string_view(info->dlpi_name).find(wanted.name) != std::string_view::npos) {
                wanted.path = info->dlpi_name;
            }
            return 0;
        },
        &search);
    std::array<char, PATH_MAX> whole{};
    return realpath(search.path.c_str(), whole.data()) ? whole.data() : search.path;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// Folders in which a provider may have been built or installed.
std::string known_folder() {
    std::array<char, PATH_MAX> self{};
    std::vector<std::string> folders = {DAT_PROVIDER_DIR};
    if (readlink("/proc/self/exe", self.data(), self.size() - 1) > 0) {
        folders.push_back(folder_of(self.data()) + "/.libs"); // where it was built
        folders.push_back(folder_of(folder_of(self.data())) + "/lib/libfabric");
    }
    for (const std::string& folder : folders) {
        if (exists(folder + "/" + kFile)) {
            return folder;
        }
    }
    return {};
}

// A folder of FI_PROVIDER_PATH, or, from libfabric 1.21 on behind a `+`, earlier a `@`, a file.
ProviderFile look_in(const std::string& entry) {
    ProviderFile place;
    const bool named = entry.starts_with('@') || entry.starts_with('+');
    const std::string path = named ? entry.substr(1) : entry;
    struct stat status {};
    place.folder = named ? folder_of(path) : path;
    place.exists = stat(path.c_str(), &status) == 0;
    place.is_file = !named && place.exists && !S_ISDIR(status.st_mode);
    place.readable = access(place.folder.c_str(), R_OK | X_OK) == 0;
    const std::string file = named ? path : path + "/" + kFile;
    if (!place.is_file && exists(file)) {
        place.path = file;
    }
    return place;
}

} // namespace

Facts::Facts(Options chosen) : options(std::move(chosen)) {}
Facts::~Facts() = default;

const std::string& Facts::libfabric_file() {
    if (!libfabric_file_) {
        libfabric_file_ = loaded_file("libfabric.so");
    }
    return *libfabric_file_;
}

const ProviderFile& Facts::provider_file() {
    if (provider_file_) {
        return *provider_file_;
    }
    ProviderFile found;
    std::string rest = variable("FI_PROVIDER_PATH");
    const bool by_variable = !rest.empty();
    if (!by_variable) {
        rest = folder_of(libfabric_file()) + "/libfabric";
    }
    for (bool first = true; !rest.empty() && found.path.empty(); first = false) {
        const std::size_t end = std::min(rest.find(':'), rest.size());
        const ProviderFile here = look_in(rest.substr(0, end));
        if (first || !here.path.empty()) {
            found = here;
        }
        rest.erase(0, end + 1);
    }
    found.by_variable = by_variable;
    found.known_elsewhere = known_folder();
    return provider_file_.emplace(std::move(found));
}

const Outcome& Facts::getinfo() {
    if (!getinfo_) {
        getinfo_ = in_child(kLimit, [](const Report& report) {
            log_everything();
            const perf::Info hints(fi_allocinfo());
            hints->ep_attr->type = FI_EP_MSG;
            hints->fabric_attr->prov_name = strdup(ofi::kProviderName);
            hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
                                          FI_MR_PROV_KEY; // so that devices are listed as well
            fi_info* list = nullptr;
            if (const int rc =
                    fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &list)) {
                return report.say("error", std::to_string(rc) + " (" + fi_strerror(-rc) + ")");
            }
            const perf::Info all(list);
            for (const fi_info* info = list; info; info = info->next) {
                if (std::string_view(info->fabric_attr->prov_name) != ofi::kProviderName) {
                    continue;
                }
                const ofi::SocketAddress address(static_cast<const sockaddr*>(info->src_addr),
                                                 info->src_addrlen);
                const std::uint32_t version = info->fabric_attr->prov_version;
                report.say("offer", std::string(info->domain_attr->name) + " " +
                                        host_text(address) + " " +
                                        std::to_string(FI_MAJOR(version)) + "." +
                                        std::to_string(FI_MINOR(version)));
            }
        });
    }
    return *getinfo_;
}

bool Facts::provider_usable() {
    if (!provider_usable_) {
        provider_usable_ = !provider_file().path.empty() && !offers().empty();
    }
    return *provider_usable_;
}

const std::vector<Offer>& Facts::offers() {
    if (!offers_) {
        offers_.emplace();
        for (const auto& [key, value] : getinfo().facts) {
            const std::size_t one = value.find(' ');
            const std::size_t two = value.rfind(' ');
            if (key == "offer") {
                offers_->push_back({value.substr(0, one), value.substr(one + 1, two - one - 1),
                                    value.substr(two + 1)});
            }
        }
    }
    return *offers_;
}

// The code that the provider itself runs when it is loaded.
const Outcome& Facts::variables() {
    if (!variables_) {
        variables_ = in_child(kLimit, [](const Report& report) {
            static const Report* to;
            to = &report;
            base::set_log_sink(
                {[](base::LogLevel level, base::LogArea) { return level == base::LogLevel::warn; },
                 [](base::LogLevel, base::LogArea, const char*, int, const char* line) {
                     to->say("line", line);
                 }});
            ofi::read_variables();
            const ofi::Parameters& now = ofi::parameters();
            report.say("shm", now.settings.shm ? "1" : "0");
            report.say("soft", now.transport == ofi::Transport::soft ? "1" : "0");
        });
    }
    return *variables_;
}

const std::vector<ofi::LocalAddress>& Facts::addresses() {
    if (!addresses_) {
        ofi::local_addresses(addresses_.emplace()); // none where it fails
    }
    return *addresses_;
}

Peer& Facts::peer() {
    if (!peer_) {
        peer_ = std::make_unique<Peer>(*this);
    }
    return *peer_;
}

std::string host_text(const ofi::SocketAddress& address) {
    std::array<char, NI_MAXHOST> text{};
    return address.valid() && getnameinfo(address.get(), address.size(), text.data(), text.size(),
                                          nullptr, 0, NI_NUMERICHOST) == 0
               ? text.data()
               : "";
}

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

std::string listed(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
    }
    return text;
}

std::vector<std::string> lines_of_file(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
    }
    return lines;
}

} // namespace dat::doctor
