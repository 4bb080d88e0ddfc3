// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What programs and misfortune can do in a world of reliable datagram endpoints, and what
// must hold.
#include "sim/rdm_world.h"

#include <algorithm>
#include <utility>

namespace dat::sim {

using core::RdmState;

namespace {

constexpr std::int64_t kSilence_us = 10'000'000; // until a lost connection is noticed

constexpr std::array<std::string_view, static_cast<std::size_t>(RdmFault::count_)> kFaults{
    "none",       "both_accept",  "both_refuse", "send_unconfirmed", "any_identity",
    "any_number", "send_again",   "late_counts", "lose_queued",      "keep_receives",
    "just_leave", "agree_always", "no_expect",   "no_limit"};
constexpr std::array<std::string_view, static_cast<std::size_t>(RdmActionKind::count_)> kActions{
    "post",     "receive",    "release",   "forget",  "die",     "die_silent", "restart", "refuse",
    "time_out", "break_conn", "lose_conn", "latency", "deliver", "notice",     "due"};

void use(std::uint32_t& left) {
    if (left != ~0u) {
        --left;
    }
}

} // namespace

std::string_view name(RdmFault fault) { return kFaults[static_cast<std::size_t>(fault)]; }

std::string to_string(const RdmSimAction& action) {
    return std::string(1, static_cast<char>('A' + action.host)) + " " +
           std::string(kActions[static_cast<std::size_t>(action.kind)]) + " " +
           std::to_string(action.arg);
}

bool is_progress(const RdmSimAction& action) { return action.kind >= RdmActionKind::deliver; }

RdmWorld::RdmWorld(const RdmConfig& config)
    : config_(config), misfortunes_(config.misfortunes), restarts_(config.restarts) {
    for (int i = 0; i < config_.hosts; ++i) {
        Host& h = host(i);
        h.self.identity = identity(i);
        h.posts = config_.posts;
        h.receives = config_.receives;
        h.releases = config_.releases;
        h.forgets = config_.forgets;
    }
}

// Lives of a host have identities in order, or against it; no two hosts have the same. The
// last host is the smallest, so that it comes first where requests cross.
core::RdmIdentity RdmWorld::identity(int at) const {
    const std::uint64_t life = host(at).life;
    return {config_.clock_back ? 1'000'000 - life : life,
            life * 100 + static_cast<std::uint64_t>(kRdmHosts - at)};
}

// --- what may come next ----------------------------------------------------

std::vector<RdmSimAction> RdmWorld::enabled_actions() const {
    std::vector<RdmSimAction> out;
    for (int at = 0; at < config_.hosts; ++at) {
        offer_calls(at, out);
    }
    offer_misfortunes(out);
    offer_progress(out);
    return out;
}

void RdmWorld::offer_calls(int at, std::vector<RdmSimAction>& out) const {
    const Host& h = host(at);
    if (h.dead) {
        if (restarts_ > 0) {
            out.push_back({RdmActionKind::restart, at, 0});
        }
        return;
    }
    for (int of = 0; of < config_.hosts; ++of) {
        if (of == at) {
            continue;
        }
        const auto arg = static_cast<std::uint32_t>(of);
        const Peer& p = peer(at, of);
        if (h.posts > 0) {
            out.push_back({RdmActionKind::post, at, arg});
        }
        if (h.receives > 0) {
            out.push_back({RdmActionKind::receive, at, arg});
        }
        if (h.releases > 0 && p.machine.state() == RdmState::connected && p.queued.empty() &&
            p.outstanding.empty()) {
            out.push_back({RdmActionKind::release, at, arg});
        }
        if (h.forgets > 0 && p.machine.state() != RdmState::idle) {
            out.push_back({RdmActionKind::forget, at, arg});
        }
    }
}

void RdmWorld::offer_misfortunes(std::vector<RdmSimAction>& out) const {
    if (misfortunes_ == 0) {
        return;
    }
    for (int at = 0; at < config_.hosts; ++at) {
        if (!host(at).dead) {
            out.push_back({RdmActionKind::die, at, 0});
            out.push_back({RdmActionKind::die_silent, at, 0});
        }
    }
    for (const Conn& conn : conns_) {
        if (!conn.lost && conn.side[0].open) {
            out.push_back({RdmActionKind::break_conn, 0, conn.id});
            out.push_back({RdmActionKind::lose_conn, 0, conn.id});
            if (conn.side[0].bound && peer(conn.side[0].host, conn.side[1].host).machine.state() ==
                                          RdmState::connecting) {
                out.push_back({RdmActionKind::time_out, 0, conn.id});
            }
            if (!conn.lane[0].empty() && conn.lane[0].front().kind == Kind::request) {
                out.push_back({RdmActionKind::refuse, 0, conn.id});
            }
        }
    }
    if (config_.timed) {
        for (const std::uint32_t us : {1u, 10u, 1'000u, 50'000u}) {
            out.push_back({RdmActionKind::latency, 0, us});
        }
    }
}

// The timer of who yields is longer than any attempt lasts.
bool RdmWorld::attempt_in_flight(int from, int to) const {
    return std::any_of(conns_.begin(), conns_.end(), [=](const Conn& conn) {
        return conn.side[0].host == from && conn.side[1].host == to && conn.side[0].bound &&
               conn.side[1].life == 0;
    });
}

void RdmWorld::offer_progress(std::vector<RdmSimAction>& out) const {
    std::int64_t soonest_us = INT64_MAX;
    const std::size_t first = out.size();
    const auto offer = [&](const RdmSimAction& action, std::int64_t due_us) {
        if (config_.timed && due_us < soonest_us) {
            soonest_us = due_us;
            out.resize(first);
        }
        if (!config_.timed || due_us == soonest_us) {
            out.push_back(action);
        }
    };
    for (const Conn& conn : conns_) {
        for (int s = 0; s < 2; ++s) {
            const auto i = static_cast<std::size_t>(s);
            const std::uint32_t arg = conn.id * 2 + static_cast<std::uint32_t>(s);
            if (!conn.lane[i].empty()) {
                offer({RdmActionKind::deliver, conn.side[i].host, arg},
                      conn.lane[i].front().due_us);
            }
            if (conn.lost && conn.side[i].bound) {
                offer({RdmActionKind::notice, conn.side[i].host, arg}, conn.lost_us + kSilence_us);
            }
        }
    }
    for (int at = 0; at < config_.hosts; ++at) {
        for (int of = 0; of < config_.hosts; ++of) {
            const Peer& p = peer(at, of);
            if (p.timer == Timer::off || host(at).dead ||
                (!config_.timed && p.timer == Timer::expect && attempt_in_flight(of, at))) {
                continue;
            }
            offer({RdmActionKind::due, at, static_cast<std::uint32_t>(of)}, p.due_us);
        }
    }
}

// --- what comes ------------------------------------------------------------

void RdmWorld::step(const RdmSimAction& action) {
    notes_.clear();
    reached_.clear();
    if (action.kind < RdmActionKind::die) {
        program(action);
    } else if (!is_progress(action)) {
        misfortune(action);
    } else if (action.kind == RdmActionKind::due) {
        Peer& p = peer(action.host, static_cast<int>(action.arg));
        now_us_ = std::max(now_us_, p.due_us);
        p.timer = Timer::off;
        const RdmState was = p.machine.state();
        met(action.host, static_cast<int>(action.arg), was,
            p.machine.due(!p.queued.empty(), limits()));
    } else {
        Conn& conn = *find(action.arg / 2);
        const int side = static_cast<int>(action.arg % 2);
        const auto i = static_cast<std::size_t>(side);
        if (action.kind == RdmActionKind::notice) {
            now_us_ = std::max(now_us_, conn.lost_us + kSilence_us);
            end(conn, side);
        } else {
            const Message message = conn.lane[i].front();
            conn.lane[i].erase(conn.lane[i].begin());
            now_us_ = std::max(now_us_, message.due_us);
            arrive(conn, 1 - side, message);
        }
    }
    forget_conns();
}

void RdmWorld::program(const RdmSimAction& action) {
    Host& h = host(action.host);
    const int of = static_cast<int>(action.arg);
    Peer& p = peer(action.host, of);
    const RdmState was = p.machine.state();
    switch (action.kind) {
    case RdmActionKind::post: {
        use(h.posts);
        p.queued.push_back({p.next++, p.told});
        const auto answer = p.machine.operation();
        met(action.host, of, was, answer);
        if (answer.verdict == core::RdmVerdict::send) {
            go(action.host, of);
        }
        break;
    }
    case RdmActionKind::receive: {
        use(h.receives);
        const auto answer = p.machine.named_receive();
        met(action.host, of, was, answer);
        p.named += answer.verdict == core::RdmVerdict::go ? 1 : 0;
        break;
    }
    case RdmActionKind::release: {
        use(h.releases);
        const core::RdmPeer::Connection number = p.machine.connection();
        met(action.host, of, was, p.machine.unused(number));
        if (config_.fault == RdmFault::just_leave) {
            act(action.host, of, p.machine.agreed(number));
        }
        break;
    }
    default: { // forget
        use(h.forgets);
        harm(action.host, of);
        met(action.host, of, was, p.machine.remove());
        for (Conn& conn : conns_) { // what still comes is for the old peer
            for (int s = 0; s < 2; ++s) {
                Side& side = conn.side[static_cast<std::size_t>(s)];
                if (side.host == action.host &&
                    conn.side[static_cast<std::size_t>(1 - s)].host == of && side.number != 0) {
                    close(conn, s);
                    side.number = 0;
                }
            }
        }
        p.machine = {};
        p.timer = Timer::off;
        break;
    }
    }
}

void RdmWorld::harm(int a, int b) {
    harmed_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = true;
    harmed_[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)] = true;
}

