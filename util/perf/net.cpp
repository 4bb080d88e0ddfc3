// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See net.h.
#include "net.h"

#include "pair.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace dat::perf {
namespace {

// 0, or why not, as errno has it.
int try_connect(int fd, const addrinfo& there, int patience_s) {
    if (::connect(fd, there.ai_addr, there.ai_addrlen) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS) {
        return errno;
    }
    pollfd waiting{fd, POLLOUT, 0};
    if (::poll(&waiting, 1, patience_s * 1000) != 1) {
        return ETIMEDOUT;
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

std::string host_text(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char host[NI_MAXHOST] = "";
    if (name(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, nullptr, 0,
                      NI_NUMERICHOST) != 0) {
        fail("the address of a socket: %s", std::strerror(errno));
    }
    const std::string text = host;
    const std::string mapped = "::ffff:";
    return text.rfind(mapped, 0) == 0 && text.find('.') != std::string::npos
               ? text.substr(mapped.size())
               : text;
}

} // namespace

Resolved resolve(const std::string& host, const std::string& port, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* found = nullptr;
    const int rc =
        ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
    if (rc != 0) {
        fail("%s, port %s: %s", host.c_str(), port.c_str(), ::gai_strerror(rc));
    }
    return Resolved(found);
}

int listen_on(const std::string& host, const std::string& port) {
    const Resolved all = resolve(host, port, AI_PASSIVE | AI_NUMERICSERV);
    int error = 0;
    for (const int family : {AF_INET6, AF_INET}) {
        for (const addrinfo* own = all.get(); own; own = own->ai_next) {
            if (own->ai_family != family) {
                continue;
            }
            Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
            const int on = 1;
            const int off = 0;
            ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            if (family == AF_INET6) {
                ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
            }
            if (::bind(socket.get(), own->ai_addr, own->ai_addrlen) == 0 &&
                ::listen(socket.get(), SOMAXCONN) == 0) {
                return socket.release();
            }
            error = errno;
        }
    }
    fail("port %s: %s", port.c_str(), std::strerror(error));
}

int connect_to(const std::string& host, const std::string& port, int patience_s) {
    const Resolved all = resolve(host, port);
    int error = 0;
    for (const addrinfo* there = all.get(); there; there = there->ai_next) {
        Fd socket(::socket(there->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        error = socket.get() < 0 ? errno : try_connect(socket.get(), *there, patience_s);
        if (error == 0) {
            const int off = 0;
            const int on = 1;
            ::ioctl(socket.get(), FIONBIO, &off);
            ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return socket.release();
        }
    }
    fail("%s, port %s: %s", host.c_str(), port.c_str(), std::strerror(error));
}

std::uint16_t own_port(int fd) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        fail("getsockname: %s", std::strerror(errno));
    }
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                     : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

std::string own_host(int fd) { return host_text(fd, ::getsockname); }
std::string peer_host(int fd) { return host_text(fd, ::getpeername); }

std::pair<std::string, std::string> host_and_port(const std::string& text,
                                                  const std::string& port) {
    if (!text.empty() && text[0] == '[') {
        const std::size_t end = text.find(']');
        if (end != std::string::npos) {
            const bool more = end + 1 < text.size() && text[end + 1] == ':';
            return {text.substr(1, end - 1), more ? text.substr(end + 2) : port};
        }
    }
    const std::size_t colon = text.find(':');
    return colon == std::string::npos || colon != text.rfind(':')
               ? std::pair(text, port)
               : std::pair(text.substr(0, colon), text.substr(colon + 1));
}

} // namespace dat::perf
