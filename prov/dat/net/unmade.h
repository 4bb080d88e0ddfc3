// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Says why a connection cannot be made, and what to do about it: both addresses, the interface,
// the cause. One line for each peer and cause at FI_LOG_LEVEL=warn, since programs try again.
#ifndef DAT_NET_UNMADE_H
#define DAT_NET_UNMADE_H

#include "net/socket.h"

#include <chrono>

namespace dat::net {

// For so long nothing is said of a peer that does not answer.
inline constexpr std::chrono::seconds kUnansweredFor{3};

// The attempt is over: `error` as of connect(2). `local` may be invalid, as long as none was
// chosen. Any thread; takes no memory.
void say_unmade(const SocketAddress& local, const SocketAddress& peer, int error);

// The peer has answered nothing for kUnansweredFor, and TCP goes on. Likewise.
void say_unanswered(const Socket& socket, const SocketAddress& peer);

// What `error` of connect(2) means, and what to do; a literal, or the system's words.
const char* cause_unmade(int error);

// fi_listen() on an address that only this host reaches. Likewise.
void say_only_local(const SocketAddress& at);

} // namespace dat::net

#endif
