// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See bind_source.h.
#include "net/bind_source.h"

#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>

namespace dat::net {

Socket bind_source(const SocketAddress& source, int& error) {
    Socket socket = Socket::open(source.family(), error);
    if (!socket) {
        return {};
    }
    if (source.family() == AF_INET6) {
        const int on = 1;
        setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    // A port that the kernel chooses with the option may be another socket's, too.
    if (source.port() != 0) {
        socket.share_port();
    }
    if (::bind(socket.fd(), source.get(), source.size()) < 0) {
        error = -errno;
        return {};
    }
    return socket;
}

} // namespace dat::net
