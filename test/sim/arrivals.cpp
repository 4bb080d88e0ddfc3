// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The receiving half of the simulator's domain layer: what each message does
// where it arrives.
#include "sim/world.h"

namespace dat::sim {

using core::DtoStatus;
using core::ServicePoint;
using core::State;
using core::Stimulus;
using core::Verdict;

namespace {

Side& side_of(Conn& conn, int host) { return conn.side[static_cast<std::size_t>(host)]; }

} // namespace

void World::arrive(Conn& conn, int host, const Message& message) {
    Side& side = side_of(conn, host);
    if (message.kind == MessageKind::request) {
        request_arrives(conn, host);
        return;
    }
    const bool ends = message.kind == MessageKind::withdraw || message.kind >= MessageKind::fin;
    if (host_(host).dead || (!side.bound && !ends)) {
        return;
    }
    switch (message.kind) {
    case MessageKind::accept:
        reply_arrives(conn, host);
        break;
    case MessageKind::reject:
        happen(host, Stimulus::peer_rejected, side.attempt);
        break;
    case MessageKind::refused:
        happen(host, Stimulus::refused, side.attempt);
        break;
    case MessageKind::ready:
        happen(host, Stimulus::handshake_done, side.attempt);
        break;
    case MessageKind::withdraw:
        peer_ends(conn, host, Stimulus::requester_gone);
        break;
    case MessageKind::send:
    case MessageKind::send_long:
        message_arrives(conn, host, message);
        break;
    case MessageKind::ack:
        acknowledged(host, conn, message.seq);
        break;
    case MessageKind::fin:
        peer_ends(conn, host, Stimulus::peer_disconnected);
        break;
    case MessageKind::terminate:
    case MessageKind::cut:
        if (is_current(host, conn)) {
            fail_oldest(host, message.kind == MessageKind::cut ? DtoStatus::transport
                                                               : DtoStatus::remote_responder);
        }
        peer_ends(conn, host, Stimulus::broken);
        break;
    case MessageKind::request:
        break;
    }
}

void World::request_arrives(Conn& conn, int host) {
    if (host_(host).dead) {
        if (!host_(host).silent) {
            send(conn, host, MessageKind::refused);
        }
        return;
    }
    if (!announce(host, conn)) {
        send(conn, host, MessageKind::refused); // SP-3, SP-13
        side_of(conn, host).open = false;
    }
}

// The request becomes visible to the Consumer, where somebody listens.
bool World::announce(int host, Conn& conn) {
    Host& h = host_(host);
    const ServicePoint::Kind kind = h.listener.kind();
    const bool provider_busy =
        kind == ServicePoint::Kind::provider && h.ep.state() < State::destroyed;
    if (provider_busy || !h.listener.arrive()) {
        return false;
    }
    if (kind == ServicePoint::Kind::reserved &&
        happen(host, Stimulus::request_arrived, h.ep.attempt()) != Verdict::go) {
        h.listener.taken();
        return false;
    }
    if (kind == ServicePoint::Kind::provider) {
        create(host, State::tentative_connection_pending); // EP-48
    }
    const bool own = kind != ServicePoint::Kind::consumer;
    if (own) {
        bind(host, conn);
    }
    h.requests.push_back({core::ConnRequest{}, conn.id, own});
    note(host, "request pending");
    return true;
}

void World::reply_arrives(Conn& conn, int host) {
    const State before = host_(host).ep.state();
    happen(host, Stimulus::peer_accepted, side_of(conn, host).attempt);
    if (before == State::active_connection_pending && is_current(host, conn) &&
        host_(host).ep.state() == State::connected && !config_.no_ready) {
        send(conn, host, MessageKind::ready);
    }
}

void World::message_arrives(Conn& conn, int host, const Message& message) {
    if (!is_current(host, conn)) {
        return; // EP-67
    }
    if (host_(host).ep.state() == State::completion_pending &&
        config_.fault != Fault::early_receive) {
        happen(host, Stimulus::handshake_done, side_of(conn, host).attempt); // U-65, EP-75
    }
    if (in_data_state(host) || config_.fault == Fault::early_receive) {
        side_of(conn, host).staged.push_back(message);
        place_staged(host, conn);
    }
}

// Matches what has arrived with what is posted, both in order (DTO-12).
void World::place_staged(int host, Conn& conn) {
    core::Endpoint& ep = host_(host).ep;
    Side& side = side_of(conn, host);
    const bool may = in_data_state(host) || (config_.fault == Fault::early_receive &&
                                             ep.state() == State::completion_pending);
    if (!may || !is_current(host, conn)) {
        return;
    }
    const std::size_t before = side.staged.size();
    while (!side.staged.empty() && !ep.receives().idle()) {
        const Message message = side.staged.front();
        side.staged.erase(side.staged.begin());
        if (message.kind == MessageKind::send_long) { // DTO-9, U-8
            ep.receives().finish(ep.receives().first(), DtoStatus::local_length);
            happen(host, Stimulus::broken, side.attempt);
            return;
        }
        ep.receives().finish(ep.receives().first(), DtoStatus::success);
        reap(host);
        send(conn, host, MessageKind::ack, message.seq);
    }
    if (!side.peer_closed) {
        return;
    }
    if (side.staged.empty()) {
        happen(host, Stimulus::peer_disconnected, side.attempt);
    } else if (side.staged.size() < before) { // U-67: the grace runs while nothing moves
        disarm(host, TimerKind::end_grace, conn);
        arm(host, TimerKind::end_grace, conn, config_.end_grace_us);
    }
}

// U-61: the peer has placed every message up to `seq`.
void World::acknowledged(int host, Conn& conn, std::uint64_t seq) {
    if (!is_current(host, conn) || !in_data_state(host)) {
        return;
    }
    core::Endpoint& ep = host_(host).ep;
    --side_of(conn, host).unacked;
    for (std::uint64_t s = ep.requests().first(); s <= seq && s != ep.requests().next(); ++s) {
        ep.requests().finish(s, DtoStatus::success);
    }
    if (ep.state() == State::disconnect_pending) { // U-9 (a): the drain goes on
        disarm(host, TimerKind::rnr, conn);
        arm(host, TimerKind::rnr, conn, config_.rnr_us);
    }
    settle(host);
}

// The peer's end, or the connection's, arrives. One in order waits for what came
// before it; no longer than the grace (U-67).
void World::peer_ends(Conn& conn, int host, Stimulus stimulus) {
    Side& side = side_of(conn, host);
    side.told_end = true;
    for (PendingRequest& pending : host_(host).requests) {
        if (pending.conn == conn.id && config_.fault != Fault::forget_requester) {
            pending.request.requester_left(); // CR-6
        }
    }
    if (!side.bound) {
        return;
    }
    const bool waits = is_current(host, conn) && in_data_state(host) && !side.staged.empty();
    if (stimulus == Stimulus::peer_disconnected && waits) {
        side.peer_closed = true;
        arm(host, TimerKind::end_grace, conn, config_.end_grace_us);
        return;
    }
    happen(host, stimulus, side.attempt);
}

} // namespace dat::sim
