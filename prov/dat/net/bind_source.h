// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a connection goes out from, before it is made.
#ifndef DAT_NET_BIND_SOURCE_H
#define DAT_NET_BIND_SOURCE_H

#include "net/socket.h"

namespace dat::net {

// A socket to connect from, bound to that address and port; port 0 picks one. Without
// one -errno in `error` (EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE).
Socket bind_source(const SocketAddress& source, int& error);

} // namespace dat::net

#endif
