// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See greeting.h.
#include "doctor/greeting.h"

#include "command/command.h"
#include "doctor/facts.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace dat::doctor {

std::string line_of(const Greeting& greeting) {
    return std::string(kHello) + " " + greeting.version + " " + greeting.libfabric + " " +
           greeting.provider + " " + std::to_string(greeting.datagrams);
}

bool parse(const std::string& line, Greeting& greeting) {
    std::istringstream words(line);
    std::string who;
    std::string format;
    words >> who >> format >> greeting.version >> greeting.libfabric >> greeting.provider >>
        greeting.datagrams;
    return who + " " + format == kHello && !words.fail();
}

Greeting own_greeting(Facts& facts) {
    Greeting greeting;
    const std::uint32_t version = fi_version();
    greeting.version = command::version();
    greeting.libfabric =
        std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
    greeting.provider = facts.offers().empty() ? "none" : facts.offers().front().version;
    return greeting;
}

net::SocketAddress unmapped(const net::SocketAddress& address) {
    if (address.family() != AF_INET6) {
        return address;
    }
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
    if (!IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        return address;
    }
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = v6->sin6_port;
    std::memcpy(&v4.sin_addr, v6->sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
    return {reinterpret_cast<const sockaddr*>(&v4), sizeof v4};
}

Datagrams::Datagrams(const net::Socket& tcp) : peer_(unmapped(tcp.peer())) {
    net::SocketAddress own = unmapped(tcp.local());
    own.set_port(0);
    socket_ = net::Socket(::socket(own.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_ || ::bind(socket_.fd(), own.get(), own.size()) != 0) {
        throw std::runtime_error(std::string("a socket for datagrams: ") + std::strerror(errno));
    }
    const int on = 1;
    if (own.family() == AF_INET) {
        const int probe = IP_PMTUDISC_PROBE;
        ::setsockopt(socket_.fd(), IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe);
        ::setsockopt(socket_.fd(), IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    } else {
        const int probe = IPV6_PMTUDISC_PROBE;
        ::setsockopt(socket_.fd(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof probe);
        ::setsockopt(socket_.fd(), IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
    }
}

std::size_t Datagrams::headers() const { return peer_.family() == AF_INET ? 20 + 8 : 40 + 8; }

std::size_t Datagrams::smallest() const { return peer_.family() == AF_INET ? 576 : 1280; }

int Datagrams::send(std::uint16_t port, std::size_t size) const {
    if (size < headers() || size > 65535) {
        return EINVAL;
    }
    const std::vector<char> bytes(size - headers());
    net::SocketAddress to = peer_;
    to.set_port(port);
    return ::sendto(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL, to.get(), to.size()) < 0
               ? errno
               : 0;
}

std::size_t Datagrams::receive() const {
    std::array<char, 65536> bytes;
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const ssize_t n = ::recvfrom(socket_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&from), &length);
    if (n < 0 || !net::SocketAddress(reinterpret_cast<sockaddr*>(&from), length).same_host(peer_)) {
        return 0;
    }
    return static_cast<std::size_t>(n) + headers();
}

} // namespace dat::doctor
