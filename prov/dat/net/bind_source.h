// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a connection goes out from or a listener listens on, before either begins.
#ifndef DAT_NET_BIND_SOURCE_H
#define DAT_NET_BIND_SOURCE_H

#include "net/socket.h"

namespace dat::net {

// A socket bound to that address and port; port 0 picks one, which no other socket gets until
// Socket::share_port(): of two that have one port only one can listen. Without a socket -errno in
// `error` (EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE).
Socket bind_source(const SocketAddress& source, int& error);

} // namespace dat::net

#endif
