// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What two processes that are about to share memory tell of themselves, and find out of each other.
// Once: it holds for all connections that they share memory by.
#ifndef DAT_LINKS_SHM_ACQUAINTANCE_H
#define DAT_LINKS_SHM_ACQUAINTANCE_H

#include "links/shm/hello.h"
#include "links/shm/memory.h"
#include "net/socket.h"

#include <array>

namespace dat::shm {

// Why something is not as it could be, for the log; empty: it is.
using Why = std::array<char, 160>;
void explain(Why& why, const char* format, ...) __attribute__((format(printf, 2, 3), cold));

// What is known of the peer.
struct Acquaintance {
    Image image;        // what its memory is read from
    bool pulls = false; // this side can copy from there
    bool fences = true; // the peer's membarrier(2) does not cover this process
    Why why{};          // it cannot
};

// What this process says.
Self self();
// What is to be known of who said that at the other end of a local socket.
Acquaintance acquaintance(const Self& peer, const net::Socket& socket);

} // namespace dat::shm

#endif
