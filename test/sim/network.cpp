// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The simulator's connections and timers: making, binding, sending, and
// forgetting them.
#include "sim/world.h"

#include <algorithm>

namespace dat::sim {

using core::State;

Conn& World::new_conn(int initiator) {
    Conn conn;
    conn.id = next_conn_++;
    conn.initiator = initiator;
    conns_.push_back(conn);
    return conns_.back();
}

Conn* World::find(std::uint32_t id) {
    const auto it = std::find_if(conns_.begin(), conns_.end(),
                                 [id](const Conn& conn) { return conn.id == id; });
    return it == conns_.end() ? nullptr : &*it;
}

Conn* World::current(int host) {
    for (Conn& conn : conns_) {
        const Side& side = conn.side[static_cast<std::size_t>(host)];
        if (side.bound && side.attempt == host_(host).ep.attempt()) {
            return &conn;
        }
    }
    return nullptr;
}

void World::bind(int host, Conn& conn) {
    Side& side = conn.side[static_cast<std::size_t>(host)];
    side.bound = true;
    side.attempt = host_(host).ep.attempt();
}

// A new endpoint object has nothing to do with what the old one left behind.
void World::unbind_all(int host) {
    for (Conn& conn : conns_) {
        conn.side[static_cast<std::size_t>(host)].bound = false;
    }
    std::erase_if(timers_, [host](const Timer& timer) { return timer.host == host; });
}

void World::send(Conn& conn, int from, MessageKind kind, std::uint64_t seq) {
    if (conn.lost || !conn.side[static_cast<std::size_t>(from)].open) {
        return;
    }
    // An end is management, too, as long as there is nothing but that.
    const bool management = kind <= MessageKind::withdraw || !host_(from).consumer.established();
    Lane& lane =
        conn.lane[static_cast<std::size_t>(from)][config_.separate_lanes && management ? 0 : 1];
    const std::int64_t before = lane.empty() ? 0 : lane.back().due_us;
    const std::int64_t due = config_.timed ? std::max(before, now_us_ + latency_us_) : 0;
    lane.push_back({kind, seq, due});
}

// How this side of a connection says that it ends it.
MessageKind World::farewell(int host, const Conn& conn) const {
    const bool gives_up = conn.initiator == host && !conn.side[static_cast<std::size_t>(host)].up;
    return gives_up ? MessageKind::withdraw : MessageKind::fin;
}

void World::arm(int host, TimerKind kind, const Conn& conn, std::int64_t after_us) {
    const bool left_out =
        (kind == TimerKind::handshake && config_.fault == Fault::no_handshake_limit) ||
        (kind == TimerKind::rnr && config_.fault == Fault::no_rnr_limit) ||
        (kind == TimerKind::end_grace && config_.fault == Fault::no_end_grace);
    if (!left_out) {
        timers_.push_back({kind, host, conn.id, conn.side[static_cast<std::size_t>(host)].attempt,
                           config_.timed ? now_us_ + after_us : 0});
    }
}

void World::disarm(int host, TimerKind kind, const Conn& conn) {
    if (!config_.keep_timers) {
        std::erase_if(timers_, [&](const Timer& timer) {
            return timer.host == host && timer.kind == kind && timer.conn == conn.id;
        });
    }
}

// The connection vanishes silently; only keepalive can tell (U-65).
void World::lose(Conn& conn) {
    if (conn.lost) {
        return;
    }
    conn.lost = true;
    conn.lane = {};
    for (int host = 0; host < kHosts; ++host) {
        if (conn.side[static_cast<std::size_t>(host)].bound && in_use(conn, host)) {
            arm(host, TimerKind::keepalive, conn, config_.keepalive_us);
        }
    }
}

// The connection breaks so that both ends notice.
void World::cut(Conn& conn) {
    conn.lane = {};
    conn.lost = true;
    for (std::array<Lane, 2>& lanes : conn.lane) {
        lanes[1].push_back({MessageKind::cut, 0, config_.timed ? now_us_ + latency_us_ : 0});
    }
}

// Whether what happens to the connection still matters to `host`.
bool World::in_use(const Conn& conn, int host) const {
    const Host& h = host_(host);
    for (const PendingRequest& pending : h.requests) {
        if (pending.conn == conn.id) {
            return true;
        }
    }
    const Side& side = conn.side[static_cast<std::size_t>(host)];
    const State state = h.ep.state();
    return side.bound && side.attempt == h.ep.attempt() && state != State::unconnected &&
           state < State::disconnected;
}

void World::forget_dead_conns() {
    std::erase_if(conns_, [this](const Conn& conn) {
        return conn.silent() && !in_use(conn, 0) && !in_use(conn, 1);
    });
}

} // namespace dat::sim
