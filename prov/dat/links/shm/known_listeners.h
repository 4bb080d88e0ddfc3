// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The ports that this domain has connected to and whose owners it shares memory with: each has
// told, by the peering, what its local stream is called, by which the next connection to it needs
// no TCP (proposing.h). Known for as long as the peering lasts. Under the domain's lock.
#ifndef DAT_LINKS_SHM_KNOWN_LISTENERS_H
#define DAT_LINKS_SHM_KNOWN_LISTENERS_H

#include "links/shm/hello.h"
#include "links/shm/local_socket.h"
#include "net/socket.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dat::shm {

class Peering;

class KnownListeners {
  public:
    struct Known {
        net::SocketAddress destination; // that was dialled
        net::SocketAddress local;       // from there
        Name name{};
        Credentials who; // has told the name, and listens
        std::shared_ptr<Peering> peering;
    };

    KnownListeners();
    // Instead of what was known of that destination; where many are known, of another.
    void remember(const net::SocketAddress& destination, const net::SocketAddress& local,
                  const Name& name, const std::shared_ptr<Peering>& peering);
    // `source`: nullptr, or the address to come from, whatever its port. nullptr: it is not known.
    const Known* at(const net::SocketAddress& destination, const net::SocketAddress* source) const;
    void forget(const Name& name);
    void forget(const Peering& peering);

    // Of this side of a connection that has none of TCP, from the range that TCP has for those. It
    // tells connections to one port apart until it comes around. That TCP does not give it to
    // another one meanwhile it does not promise; nor did the port of a connection that has left
    // TCP.
    std::uint16_t next_port();
    std::uint64_t next_cookie() { return next_cookie_++; }

  private:
    static constexpr std::size_t kMost = 64;
    std::vector<Known> known_;
    std::size_t next_ = 0; // to be forgotten for another
    std::uint32_t next_port_;
    std::uint64_t next_cookie_;
};

} // namespace dat::shm

#endif