void RdmWorld::misfortune(const RdmSimAction& action) {
    if (action.kind == RdmActionKind::restart) {
        use(restarts_);
        Host& h = host(action.host);
        h.dead = h.silent = false;
        ++h.life;
        h.self = {identity(action.host), 0};
        h.peers = {};
        note(action.host, "life " + std::to_string(h.life));
        return;
    }
    if (action.kind == RdmActionKind::latency) {
        latency_us_ = action.arg;
        return;
    }
    use(misfortunes_);
    if (action.kind == RdmActionKind::die || action.kind == RdmActionKind::die_silent) {
        die(action.host, action.kind == RdmActionKind::die_silent);
        return;
    }
    Conn& conn = *find(action.arg);
    const int from = conn.side[0].host, to = conn.side[1].host;
    if (action.kind == RdmActionKind::refuse || action.kind == RdmActionKind::time_out) {
        ++refusals_[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
        if (action.kind == RdmActionKind::time_out) {
            end(conn, 0);
            return;
        }
        conn.lane[0].clear();
        conn.side[1].open = false;
        send(conn, 1, {.kind = Kind::refused});
        return;
    }
    harm(from, to);
    for (std::size_t s = 0; s < 2; ++s) {
        conn.lane[s].clear();
        conn.side[s].fin = true;
    }
    if (action.kind == RdmActionKind::lose_conn) {
        conn.lost = true;
        conn.lost_us = now_us_;
        return;
    }
    conn.lane[0].push_back({.kind = Kind::fin, .due_us = now_us_});
    conn.lane[1].push_back({.kind = Kind::fin, .due_us = now_us_});
}

void RdmWorld::die(int at, bool silent) {
    Host& h = host(at);
    h.dead = true;
    h.silent = silent;
    for (int other = 0; other < config_.hosts; ++other) {
        harm(at, other);
    }
    for (Conn& conn : conns_) {
        for (int s = 0; s < 2; ++s) {
            const auto i = static_cast<std::size_t>(s);
            Side& side = conn.side[i];
            if (side.host != at || (s == 1 && side.life == 0)) {
                continue;
            }
            if (silent) {
                side.open = side.bound = false;
                side.fin = true;
                conn.lane[0].clear();
                conn.lane[1].clear();
                conn.lost = true;
                conn.lost_us = now_us_;
            } else {
                close(conn, s);
                side.open = false;
            }
        }
    }
    h.peers = {};
}

// --- what must hold --------------------------------------------------------

void RdmWorld::violate(int at, std::string_view rule) { violations_.push_back({at, rule}); }

void RdmWorld::note(int at, const std::string& text) {
    if (config_.notes) {
        notes_.push_back(std::string(1, static_cast<char>('A' + at)) + ": " + text);
    }
}

void RdmWorld::check_rest() {
    for (int at = 0; at < config_.hosts; ++at) {
        for (int of = 0; of < config_.hosts; ++of) {
            const Peer& p = peer(at, of);
            const RdmState state = p.machine.state();
            if (host(at).dead || at == of) {
                continue;
            }
            if (!p.queued.empty() || !p.outstanding.empty()) {
                violate(at, "an operation never completes");
            }
            if (state != RdmState::idle && state != RdmState::connected &&
                state != RdmState::dead) {
                violate(at, "a peer is half-way for ever");
            }
            if (state == RdmState::dead && p.named > 0) {
                violate(at, "a receive waits for a source that is dead");
            }
            int here = 0;
            Conn* const conn = bound(at, of, p.machine.connection(), here);
            if (state != RdmState::connected) {
                if (conn) {
                    violate(at, "a connection that nobody needs stays");
                }
                continue;
            }
            int there = 0;
            if (!conn || host(of).dead || peer(of, at).machine.state() != RdmState::connected ||
                bound(of, at, peer(of, at).machine.connection(), there) != conn) {
                violate(at, "connected, but the peer is not, or otherwise");
            }
        }
    }
    for (const Conn& conn : conns_) {
        if (!conn.side[0].bound || !conn.side[1].bound) {
            violate(conn.side[0].host, "a connection of which one end knows stays");
        }
    }
}

void RdmWorld::forgive() {
    // But for what has yet to be found out: that a host is dead, or another one than was known.
    harmed_ = {};
    refusals_ = {};
    for (int at = 0; at < config_.hosts; ++at) {
        for (int of = 0; of < config_.hosts; ++of) {
            const std::uint32_t told = peer(at, of).told;
            if (host(at).dead || (told != 0 && told != host(of).life)) {
                harm(at, of);
            }
        }
    }
}

// --- the canonical form ----------------------------------------------------

Key RdmWorld::key() const {
    // Attempts count by their order alone, among those of one life that anybody still knows.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> numbers;
    const auto knows = [&](const core::RdmIdentity& who, std::uint64_t number) {
        numbers.emplace_back(who.drawn, number);
    };
    for (int at = 0; at < config_.hosts; ++at) {
        knows(host(at).self.identity, host(at).self.attempts);
        for (int of = 0; of < config_.hosts; ++of) {
            const auto f = peer(at, of).machine.fields();
            knows(f.given_up.from, f.given_up.number);
            knows(f.accepted.from, f.accepted.number);
        }
    }
    for (const Conn& conn : conns_) {
        for (const auto& lane : conn.lane) {
            for (const Message& m : lane) {
                knows(m.hello.from, m.hello.number);
                knows(m.reply.from, m.reply.given_up);
            }
        }
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    const auto rank = [&](const core::RdmIdentity& who, std::uint64_t number) {
        const auto at = [&](std::uint64_t n) {
            return std::lower_bound(numbers.begin(), numbers.end(), std::pair(who.drawn, n));
        };
        return at(number) - at(0);
    };

    Record record;
    record.reserve(512);
    record.add(misfortunes_, restarts_);
    for (int at = 0; at < config_.hosts; ++at) {
        const Host& h = host(at);
        record.add(h.dead, h.silent, h.life, h.posts, h.receives, h.releases, h.forgets,
                   rank(h.self.identity, h.self.attempts));
        for (int of = 0; of < config_.hosts; ++of) {
            record.add(harmed_[static_cast<std::size_t>(at)][static_cast<std::size_t>(of)],
                       refusals_[static_cast<std::size_t>(at)][static_cast<std::size_t>(of)]);
            if (of == at || h.dead) {
                continue;
            }
            const Peer& p = peer(at, of);
            const auto f = p.machine.fields();
            record.add(f.state, f.was_dead, f.before, f.known.drawn, f.given_up.from.drawn,
                       rank(f.given_up.from, f.given_up.number), f.accepted.from.drawn,
                       rank(f.accepted.from, f.accepted.number), p.timer, p.attempts, p.named,
                       p.told, p.heard_life, p.next, p.heard, p.queued.size(),
                       p.outstanding.size());
            for (const auto* ops : {&p.queued, &p.outstanding}) {
                for (const Op& op : *ops) {
                    record.add(op.number, op.meant);
                }
            }
        }
    }
    for (const Conn& conn : conns_) {
        record.add(conn.lost);
        for (std::size_t s = 0; s < 2; ++s) {
            const Side& side = conn.side[s];
            const bool current =
                side.bound &&
                side.number == peer(side.host, conn.side[1 - s].host).machine.connection();
            record.add(side.host, side.life, side.open, side.bound, side.fin, current,
                       conn.lane[s].size());
            for (const Message& m : conn.lane[s]) {
                record.add(m.kind, m.number, m.meant, m.hello.from.drawn, m.hello.to.drawn,
                           rank(m.hello.from, m.hello.number), m.reply.from.drawn,
                           rank(m.reply.from, m.reply.given_up), m.reply.refusal);
            }
        }
    }
    return key_of(record.bytes());
}

} // namespace dat::sim
