// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What carries the connection of an endpoint: a handshake while it is made, a link while it lasts,
// and what is left of it where it is over for one side alone. When each of them begins and ends is
// decided by the state of the endpoint. Under the domain's lock.
#ifndef DAT_ENGINE_CONNECTION_H
#define DAT_ENGINE_CONNECTION_H

#include "core/completion.h"
#include "engine/half_closed.h"
#include "engine/link.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace dat::engine {

class Domain;

// What the program decides of later connections.
struct ConnectionOptions {
    // RDMA reads that one carries at once (RDR-1).
    struct Reads {
        std::uint16_t in = 16;  // of the peer
        std::uint16_t out = 16; // of this side
    };
    Reads reads;
    // How long a destination where nobody listens is tried again.
    std::chrono::microseconds patience{0};
    // The end has two halves: a side that the peer has left does so itself by disconnect(), reset()
    // or free(), and who left first is told of that (EndpointOwner::peer_left()).
    bool await_peer = false;
};

// How an attempt ended, and why.
struct AttemptEnd {
    core::Event event = core::Event::none;
    core::Reason reason = core::Reason::none;
    std::uint32_t terminate_code = 0;
};

class Connection {
  public:
    explicit Connection(Domain& domain) : domain_(domain) {}
    ~Connection(); // after let_go()
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // An attempt has begun.
    void begin(std::unique_ptr<Handshake> handshake) { handshake_ = std::move(handshake); }
    // It ended well.
    void carry(std::unique_ptr<Link> link);
    Link* link() { return link_.get(); }
    const Link* link() const { return link_.get(); }
    // A receive was posted, which a message, or the handshake, waits for.
    void receive_posted();

    // Nothing of the attempt reaches the endpoint any more, and nobody holds a buffer of the
    // application.
    void let_go(Parting parting);
    // The same at the end of an attempt; where the peer is awaited something may be left. True: the
    // peer has left as well, for all that can be known.
    [[nodiscard]] bool end(core::Reason reason, Parting parting, bool await_peer);

    // This side leaves what the peer has left before.
    void leave();
    // Nothing is left of the last connection.
    void forget() { half_closed_.reset(); }
    // What was left is its caller's, since the peer has left.
    std::unique_ptr<HalfClosed> take_left() { return std::move(half_closed_); }

  private:
    Domain& domain_;
    std::unique_ptr<Handshake> handshake_;
    std::unique_ptr<Link> link_;
    std::unique_ptr<HalfClosed> half_closed_; // of the last connection
};

} // namespace dat::engine

#endif
