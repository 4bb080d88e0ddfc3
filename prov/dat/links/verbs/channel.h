// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An event channel of rdma_cm with owners: a request may outlive the listener that it
// came by. And the addresses of its ids.
#ifndef DAT_LINKS_VERBS_CHANNEL_H
#define DAT_LINKS_VERBS_CHANNEL_H

#include "engine/kernel.h"
#include "net/socket.h"

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

namespace dat::verbs {

class Channel {
  public:
    Channel() : channel_(kernel::uncancelled(rdma_create_event_channel)) {}
    ~Channel() {
        if (channel_) {
            kernel::uncancelled(rdma_destroy_event_channel, channel_);
        }
    }
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;
    // nullptr: it could not be made, and errno says why.
    rdma_event_channel* get() const { return channel_; }

  private:
    rdma_event_channel* channel_;
};

// Of rdma_get_local_addr(3) or rdma_get_peer_addr(3), which have room for each family.
inline net::SocketAddress address_of(const sockaddr* address) {
    return {address, sizeof(sockaddr_in6)};
}

} // namespace dat::verbs

#endif
