// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See arrival.h.
#include "links/iwarp/arrival.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "engine/trace.h"
#include "links/shm/local_listener.h"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <span>
#include <sys/epoll.h>
#include <utility>

namespace dat::iwarp {

void Listener::Arrival::start() {
    if (read_all()) {
        return;
    }
    if (const int error = listener_.reactor_.add(socket_.fd(), EPOLLIN, *this); error != 0) {
        DAT_WARN(ep_ctrl, "a connection is refused: epoll: %s", std::strerror(-error));
        return over();
    }
    watched_ = true;
    listener_.reactor_.arm(*this, listener_.settings_.handshake_limit);
}

void Listener::Arrival::detach() {
    listener_.reactor_.disarm(*this);
    if (std::exchange(watched_, false)) {
        listener_.reactor_.remove(socket_.fd(), *this);
    }
}

void Listener::Arrival::drop(const char* why) {
    DAT_INFO(ep_ctrl, "a connection from %s is dropped before its request was whole: %s",
             is_local_ ? "this host" : socket_.peer().text().c_str(), why);
    over();
}

// Reads what is there. True: it is over, one way or the other.
bool Listener::Arrival::read_all() {
    while (read_some()) {
    }
    return !socket_;
}

// False: no more is to be had now. What a peer sends without waiting for the reply is read
// along, so that a request is one read.
bool Listener::Arrival::read_some() {
    const ssize_t n = kernel::recv(socket_.fd(), buffer_.data() + in_,
                                   ahead() + kMpaMaxFrameSize - in_, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (n <= 0) {
        drop(n < 0 ? std::strerror(errno) : "the peer closed it");
        return false;
    }
    in_ += static_cast<std::size_t>(n);
    if (is_local_ && !proposal_) {
        if (in_ < ahead()) {
            return true;
        }
        if (!has_proposal()) {
            drop("what came proposes no connection to this port");
            return false;
        }
    }
    const auto request = std::span(buffer_).first(in_).subspan(ahead());
    const MpaParse parse = parse_mpa_frame(MpaKind::request, request);
    if (parse.status == MpaStatus::complete) {
        announce(parse);
    } else if (parse.status == MpaStatus::error) {
        refuse(parse);
    }
    return parse.status == MpaStatus::need_more;
}

// The ends that it names are those of a connection to this port, from an address of this host, and
// not from a port that is root's.
bool Listener::Arrival::has_proposal() {
    proposal_ = shm::parse<shm::Proposal>(std::span(buffer_).first(ahead()));
    if (!proposal_) {
        return false;
    }
    const SocketAddress& name = listener_.name_;
    local_ = shm::address_of(proposal_->ends.responder, name.family());
    peer_ = shm::address_of(proposal_->ends.initiator, name.family());
    if (!local_.valid() || local_.port() != name.port() ||
        (!name.wildcard() && !local_.same_host(name))) {
        return false;
    }
    local_ = name.wildcard() ? local_ : name;
    return peer_.port() >= IPPORT_RESERVED && net::on_this_host(local_, peer_);
}

Arrived Listener::Arrival::arrived(const MpaParse& parse) {
    const auto early = std::span(buffer_).first(in_).subspan(ahead() + parse.size);
    Arrived arrived;
    arrived.frame = parse.frame;
    arrived.early = {early.begin(), early.end()};
    arrived.at_ns = engine::trace_now_ns();
    arrived.proposal = proposal_;
    if (is_local_) {
        arrived.local = local_;
        arrived.peer = peer_;
    } else {
        const SocketAddress& name = listener_.name_;
        arrived.local = name.wildcard() ? socket_.local() : name;
        arrived.peer = socket_.peer();
    }
    arrived.listener = listener_.name_for(arrived);
    arrived.socket = take_socket();
    return arrived;
}

void Listener::Arrival::announce(const MpaParse& parse) {
    std::unique_ptr<ConnRequest> request;
    if (!base::attempt([&] {
            request = std::make_unique<ConnRequest>(arrived(parse), listener_.settings_.keepalive);
        })) {
        DAT_WARN(ep_ctrl, "a connection request is refused: out of memory");
        return over();
    }
    listener_.finish(*this);
    listener_.owner_.announce(std::move(request));
    if (!listener_.owner_.wants_more()) {
        listener_.close_ports();
    }
}

void Listener::Arrival::refuse(const MpaParse& parse) {
    DAT_WARN(ep_ctrl, "the MPA request of %s is unusable: %s (%u)",
             is_local_ ? "a process of this host" : socket_.peer().text().c_str(),
             text(parse.error), parse.value);
    if (parse.error == MpaError::markers_demanded) { // it can be told
        send_reject(socket_, parse.frame, {});
    }
    over();
}

Socket Listener::Arrival::take_socket() {
    detach();
    return std::move(socket_);
}

void Listener::Arrival::over() {
    take_socket();
    listener_.finish(*this);
}

} // namespace dat::iwarp
