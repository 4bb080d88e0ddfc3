// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See proposing.h.
#include "links/shm/proposing.h"

#include "engine/kernel.h"
#include "links/shm/local_socket.h"

#include <cerrno>
#include <utility>

namespace dat::shm {
namespace {

// It is of who has told the name of it.
bool is_theirs(const net::Socket& socket, const Credentials& told) {
    Credentials who;
    return credentials_of(socket, who) && who == told;
}

} // namespace

net::Socket Proposing::connect(const net::SocketAddress& destination,
                               const net::SocketAddress* source, net::SocketAddress& local) {
    auto* const local_listener = static_cast<LocalListener*>(domain_.companion().get());
    if (!local_listener) {
        return {};
    }
    KnownListeners& known_listeners = local_listener->known_listeners();
    const KnownListeners::Known* const known = known_listeners.at(destination, source);
    if (!known) {
        return {};
    }
    net::Socket socket = local_socket(SOCK_STREAM);
    sockaddr_un address;
    const socklen_t size = address_of(known->name, address);
    if (!socket) {
        return {};
    }
    if (kernel::connect(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
        if (errno != EAGAIN) { // which is a crowd
            known_listeners.forget(Name(known->name));
        }
        return {};
    }
    if (!is_theirs(socket, known->who)) {
        known_listeners.forget(Name(known->name));
        let_go(std::move(socket), local_listener->reaper());
        return {};
    }
    cookie_ = known_listeners.next_cookie();
    if (!known->peering->propose(cookie_)) {
        return {};
    }
    peering_ = known->peering;
    local = known->local;
    local.set_port(known_listeners.next_port());
    return socket;
}

Proposal Proposing::proposal(const TcpEnds& ends) {
    said_ = true;
    Proposal proposal;
    proposal.ends = ends;
    proposal.peering = peering_->id();
    proposal.cookie = cookie_;
    return proposal;
}

bool Proposing::take(std::uint32_t place, Joint& joint) {
    const std::shared_ptr<Peering> peering = std::exchange(peering_, nullptr);
    joint.channel = peering->take(cookie_, place);
    if (!joint.channel) {
        explain(joint.why, "the place in the memory that its peer gave it cannot be had");
        return false;
    }
    describe(joint, peering->known(), true);
    return true;
}

void Proposing::settle() {
    if (peering_) {
        std::exchange(peering_, nullptr)->settle(cookie_);
    }
}

void Proposing::forgo() {
    if (said_ && peering_) {
        return std::exchange(peering_, nullptr)->forgo(cookie_);
    }
    settle();
}

} // namespace dat::shm
