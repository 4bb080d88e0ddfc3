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
    // A free port that is shared with other sockets of that option may be one that nobody can
    // listen on. Connections that come from it shall have the option all the same.
    const bool any_port = source.port() == 0;
    socket.share_port(!any_port);
    if (::bind(socket.fd(), source.get(), source.size()) < 0) {
        error = -errno;
        return {};
    }
    socket.share_port(true);
    return socket;
}

} // namespace dat::net
