// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The initiator's side of a connection that is asked for on a local stream in place of TCP, where
// memory is shared already with who listens (known_listeners.h). The stream carries the handshake
// that TCP would: ahead of the request a Proposal, which names the ends that the connection is to
// have and the peering, and behind a reply that offers memory what is Placed. Where that is a place
// in the peering, it is taken, or declined, there; else the offer is taken as one that has come by
// TCP. Under the domain's lock.
//
//   initiator, guest of the peering                      responder, its host
//   Proposing::connect()  -- stream: Proposal, request -->  iwarp::Listener
//                        <-- stream: reply, Placed --     LocalListener::offer()
//   take(), forgo()      -- peering: take, decline -->    Host::joined(), stayed_out()
#ifndef DAT_LINKS_SHM_PROPOSING_H
#define DAT_LINKS_SHM_PROPOSING_H

#include "engine/domain.h"
#include "links/shm/hello.h"
#include "links/shm/local_listener.h"
#include "links/shm/peering.h"
#include "net/socket.h"

#include <cstdint>
#include <memory>

namespace dat::shm {

class Proposing {
  public:
    explicit Proposing(engine::Domain& domain) : domain_(domain) {}
    ~Proposing() { forgo(); }
    Proposing(const Proposing&) = delete;
    Proposing& operator=(const Proposing&) = delete;

    // A stream to who listens there, and in `local` the name of this side. None: there is no such
    // way, and the connection is made by TCP. Does not block.
    net::Socket connect(const net::SocketAddress& destination, const net::SocketAddress* source,
                        net::SocketAddress& local);
    // What the request goes behind; from here on it counts as said.
    Proposal proposal(const TcpEnds& ends);
    // The answer. False: that place cannot be had, as joint.why says, and has been declined.
    bool take(std::uint32_t place, Joint& joint);
    // The answer: no place is given.
    void settle();
    // The answer, if there ever is one, is not waited for. The stream has been closed, or nothing
    // was said on it.
    void forgo();

  private:
    engine::Domain& domain_;
    std::shared_ptr<Peering> peering_; // while its answer is due
    std::uint64_t cookie_ = 0;
    bool said_ = false;
};

} // namespace dat::shm

#endif
