// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The domain layer of the simulator: what arrives, what times out, and how an
// attempt ends, as prov/dat/core/endpoint.h asks of a domain. The only place
// where faults are planted.
#include "sim/world.h"

namespace dat::sim {

using core::DtoStatus;
using core::Event;
using core::State;
using core::Stimulus;
using core::Verdict;

bool World::is_current(int host, const Conn& conn) const {
    const Side& side = conn.side[static_cast<std::size_t>(host)];
    return side.bound &&
           (side.attempt == host_(host).ep.attempt() || config_.fault == Fault::no_attempt_check);
}

bool World::in_data_state(int host) const {
    const State state = host_(host).ep.state();
    return state == State::connected || state == State::disconnect_pending;
}

// --- happenings ---------------------------------------------------------

Verdict World::happen(int host, Stimulus stimulus, core::Attempt of) {
    core::Endpoint& ep = host_(host).ep;
    const State before = ep.state();
    const core::Attempt attempt = ep.attempt();
    const core::Attempt claimed = config_.fault == Fault::no_attempt_check ? ep.attempt() : of;
    if (claimed == ep.attempt() && before < State::destroyed) {
        reach(stimulus, before);
    }
    const core::Outcome outcome = ep.happen(stimulus, claimed);
    record(host, stimulus, before, claimed, outcome, claimed != attempt);
    after(host, stimulus, before, outcome);
    return outcome.verdict;
}

// Acts on what a call or happening did.
void World::after(int host, Stimulus stimulus, State before, const core::Outcome& outcome) {
    Host& h = host_(host);
    if (h.ep.state() != before) {
        note(host, core::name(stimulus), core::name(h.ep.state()));
    }
    if (outcome.event != Event::none) {
        raise(host, outcome.event);
    }
    if (h.ep.state() == State::ending && before != State::ending) {
        const bool broken = stimulus == Stimulus::broken;
        if (broken) {
            check_broken(host);
        }
        close_link(host, broken);
    }
    if (h.ep.state() == State::disconnect_pending && before == State::connected) {
        if (Conn* conn = current(host)) {
            arm(host, TimerKind::rnr, *conn, config_.rnr_us); // U-9 (a)
        }
    }
    if (h.ep.state() == State::connected && before != State::connected) {
        if (Conn* conn = current(host)) {
            disarm(host, TimerKind::connect, *conn);
            disarm(host, TimerKind::handshake, *conn);
        }
    }
    settle(host);
}

// The attempt is over here: the other side is told, and nothing more is sent.
void World::close_link(int host, bool broken) {
    Conn* conn = current(host);
    if (!conn) {
        return;
    }
    send(*conn, host, broken ? MessageKind::terminate : farewell(host, *conn));
    Side& side = conn->side[static_cast<std::size_t>(host)];
    side.open = false;
    side.peer_closed = false;
    side.staged.clear();
    if (!config_.keep_timers) {
        std::erase_if(timers_,
                      [&](const Timer& t) { return t.host == host && t.conn == conn->id; });
    }
}

// Queues what has completed, and goes on where the state waits for that.
void World::settle(int host) {
    core::Endpoint& ep = host_(host).ep;
    reap(host);
    if (ep.state() == State::disconnect_pending && ep.requests().idle()) {
        Conn* conn = current(host);
        const bool confirmed = !conn || conn->side[static_cast<std::size_t>(host)].unacked == 0;
        if (confirmed || config_.fault == Fault::drain_without_ack) { // U-42
            if (conn) {
                conn->side[static_cast<std::size_t>(host)].drained = true;
            }
            happen(host, Stimulus::drained, ep.attempt());
        }
    } else if (ep.state() == State::ending) {
        if (!config_.slow_flush) {
            ep.flush(core::Flush::all);
        }
        if (config_.fault == Fault::event_before_completions) {
            end_too_early(host);
            return;
        }
        reap(host);
        if (ep.quiet()) {
            happen(host, Stimulus::flushed, ep.attempt()); // EP-68
        }
    }
}

// Fault::event_before_completions: takes what has completed out of the
// streams, but queues it behind the event.
void World::end_too_early(int host) {
    core::Endpoint& ep = host_(host).ep;
    std::vector<core::DtoStream::Done> requests, receives;
    for (core::DtoStream::Done done{}; ep.requests().pop(done);) {
        requests.push_back(done);
    }
    for (core::DtoStream::Done done{}; ep.receives().pop(done);) {
        receives.push_back(done);
    }
    if (ep.quiet()) {
        happen(host, Stimulus::flushed, ep.attempt());
    }
    for (const core::DtoStream::Done& done : requests) {
        complete(host, Direction::request, done);
    }
    for (const core::DtoStream::Done& done : receives) {
        complete(host, Direction::receive, done);
    }
}

// The hardware lets go of one more operation.
void World::flush_one(int host, Direction direction) {
    core::Endpoint& ep = host_(host).ep;
    core::DtoStream& stream = direction == Direction::request ? ep.requests() : ep.receives();
    stream.finish(stream.first(), DtoStatus::flushed);
    settle(host);
}

// An operation in progress gets done although the end is decided (DISC-3). One
// before it does not, so it completes as flushed all the same (DISC-7).
void World::finish_late(int host, Direction direction) {
    core::Endpoint& ep = host_(host).ep;
    core::DtoStream& stream = direction == Direction::request ? ep.requests() : ep.receives();
    stream.finish(stream.next() - 1, DtoStatus::success);
    settle(host);
}

// The oldest request ends the connection with `status`; the end flushes the rest.
void World::fail_oldest(int host, DtoStatus status) {
    core::DtoStream& requests = host_(host).ep.requests();
    if (in_data_state(host) && !requests.idle()) {
        requests.finish(requests.first(), status);
    }
}

// --- what the Consumer gets ---------------------------------------------

void World::reap(int host) {
    core::Endpoint& ep = host_(host).ep;
    for (core::DtoStream::Done done{}; ep.requests().pop(done);) {
        complete(host, Direction::request, done);
    }
    for (core::DtoStream::Done done{}; ep.receives().pop(done);) {
        complete(host, Direction::receive, done);
    }
}

void World::complete(int host, Direction direction, const core::DtoStream::Done& done) {
    if (config_.fault == Fault::lose_completion && direction == Direction::receive &&
        done.status == DtoStatus::flushed) {
        return;
    }
    if (config_.notes) {
        note(host, direction == Direction::request ? "request completes" : "receive completes",
             std::to_string(done.seq) + " status " + std::to_string(static_cast<int>(done.status)));
    }
    record({.kind = Recorded::Kind::completed,
            .host = host,
            .attempt = host_(host).ep.attempt(),
            .direction = direction,
            .seq = done.seq,
            .status = done.status});
    violate(host, host_(host).consumer.completed(direction, done.seq, done.status));
    Conn* conn = done.status == DtoStatus::success ? current(host) : nullptr;
    if (!conn) {
        return;
    }
    Side& side = conn->side[static_cast<std::size_t>(host)];
    if (direction == Direction::receive) {
        ++side.recvs_done;
    } else if (++side.sends_done > conn->side[static_cast<std::size_t>(other(host))].recvs_done &&
               !config_.local_completion) {
        violate(host, "U-61: send completed before the peer placed it");
    }
}

void World::raise(int host, Event event) {
    Host& h = host_(host);
    note(host, "event", core::name(event));
    violate(host, h.consumer.event(event, h.ep.state()));
    check_cause(host, event);
    if (h.ep.state() == State::disconnected) {
        check_delivery(host);
        if (config_.fault == Fault::double_end) {
            violate(host, h.consumer.event(event, h.ep.state()));
        }
    }
}

// DISC-16: what a graceful initiator saw succeed was received here before the
// end is seen here.
void World::check_delivery(int host) {
    const Conn* conn = current(host);
    if (!conn) {
        return;
    }
    const Side& peer = conn->side[static_cast<std::size_t>(other(host))];
    if (peer.drained && peer.sends_done > conn->side[static_cast<std::size_t>(host)].recvs_done) {
        violate(host, "DISC-16: end seen before what a graceful peer had sent");
    }
}

// U-67: a peer that ended in order has not broken the connection, whatever of it waits for
// a receive. The connection itself may break meanwhile, and a receive may be too short.
void World::check_broken(int host) {
    const Conn* conn = current(host);
    const core::DtoStream& receives = host_(host).ep.receives();
    const bool short_receive = !receives.idle() && receives.finished(receives.first());
    if (conn && conn->side[static_cast<std::size_t>(host)].peer_closed && !conn->lost &&
        !short_receive) {
        violate(host, "U-67: BROKEN, but the peer had ended in order");
    }
}

// EP-67: an event has its cause in its own attempt, never in an older one.
void World::check_cause(int host, Event event) {
    Conn* conn = current(host);
    if (!conn) {
        return;
    }
    Side& side = conn->side[static_cast<std::size_t>(host)];
    const Side& peer = conn->side[static_cast<std::size_t>(other(host))];
    if (event == Event::established) {
        side.up = true;
        record({.kind = Recorded::Kind::peer, .host = host, .conn = conn->id});
        if (conn->initiator == host ? !peer.accepted : !peer.up && !config_.no_ready) {
            violate(host, "EP-67: ESTABLISHED, but the peer has not gone along");
        }
    } else if (event == Event::peer_rejected && !peer.rejected) {
        violate(host, "EP-67: PEER_REJECTED, but the peer has not rejected");
    } else if (event == Event::disconnected && !side.asked_end && !side.told_end) {
        violate(host, "EP-67: DISCONNECTED, but neither side ended this connection");
    }
}

// --- timers -------------------------------------------------------------

void World::timer_fires(const Timer& timer) {
    const int host = timer.host;
    Conn* conn = find(timer.conn);
    const bool live = conn && is_current(host, *conn) && in_data_state(host);
    const bool peer_closed = conn && conn->side[static_cast<std::size_t>(host)].peer_closed;
    core::DtoStatus status = DtoStatus::transport;
    switch (timer.kind) {
    case TimerKind::connect:
        happen(host, Stimulus::timer_expired, timer.attempt);
        return;
    case TimerKind::handshake:
        happen(host, Stimulus::handshake_failed, timer.attempt);
        return;
    case TimerKind::rnr: // a drain; the grace is for one whose peer has ended
        if (!live || host_(host).ep.state() != State::disconnect_pending || peer_closed) {
            return;
        }
        status = DtoStatus::receiver_not_ready;
        break;
    case TimerKind::end_grace:
        if (!live || !peer_closed) {
            return;
        }
        if (config_.fault != Fault::end_grace_breaks) {
            happen(host, Stimulus::peer_disconnected, timer.attempt); // U-67
            return;
        }
        status = DtoStatus::receiver_not_ready;
        break;
    case TimerKind::keepalive:
        if (!live || !conn->lost) {
            return;
        }
        break;
    }
    fail_oldest(host, status);
    happen(host, Stimulus::broken, timer.attempt);
}

} // namespace dat::sim
