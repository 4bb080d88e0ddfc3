// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The domain layer between core::RdmPeer and the simulated network, with the faults that can
// be planted.
#include "sim/rdm_world.h"

#include <algorithm>
#include <utility>

namespace dat::sim {
namespace {

// Attempts that may come to nothing beside those that failed: they crossed others.
constexpr std::uint32_t kExtra = 4;

} // namespace

using core::RdmAction;
using core::RdmState;
using core::RdmVerdict;

// --- what a peer answers ---------------------------------------------------

// Does what is to be done, in its order. `request`: the connection whose request it is about.
void RdmWorld::act(int at, int of, const core::RdmPeer::Answer& answer, Conn* request) {
    Peer& p = peer(at, of);
    if (answer.verdict == RdmVerdict::impossible) {
        violate(at, "what cannot come has come");
    }
    if (answer.has(RdmAction::fail)) {
        // A receive for who was dead already needs no misfortune.
        fail(at, of, answer.stimulus == core::RdmStimulus::unconfirmed_dead);
    }
    if (answer.has(RdmAction::stop)) {
        p.timer = Timer::off;
    }
    int side = 0;
    if (answer.has(RdmAction::drop)) {
        if (Conn* const conn = bound(at, of, answer.before, side)) {
            close(*conn, side);
        }
    }
    if (answer.has(RdmAction::refuse_crossed) || answer.has(RdmAction::refuse_stale) ||
        answer.has(RdmAction::refuse_other)) {
        send(*request, 1,
             {.kind = Kind::reject, .reply = core::RdmPeer::reply(host(at).self, answer)});
        request->side[1].open = false;
    }
    if (answer.has(RdmAction::accept)) {
        request->side[1].bound = true;
        request->side[1].number = p.machine.connection();
        send(*request, 1,
             {.kind = Kind::accept, .reply = core::RdmPeer::reply(host(at).self, answer)});
    }
    if (answer.has(RdmAction::leave)) {
        if (Conn* const conn = bound(at, of, answer.before, side)) {
            auto& ours = conn->side[static_cast<std::size_t>(side)];
            if (!std::exchange(ours.fin, true)) {
                conn->lane[static_cast<std::size_t>(side)].push_back(
                    {.kind = Kind::fin, .due_us = now_us_ + latency_us_});
            }
        }
    }
    constexpr std::array<std::pair<RdmAction, Kind>, 3> kFrames{
        {{RdmAction::ask, Kind::ask},
         {RdmAction::agree, Kind::agree},
         {RdmAction::decline, Kind::decline}}};
    for (const auto& [what, kind] : kFrames) {
        Conn* const conn = answer.has(what) ? bound(at, of, p.machine.connection(), side) : nullptr;
        if (conn && !(kind == Kind::ask && config_.fault == RdmFault::just_leave)) {
            send(*conn, side, {.kind = kind});
        }
    }
    if (answer.has(RdmAction::retry) ||
        (answer.has(RdmAction::expect) && config_.fault != RdmFault::no_expect)) {
        p.timer = answer.has(RdmAction::retry) ? Timer::retry : Timer::expect;
        const auto random = static_cast<std::uint32_t>(now_us_ * 7 + at * 1'000'003);
        p.due_us = now_us_ + p.machine.retry_us(config_.limits, random);
    }
    if (answer.has(RdmAction::go)) {
        if (Conn* const conn = bound(at, of, p.machine.connection(), side)) {
            p.told = conn->side[static_cast<std::size_t>(1 - side)].life;
            p.attempts = 0;
            if (answer.stimulus == core::RdmStimulus::established) {
                send(*conn, side, {.kind = Kind::confirm});
            }
        }
        go(at, of);
    }
    if (answer.has(RdmAction::connect)) {
        begin(at, of);
    }
}

void RdmWorld::fail(int at, int of, bool excused) {
    Peer& p = peer(at, of);
    const auto a = static_cast<std::size_t>(at), b = static_cast<std::size_t>(of);
    const bool any = !p.queued.empty() || !p.outstanding.empty() || p.named > 0;
    if (any && !excused && !harmed_[a][b] &&
        refusals_[a][b] + refusals_[b][a] < config_.limits.attempts) {
        violate(at, "an operation fails, but nothing has gone wrong");
    }
    note(at, "fails " + std::to_string(p.queued.size() + p.outstanding.size()) + " operations");
    if (config_.fault == RdmFault::send_again) {
        p.queued.insert(p.queued.begin(), p.outstanding.begin(), p.outstanding.end());
    } else if (config_.fault != RdmFault::lose_queued) {
        p.queued.clear();
    }
    p.outstanding.clear();
    if (config_.fault != RdmFault::keep_receives) {
        p.named = 0;
    }
    p.told = 0;
    p.attempts = 0;
}

// What is queued goes out.
void RdmWorld::go(int at, int of) {
    Peer& p = peer(at, of);
    int side = 0;
    Conn* const conn = bound(at, of, p.machine.connection(), side);
    if (!conn) {
        return;
    }
    for (const Op& op : std::exchange(p.queued, {})) {
        p.outstanding.push_back(op);
        send(*conn, side, {.kind = Kind::data, .number = op.number, .meant = op.meant});
    }
}

void RdmWorld::begin(int at, int of) {
    if (++peer(at, of).attempts > 2 * config_.limits.attempts + kExtra) {
        violate(at, "attempts without end");
    }
    Conn conn;
    conn.id = next_conn_++;
    conn.side[0] = {.host = at,
                    .life = host(at).life,
                    .bound = true,
                    .number = peer(at, of).machine.connection()};
    conn.side[1].host = of;
    const core::RdmHello hello = peer(at, of).machine.begin(host(at).self);
    conns_.push_back(conn);
    send(conns_.back(), 0, {.kind = Kind::request, .hello = hello});
}

// --- connections -----------------------------------------------------------

RdmWorld::Conn* RdmWorld::find(std::uint32_t id) {
    const auto found =
        std::find_if(conns_.begin(), conns_.end(), [=](const Conn& conn) { return conn.id == id; });
    return found == conns_.end() ? nullptr : &*found;
}

// What is the connection `number` of a peer, and which side of it is here.
RdmWorld::Conn* RdmWorld::bound(int at, int of, Connection number, int& side) {
    for (Conn& conn : conns_) {
        for (int s = 0; s < 2; ++s) {
            const Side& here = conn.side[static_cast<std::size_t>(s)];
            const Side& there = conn.side[static_cast<std::size_t>(1 - s)];
            if (here.bound && here.host == at && there.host == of && here.number == number) {
                side = s;
                return &conn;
            }
        }
    }
    return nullptr;
}

void RdmWorld::send(Conn& conn, int side, Message message) {
    const auto s = static_cast<std::size_t>(side);
    if (conn.lost || conn.side[s].fin) {
        return;
    }
    message.due_us = now_us_ + latency_us_;
    if (!conn.lane[s].empty()) {
        message.due_us = std::max(message.due_us, conn.lane[s].back().due_us);
    }
    conn.lane[s].push_back(message);
}

// This end is over: the other one hears of it, behind what was sent before. What that one has
// sent may still come, and is late.
void RdmWorld::close(Conn& conn, int side) {
    auto& ours = conn.side[static_cast<std::size_t>(side)];
    send(conn, side, {.kind = Kind::fin});
    ours.fin = true;
    ours.bound = false;
}

// This end hears that the connection is over.
void RdmWorld::end(Conn& conn, int side) {
    Side& ours = conn.side[static_cast<std::size_t>(side)];
    const int at = ours.host;
    const int of = conn.side[static_cast<std::size_t>(1 - side)].host;
    const Connection number = counted(at, of, ours.number);
    const bool counts = ours.number != 0;
    close(conn, side);
    ours.open = false;
    if (!counts) {
        return; // a request that did not arrive or was rejected, or of a peer that was removed
    }
    Peer& p = peer(at, of);
    const RdmState was = p.machine.state();
    met(at, of, was,
        was == RdmState::connecting ? p.machine.failed(number, limits())
                                    : p.machine.ended(number, !p.queued.empty()));
}

core::RdmPeer::Limits RdmWorld::limits() const {
    core::RdmPeer::Limits out = config_.limits;
    out.attempts = config_.fault == RdmFault::no_limit ? ~0u : out.attempts;
    return out;
}

// The number by which what comes is told to the peer.
core::RdmPeer::Connection RdmWorld::counted(int at, int of, Connection number) {
    return config_.fault == RdmFault::late_counts && number != 0 ? peer(at, of).machine.connection()
                                                                 : number;
}

// What a peer answered to something that met it in state `was`.
void RdmWorld::met(int at, int of, RdmState was, const core::RdmPeer::Answer& answer,
                   Conn* request) {
    if (!answer.late) {
        reached_.push_back({answer.stimulus, was});
        note(at, std::string(core::name(answer.stimulus)) + " in " + std::string(core::name(was)) +
                     ", peer " + std::string(1, static_cast<char>('A' + of)));
    }
    act(at, of, answer, request);
}

void RdmWorld::forget_conns() {
    for (Conn& conn : conns_) {
        for (std::size_t s = 0; s < 2; ++s) {
            if (!conn.side[s].open) {
                conn.lane[1 - s].clear();
            }
        }
        // What nobody has heard of, and nobody will.
        conn.side[1].open = conn.side[1].open && !(conn.lost && conn.side[1].life == 0);
    }
    // Neither end looks at it any more, and its request has arrived or is lost.
    std::erase_if(conns_, [](const Conn& conn) {
        const bool request = !conn.lane[0].empty() && conn.lane[0].front().kind == Kind::request;
        return !conn.side[0].bound && !conn.side[1].bound && !request;
    });
}

// --- what arrives ----------------------------------------------------------

void RdmWorld::arrive(Conn& conn, int to, const Message& message) {
    const Side& side = conn.side[static_cast<std::size_t>(to)];
    if (message.kind == Kind::request) {
        request_arrives(conn, message);
        return;
    }
    if (!side.open) {
        return;
    }
    const int at = side.host;
    const int of = conn.side[static_cast<std::size_t>(1 - to)].host;
    if (message.kind == Kind::fin || message.kind == Kind::refused) {
        end(conn, to);
    } else if (message.kind == Kind::accept || message.kind == Kind::reject) {
        answer_arrives(at, of, conn, message);
    } else if (side.bound || config_.fault == RdmFault::late_counts) {
        frame_arrives(at, of, conn, to, message);
    }
}

void RdmWorld::answer_arrives(int at, int of, Conn& conn, const Message& message) {
    Peer& p = peer(at, of);
    core::RdmReply reply = message.reply;
    if (config_.fault == RdmFault::any_identity && p.machine.known().known()) {
        reply.from = p.machine.known();
    }
    const Connection number = counted(at, of, conn.side[0].number);
    if (number == 0) {
        return;
    }
    if (message.kind == Kind::reject) {
        conn.side[0].open = conn.side[0].bound = false;
    }
    const RdmState was = p.machine.state();
    met(at, of, was, p.machine.answered(number, reply, limits()));
}

void RdmWorld::request_arrives(Conn& conn, const Message& message) {
    const int at = conn.side[1].host, of = conn.side[0].host;
    if (host(at).dead) {
        conn.side[1].open = false;
        if (host(at).silent) {
            conn.lost = true;
            conn.lost_us = now_us_;
        } else {
            send(conn, 1, {.kind = Kind::refused});
        }
        return;
    }
    conn.side[1].life = host(at).life;
    core::RdmHello hello = message.hello;
    core::RdmSelf self = host(at).self;
    Peer& p = peer(at, of);
    const RdmState was = p.machine.state();
    if (config_.fault == RdmFault::any_identity) {
        hello.to = {};
    }
    if (config_.fault == RdmFault::any_number) {
        hello.number += 1000;
    }
    if (was == RdmState::connecting && (!hello.to.known() || hello.to == self.identity)) {
        if (config_.fault == RdmFault::both_accept) {
            hello.to = {};
            self.identity = {~0ull, ~0ull};
        } else if (config_.fault == RdmFault::both_refuse) {
            hello.to = {};
            self.identity = {};
        }
    }
    const auto answer = p.machine.request(self, hello);
    met(at, of, was, answer, &conn);
    if (answer.has(RdmAction::accept) && config_.fault == RdmFault::send_unconfirmed) {
        act(at, of, p.machine.confirmed(p.machine.connection()));
    }
}

void RdmWorld::frame_arrives(int at, int of, Conn& conn, int to, const Message& message) {
    Peer& p = peer(at, of);
    const std::uint32_t id = conn.id;
    const Connection number = counted(at, of, conn.side[static_cast<std::size_t>(to)].number);
    if (p.machine.state() == RdmState::accepting) {
        met(at, of, RdmState::accepting, p.machine.confirmed(number));
    }
    const bool used = !p.queued.empty() || !p.outstanding.empty();
    const RdmState was = p.machine.state();
    switch (message.kind) {
    case Kind::data:
        data_arrives(at, of, *find(id), to, message);
        break;
    case Kind::ack:
        if (p.outstanding.empty() || p.outstanding.front().number != message.number) {
            violate(at, "a completion for nothing, or out of order");
        } else {
            p.outstanding.erase(p.outstanding.begin());
        }
        break;
    case Kind::ask:
        met(at, of, was, p.machine.asked(number, used && config_.fault != RdmFault::agree_always));
        break;
    case Kind::agree:
        met(at, of, was, p.machine.agreed(number));
        break;
    case Kind::decline:
        met(at, of, was, p.machine.declined(number));
        break;
    default:
        break;
    }
}

void RdmWorld::data_arrives(int at, int of, Conn& conn, int to, const Message& message) {
    Peer& p = peer(at, of);
    const std::uint32_t life = conn.side[static_cast<std::size_t>(1 - to)].life;
    if (message.meant != 0 && message.meant != host(at).life) {
        violate(at, "a message that was meant for who was there before");
    }
    if (life < p.heard_life) {
        violate(at, "a message of who was there before, behind one of who is there now");
    } else if (life == p.heard_life && message.number <= p.heard) {
        violate(at, message.number == p.heard ? "a message comes twice"
                                              : "a message comes twice, or out of order");
    }
    p.heard_life = life;
    p.heard = message.number;
    p.named -= p.named > 0 ? 1 : 0;
    send(conn, to, {.kind = Kind::ack, .number = message.number});
}

} // namespace dat::sim
