// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// RDMA devices, as the kernel shows them in /sys.
#include "base/log.h"
#include "doctor/facts.h"
#include "doctor/looks.h"
#include "links/verbs/device.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace dat::doctor {
namespace {

namespace fs = std::filesystem;

constexpr char kClass[] = "/sys/class/infiniband";

struct Port {
    std::string name; // "mlx5_0/1"
    std::string state;
    std::string kind;      // "InfiniBand", "Ethernet"
    std::string interface; // "eth0"; may be empty
    std::size_t gids = 0;  // that are not 0
};

std::string first_line(const fs::path& file) {
    const std::vector<std::string> lines = lines_of_file(file);
    return lines.empty() ? "" : lines.front();
}

std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> entries;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
        entries.push_back(entry.path());
    }
    std::ranges::sort(entries);
    return entries;
}

std::vector<Port> ports() {
    std::vector<Port> all;
    for (const fs::path& device : entries_of(kClass)) {
        for (const fs::path& folder : entries_of(device / "ports")) {
            Port port;
            port.name = device.filename().string() + "/" + folder.filename().string();
            port.state = first_line(folder / "state");
            port.kind = first_line(folder / "link_layer");
            port.interface = first_line(folder / "gid_attrs" / "ndevs" / "0");
            for (const fs::path& gid : entries_of(folder / "gids")) {
                const std::string text = first_line(gid);
                port.gids += text.find_first_not_of("0:") != std::string::npos ? 1 : 0;
            }
            all.push_back(port);
        }
    }
    return all;
}

Finding no_device() { return none("this host has no RDMA device"); }

// What the provider itself says of devices that cannot be used; empty: they can be.
std::string unusable() {
    return in_child(10s, [](const Report& report) {
        static const Report* to;
        to = &report;
        base::set_log_sink({[](base::LogLevel, base::LogArea) { return true; },
                            [](base::LogLevel, base::LogArea, const char*, int, const char* line) {
                                to->say("line", line);
                            }});
        verbs::log_unusable();
    })["line"];
}

Finding by_line(const std::string& line) {
    const std::size_t mend = line.find("; as root: ");
    return failure(line.substr(0, mend), "",
                   mend == std::string::npos ? "see man fi_dat, RDMA DEVICES"
                                             : line.substr(mend + 2));
}

// That of the modules; the other of permission.
bool is_missing(const std::string& line) { return line.find("there is no ") != std::string::npos; }

} // namespace

Finding look_rdma_modules(Facts&) {
    if (!verbs::host_has_devices()) {
        return no_device();
    }
    const std::string line = unusable();
    if (!line.empty() && is_missing(line)) {
        return by_line(line);
    }
    return good("the device files are there");
}

Finding look_rdma_permission(Facts&) {
    if (!verbs::host_has_devices()) {
        return no_device();
    }
    const std::string line = unusable();
    if (!line.empty() && is_missing(line)) {
        return none("not looked at: a module is missing");
    }
    return line.empty() ? good("it may") : by_line(line);
}

Finding look_rdma_links(Facts&) {
    if (!verbs::host_has_devices()) {
        return no_device();
    }
    std::vector<std::string> fine;
    std::vector<std::string> down;
    std::string interface;
    bool infiniband = false;
    for (const Port& port : ports()) {
        const std::string text = port.name + " " + port.state +
                                 (port.kind.empty() ? "" : " (" + port.kind + ")") +
                                 (port.interface.empty() ? "" : " on " + port.interface);
        const bool active = port.state.find("ACTIVE") != std::string::npos;
        (active ? fine : down).push_back(text);
        if (!active) {
            interface = port.interface.empty() ? interface : port.interface;
            infiniband = infiniband || port.kind == "InfiniBand";
        }
    }
    if (!down.empty()) {
        return warning(listed(down), "a port that is not ACTIVE carries nothing",
                       "see to the cable" +
                           std::string(infiniband ? " and the subnet manager (opensm)" : "") +
                           ", and, as root: ip link set " +
                           (interface.empty() ? "INTERFACE" : interface) + " up");
    }
    return good(listed(fine));
}

Finding look_rdma_gids(Facts&) {
    if (!verbs::host_has_devices()) {
        return no_device();
    }
    std::vector<std::string> without;
    std::string interface;
    std::size_t count = 0;
    for (const Port& port : ports()) {
        count += port.gids;
        if (port.gids == 0) {
            without.push_back(port.name);
            interface = port.interface;
        }
    }
    if (!without.empty()) {
        return warning(listed(without) + " has no GID",
                       "without one nothing is addressed to it, and rdma_cm does not find it",
                       "give its network interface an address, and let it be up: as root: ip addr "
                       "add ADDRESS/PREFIX dev " +
                           (interface.empty() ? "INTERFACE" : interface));
    }
    return good(std::to_string(count) + (count == 1 ? " GID is" : " GIDs are") + " there");
}

} // namespace dat::doctor
