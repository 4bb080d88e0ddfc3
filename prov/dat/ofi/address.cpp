// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See address.h.
#include "ofi/address.h"

#include "engine/kernel.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <span>
#include <tuple>

namespace dat::ofi {
namespace {

// The bytes of an address without its port.
std::span<const std::uint8_t> host_bytes(const sockaddr* address) {
    if (address->sa_family == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
        return {reinterpret_cast<const std::uint8_t*>(&v4->sin_addr), sizeof v4->sin_addr};
    }
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    return {v6->sin6_addr.s6_addr, sizeof v6->sin6_addr};
}

bool same_host(const SocketAddress& a, const SocketAddress& b) {
    return a.family() == b.family() && std::ranges::equal(host_bytes(a.get()), host_bytes(b.get()));
}

unsigned bits_set(std::span<const std::uint8_t> mask) {
    unsigned bits = 0;
    for (const std::uint8_t byte : mask) {
        bits += static_cast<unsigned>(std::popcount(byte));
    }
    return bits;
}

std::string subnet_of(const sockaddr* address, unsigned length) {
    std::array<std::uint8_t, 16> network{};
    const auto bytes = host_bytes(address);
    for (std::size_t i = 0; i < bytes.size() && i * 8 < length; ++i) {
        const unsigned bits = std::min(8U, length - static_cast<unsigned>(i) * 8);
        network[i] = static_cast<std::uint8_t>(bytes[i] & (0xffU << (8 - bits)));
    }
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(address->sa_family, network.data(), text.data(), text.size());
    return std::string(text.data()) + "/" + std::to_string(length);
}

bool usable(const ifaddrs& entry) {
    return (entry.ifa_flags & IFF_UP) != 0 && entry.ifa_addr && entry.ifa_netmask &&
           (entry.ifa_addr->sa_family == AF_INET || entry.ifa_addr->sa_family == AF_INET6);
}

LocalAddress describe(const ifaddrs& entry, const InterfaceSurvey& survey) {
    const sockaddr* address = entry.ifa_addr;
    const std::size_t size =
        address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    // The mask of some interfaces carries no family of its own.
    sockaddr_in6 mask{};
    std::memcpy(&mask, entry.ifa_netmask, size);
    mask.sin6_family = address->sa_family;
    LocalAddress local;
    local.address = SocketAddress(address, size);
    local.interface = entry.ifa_name;
    local.prefix_length = bits_set(host_bytes(reinterpret_cast<const sockaddr*>(&mask)));
    local.subnet = subnet_of(address, local.prefix_length);
    local.running = (entry.ifa_flags & IFF_RUNNING) != 0;
    local.traits = survey.traits(local.interface, entry.ifa_flags);
    return local;
}

// Of two, the one whose rank is less comes first.
auto rank(const LocalAddress& local) {
    return std::tuple(local.address.loopback(), local.address.link_local(), !local.running,
                      local.traits.kind, local.address.family() == AF_INET6,
                      UINT32_MAX - local.traits.speed);
}

} // namespace

bool same_prefix(const SocketAddress& a, const SocketAddress& b, unsigned length) {
    if (a.family() != b.family()) {
        return false;
    }
    const auto left = host_bytes(a.get());
    const auto right = host_bytes(b.get());
    for (std::size_t i = 0; i < left.size() && i * 8 < length; ++i) {
        const unsigned bits = std::min(8U, length - static_cast<unsigned>(i) * 8);
        const unsigned mask = 0xffU << (8 - bits) & 0xffU;
        if ((left[i] & mask) != (right[i] & mask)) {
            return false;
        }
    }
    return true;
}

int local_addresses(std::vector<LocalAddress>& all) {
    const kernel::NoCancel within;
    all.clear();
    ifaddrs* raw = nullptr;
    if (getifaddrs(&raw) != 0) {
        return -errno;
    }
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, freeifaddrs);
    const InterfaceSurvey survey;
    for (const ifaddrs* entry = list.get(); entry; entry = entry->ifa_next) {
        if (usable(*entry)) {
            all.push_back(describe(*entry, survey));
        }
    }
    std::ranges::stable_sort(all, {}, rank);
    return 0;
}

const LocalAddress* find_local(const std::vector<LocalAddress>& all, const SocketAddress& address) {
    for (const LocalAddress& local : all) {
        if (same_host(local.address, address)) {
            return &local;
        }
    }
    for (const LocalAddress& local : all) {
        if (local.address.loopback() && same_prefix(local.address, address, local.prefix_length)) {
            return &local;
        }
    }
    return nullptr;
}

std::vector<SocketAddress> resolve(const Resolve& what, std::string& why) {
    const kernel::NoCancel within;
    addrinfo hints{};
    hints.ai_family = what.family;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = (what.passive ? AI_PASSIVE : 0) | (what.numeric ? AI_NUMERICHOST : 0);
    addrinfo* raw = nullptr;
    const int rc = getaddrinfo(what.node, what.service, &hints, &raw);
    if (rc != 0) {
        why = gai_strerror(rc);
        return {};
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(raw, freeaddrinfo);
    std::vector<SocketAddress> found;
    for (const addrinfo* entry = list.get(); entry; entry = entry->ai_next) {
        const SocketAddress address(entry->ai_addr, entry->ai_addrlen);
        const auto same = [&](const SocketAddress& other) { return same_host(other, address); };
        if (address.valid() && std::ranges::none_of(found, same)) {
            found.push_back(address);
        }
    }
    std::ranges::stable_sort(found, {},
                             [](const SocketAddress& a) { return a.family() != AF_INET; });
    if (found.empty()) {
        why = "no IP address";
    }
    return found;
}

SocketAddress source_towards(const SocketAddress& destination) {
    SocketAddress target = destination;
    if (target.port() == 0) {
        target.set_port(9); // any: nothing is sent
    }
    const net::Socket probe(socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!probe || kernel::connect(probe.fd(), target.get(), target.size()) != 0) {
        return {};
    }
    SocketAddress source = probe.local();
    source.set_port(0);
    return source;
}

} // namespace dat::ofi
