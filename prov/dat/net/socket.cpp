// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See socket.h.
#include "net/socket.h"

#include "engine/kernel.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ifaddrs.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <utility>

namespace dat::net {

SocketAddress::SocketAddress(const sockaddr* address, std::size_t size) {
    if (!address || size < sizeof(sa_family_t)) {
        return;
    }
    const bool v4 = address->sa_family == AF_INET && size >= sizeof(sockaddr_in);
    const bool v6 = address->sa_family == AF_INET6 && size >= sizeof(sockaddr_in6);
    if (v4 || v6) {
        std::memcpy(&storage_, address, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    }
}

SocketAddress SocketAddress::of(int family, const std::array<std::uint8_t, 16>& bytes,
                                std::uint16_t port, std::uint32_t scope) {
    SocketAddress address;
    address.storage_.base.sa_family = static_cast<sa_family_t>(family);
    if (family == AF_INET6) {
        std::memcpy(&address.storage_.v6.sin6_addr, bytes.data(), bytes.size());
        address.storage_.v6.sin6_scope_id = scope;
    } else {
        std::memcpy(&address.storage_.v4.sin_addr, bytes.data() + 12, 4);
    }
    address.set_port(port);
    return address;
}

socklen_t SocketAddress::size() const {
    switch (family()) {
    case AF_INET:
        return sizeof(sockaddr_in);
    case AF_INET6:
        return sizeof(sockaddr_in6);
    default:
        return 0;
    }
}

std::uint16_t SocketAddress::port() const {
    return ntohs(family() == AF_INET6 ? storage_.v6.sin6_port : storage_.v4.sin_port);
}

void SocketAddress::set_port(std::uint16_t port) {
    (family() == AF_INET6 ? storage_.v6.sin6_port : storage_.v4.sin_port) = htons(port);
}

bool SocketAddress::wildcard() const {
    return family() == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&storage_.v6.sin6_addr)
                                : storage_.v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool SocketAddress::loopback() const {
    if (family() == AF_INET6) {
        const in6_addr& a = storage_.v6.sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && a.s6_addr[12] == 127);
    }
    return ntohl(storage_.v4.sin_addr.s_addr) >> 24 == 127;
}

bool SocketAddress::link_local() const {
    return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&storage_.v6.sin6_addr);
}

bool SocketAddress::same_host(const SocketAddress& other) const {
    if (family() != other.family()) {
        return false;
    }
    return family() == AF_INET6
               ? IN6_ARE_ADDR_EQUAL(&storage_.v6.sin6_addr, &other.storage_.v6.sin6_addr)
               : storage_.v4.sin_addr.s_addr == other.storage_.v4.sin_addr.s_addr;
}

std::array<std::uint8_t, 16> SocketAddress::bytes() const {
    std::array<std::uint8_t, 16> out{};
    if (family() == AF_INET6) {
        std::memcpy(out.data(), &storage_.v6.sin6_addr, out.size());
    } else if (family() == AF_INET) {
        out[10] = out[11] = 0xff;
        std::memcpy(out.data() + 12, &storage_.v4.sin_addr, 4);
    }
    return out;
}

bool SocketAddress::multicast_or_broadcast() const {
    if (family() == AF_INET6) {
        return IN6_IS_ADDR_MULTICAST(&storage_.v6.sin6_addr);
    }
    const std::uint32_t a = ntohl(storage_.v4.sin_addr.s_addr);
    return IN_MULTICAST(a) || a == INADDR_BROADCAST;
}

SocketAddress::Text SocketAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> host{};
    Text text;
    switch (family()) {
    case AF_INET:
        inet_ntop(AF_INET, &storage_.v4.sin_addr, host.data(), host.size());
        std::snprintf(text.chars_.data(), text.chars_.size(), "%s:%u", host.data(), port());
        break;
    case AF_INET6:
        inet_ntop(AF_INET6, &storage_.v6.sin6_addr, host.data(), host.size());
        std::snprintf(text.chars_.data(), text.chars_.size(), "[%s]:%u", host.data(), port());
        break;
    default:
        std::snprintf(text.chars_.data(), text.chars_.size(), "no address");
    }
    return text;
}

Socket& Socket::operator=(Socket&& other) noexcept {
    if (this != &other) {
        close();
        fd_ = other.release();
    }
    return *this;
}

int Socket::release() { return std::exchange(fd_, -1); }

void Socket::close() {
    if (fd_ >= 0) {
        kernel::close(release());
    }
}

namespace {

using NameCall = int (*)(int, sockaddr*, socklen_t*);

SocketAddress ask(int fd, NameCall call) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    return call(fd, address, &size) == 0 ? SocketAddress(address, size) : SocketAddress();
}

void set(int fd, int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
}

} // namespace

SocketAddress Socket::local() const { return ask(fd_, ::getsockname); }
SocketAddress Socket::peer() const { return ask(fd_, ::getpeername); }

void Socket::no_delay() const { set(fd_, IPPROTO_TCP, TCP_NODELAY, 1); }

void Socket::keep_alive(std::chrono::seconds seconds) const {
    const int limit = static_cast<int>(seconds.count());
    if (limit <= 0) {
        return;
    }
    // idle + probes * interval is about the limit
    constexpr int kProbes = 3;
    const int interval = std::max(1, limit / (2 * kProbes));
    set(fd_, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, limit - kProbes * interval));
    set(fd_, IPPROTO_TCP, TCP_KEEPINTVL, interval);
    set(fd_, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
    set(fd_, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Socket Socket::open(int family, int& error) {
    Socket made(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    error = made ? 0 : -errno;
    return made;
}

void Socket::share_port() const { set(fd_, SOL_SOCKET, SO_REUSEADDR, 1); }

namespace {

// An interface has it.
bool is_assigned(const SocketAddress& address) {
    ifaddrs* all = nullptr;
    if (getifaddrs(&all) != 0) {
        return false;
    }
    bool found = false;
    for (const ifaddrs* each = all; each && !found; each = each->ifa_next) {
        const sockaddr* at = each->ifa_addr;
        const std::size_t size = !at                         ? 0
                                 : at->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                             : sizeof(sockaddr_in);
        found = SocketAddress(at, size).same_host(address);
    }
    freeifaddrs(all);
    return found;
}

// Mostly tells what is no address of this host by a few short calls; some hosts let
// everything be bound.
bool may_be_bound(SocketAddress address) {
    address.set_port(0);
    const Socket probe(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return probe && ::bind(probe.fd(), address.get(), address.size()) == 0;
}

} // namespace

bool on_this_host(const SocketAddress& local, const SocketAddress& peer) {
    return peer.valid() &&
           (peer.loopback() || peer.same_host(local) || (may_be_bound(peer) && is_assigned(peer)));
}

} // namespace dat::net
