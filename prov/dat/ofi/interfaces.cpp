// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See interfaces.h.
#include "ofi/interfaces.h"

#include "ofi/address.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fnmatch.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <memory>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utility>

namespace dat::ofi {
namespace {

struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

// Each line of a file of the kernel; none where it cannot be opened.
template <class Each> void for_each_line(const char* path, Each&& each) {
    const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "re"));
    std::array<char, 512> line; // longer than any of them
    while (file && std::fgets(line.data(), line.size(), file.get())) {
        each(line.data());
    }
}

bool carries(unsigned flags) { return (flags & RTF_UP) != 0 && (flags & RTF_REJECT) == 0; }

// The interfaces of the default routes that are up and reject nothing, of IPv4 and IPv6.
std::vector<std::string> default_routes() {
    static_assert(IFNAMSIZ == 16); // as the formats have it
    std::vector<std::string> names;
    char name[IFNAMSIZ];
    unsigned flags = 0;
    for_each_line("/proc/net/route", [&](const char* line) {
        unsigned destination = 0;
        unsigned mask = 0;
        if (std::sscanf(line, "%15s %8x %*s %x %*s %*s %*s %8x", name, &destination, &flags,
                        &mask) == 4 &&
            destination == 0 && mask == 0 && carries(flags)) {
            names.emplace_back(name);
        }
    });
    for_each_line("/proc/net/ipv6_route", [&](const char* line) {
        char destination[33];
        unsigned length = 0;
        if (std::sscanf(line, "%32s %2x %*s %*s %*s %*s %*s %*s %x %15s", destination, &length,
                        &flags, name) == 4 &&
            length == 0 && destination == std::string(32, '0') && carries(flags)) {
            names.emplace_back(name);
        }
    });
    return names;
}

bool ask(int fd, const std::string& name, void* command) {
    ifreq request{};
    if (name.size() >= sizeof request.ifr_name) {
        return false;
    }
    std::memcpy(request.ifr_name, name.c_str(), name.size());
    request.ifr_data = static_cast<char*>(command);
    return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

// By its driver; empty: not told, as by a tunnel.
std::string driver_of(int fd, const std::string& name) {
    ethtool_drvinfo info{};
    info.cmd = ETHTOOL_GDRVINFO;
    return ask(fd, name, &info) ? std::string(info.driver, strnlen(info.driver, sizeof info.driver))
                                : std::string();
}

std::uint32_t speed_of(int fd, const std::string& name) {
    ethtool_cmd command{};
    command.cmd = ETHTOOL_GSET;
    if (!ask(fd, name, &command)) {
        return 0;
    }
    const std::uint32_t speed = ethtool_cmd_speed(&command);
    return speed == static_cast<std::uint32_t>(SPEED_UNKNOWN) ? 0 : speed;
}

bool is_inside(std::string_view driver, unsigned flags) {
    static constexpr std::string_view kDrivers[] = {
        "bridge", "openvswitch", "veth", "tun", "vxlan", "geneve", "wireguard", "dummy", "ipip",
    };
    return (flags & IFF_POINTOPOINT) != 0 ||
           std::ranges::find(kDrivers, driver) != std::end(kDrivers);
}

} // namespace

InterfaceSurvey::InterfaceSurvey()
    : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), ways_out_(default_routes()) {}

InterfaceTraits InterfaceSurvey::traits(const std::string& name, unsigned flags) const {
    InterfaceTraits traits;
    if (std::ranges::find(ways_out_, name) != ways_out_.end()) {
        traits.kind = InterfaceClass::way_out;
    } else if (is_inside(driver_of(socket_.fd(), name), flags)) {
        traits.kind = InterfaceClass::inside;
    }
    traits.speed = speed_of(socket_.fd(), name);
    return traits;
}

InterfaceFilter::InterfaceFilter(std::string_view text, std::string* bad) : text_(text) {
    bool excluded = false;
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = std::min(rest.find(','), rest.size());
        std::string_view word = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (word.starts_with('^')) {
            excluded = true;
            word.remove_prefix(1);
        }
        if (word.empty()) {
            continue;
        }
        Part part;
        part.text = word;
        part.excluded = excluded;
        if (const std::size_t slash = word.find('/'); slash != std::string_view::npos) {
            const std::string host(word.substr(0, slash));
            const std::string_view length = word.substr(slash + 1);
            sockaddr_in v4{};
            sockaddr_in6 v6{};
            v4.sin_family = AF_INET;
            v6.sin6_family = AF_INET6;
            unsigned most = 0;
            if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
                part.network = SocketAddress(reinterpret_cast<sockaddr*>(&v4), sizeof v4);
                most = 32;
            } else if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
                part.network = SocketAddress(reinterpret_cast<sockaddr*>(&v6), sizeof v6);
                most = 128;
            }
            const auto [last, error] =
                std::from_chars(length.data(), length.data() + length.size(), part.prefix_length);
            if (most == 0 || error != std::errc() || last != length.data() + length.size() ||
                part.prefix_length > most) {
                part.network = {};
                if (bad && bad->empty()) {
                    *bad = part.text;
                }
            }
        }
        parts_.push_back(std::move(part));
    }
}

bool InterfaceFilter::fits(const Part& part, const LocalAddress& local) {
    return part.network.valid() ? same_prefix(part.network, local.address, part.prefix_length)
                                : fnmatch(part.text.c_str(), local.interface.c_str(), 0) == 0;
}

bool InterfaceFilter::allows(const LocalAddress& local) const {
    bool named = parts_.empty() || parts_.front().excluded;
    for (const Part& part : parts_) {
        if (fits(part, local)) {
            if (part.excluded) {
                return false;
            }
            named = true;
        }
    }
    return named;
}

std::string InterfaceFilter::unmatched(const std::vector<LocalAddress>& all) const {
    for (const Part& part : parts_) {
        if (!part.excluded && std::ranges::none_of(all, [&](const LocalAddress& local) {
                return fits(part, local);
            })) {
            return part.text;
        }
    }
    return {};
}

} // namespace dat::ofi
