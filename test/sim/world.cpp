// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Steps of the simulated world: the calls of its Consumers, misfortunes, and
// the checks after each step.
#include "sim/world.h"

#include <algorithm>
#include <cassert>

namespace dat::sim {

using core::ConnRequest;
using core::Endpoint;
using core::PostVerdict;
using core::ServicePoint;
using core::State;
using core::Stimulus;
using core::Verdict;

World::World(const Config& config)
    : config_(config), left_(config.budget), hosts_{Host(config.limit), Host(config.limit)} {
    for (int host = 0; host < kHosts; ++host) {
        created(host, State::unconnected);
        const ServicePoint::Kind kind = config_.listener[static_cast<std::size_t>(host)];
        if (kind == ServicePoint::Kind::provider) { // it makes one for each request
            const core::Outcome outcome = host_(host).ep.call(Stimulus::free);
            record(host, Stimulus::free, State::unconnected, core::Attempt{0}, outcome);
            note(host, core::name(Stimulus::free), core::name(host_(host).ep.state()));
            host_(host).consumer.gone();
        }
        if (kind != ServicePoint::Kind::reserved) {
            listen(host, kind);
        } else {
            host_(host).listener.close();
        }
    }
}

void World::step(const Action& action) {
    notes_.clear();
    records_.clear();
    reached_count_ = 0;
    if (is_progress(action.kind)) {
        progress(action);
    } else if (action.kind >= ActionKind::die) {
        use(left_.misfortunes);
        misfortune(action);
    } else {
        consumer_call(action);
    }
    check_step();
    forget_dead_conns();
}

void World::reach(Stimulus stimulus, State state) {
    assert(reached_count_ < reached_.size());
    reached_[reached_count_++] = {stimulus, state};
}

// One of what is counted has been used.
void World::use(std::uint32_t& left) {
    if (left != Budget::kUnlimited) {
        --left;
    }
}

// --- calls of a Consumer ------------------------------------------------

void World::consumer_call(const Action& action) {
    const int host = action.host;
    switch (action.kind) {
    case ActionKind::connect:
        use(left_.connects);
        connect(host);
        return;
    case ActionKind::post_send:
    case ActionKind::post_send_long:
        use(left_.requests[static_cast<std::size_t>(host)]);
        post(host, Direction::request,
             action.kind == ActionKind::post_send ? MessageKind::send : MessageKind::send_long);
        return;
    case ActionKind::post_recv:
        use(left_.receives[static_cast<std::size_t>(host)]);
        post(host, Direction::receive, MessageKind::send);
        return;
    case ActionKind::accept:
        use(left_.calls);
        accept(host, action.arg);
        return;
    case ActionKind::reject:
        use(left_.calls);
        reject(host, action.arg);
        return;
    case ActionKind::disconnect_abrupt:
        use(left_.calls);
        disconnect(host, Stimulus::disconnect_abrupt);
        return;
    case ActionKind::disconnect_graceful:
        use(left_.calls);
        disconnect(host, Stimulus::disconnect_graceful);
        return;
    default:
        use(left_.calls);
        lifecycle(action);
    }
}

void World::lifecycle(const Action& action) {
    const int host = action.host;
    switch (action.kind) {
    case ActionKind::listen:
        listen(host, config_.listener[static_cast<std::size_t>(host)]);
        break;
    case ActionKind::unlisten:
        host_(host).listener.close();
        break;
    case ActionKind::reserve:
        if (call(host, Stimulus::reserve) == Verdict::go) {
            host_(host).listener = ServicePoint(ServicePoint::Kind::reserved, 1);
        }
        break;
    case ActionKind::unreserve:
        call(host, Stimulus::unreserve);
        host_(host).listener.close();
        break;
    case ActionKind::reset:
        if (call(host, Stimulus::reset) == Verdict::go) {
            violate(host, host_(host).consumer.reset());
        }
        break;
    case ActionKind::free:
        free(host);
        break;
    case ActionKind::create:
        create(host, State::unconnected);
        break;
    default:
        break;
    }
}

Verdict World::call(int host, Stimulus stimulus) {
    Endpoint& ep = host_(host).ep;
    const Endpoint before = ep;
    const core::Outcome outcome = ep.call(stimulus);
    reach(stimulus, before.state());
    record(host, stimulus, before.state(), before.attempt(), outcome);
    if (outcome.verdict != Verdict::go && !(ep == before)) {
        violate(host, "GEN-2: a call that did not go ahead changed the endpoint");
    }
    after(host, stimulus, before.state(), outcome);
    return outcome.verdict;
}

void World::listen(int host, ServicePoint::Kind kind) {
    host_(host).listener = ServicePoint(kind, config_.backlog);
}

void World::connect(int host) {
    if (call(host, Stimulus::connect) != Verdict::go) {
        return;
    }
    host_(host).consumer.attempt_begins();
    Conn& conn = new_conn(host);
    bind(host, conn);
    send(conn, host, MessageKind::request);
    arm(host, TimerKind::connect, conn, config_.connect_timeout_us);
}

void World::settle_request(int host, std::uint32_t index, ConnRequest::Fate fate) {
    Host& h = host_(host);
    if (!h.requests[index].request.settle(fate)) {
        violate(host, "OBJ-3: a request was settled twice");
    }
    h.requests.erase(h.requests.begin() + index);
    h.listener.taken();
}

void World::accept(int host, std::uint32_t index) {
    Host& h = host_(host);
    const PendingRequest pending = h.requests[index];
    if (call(host, pending.own ? Stimulus::accept_own : Stimulus::accept_given) != Verdict::go) {
        return; // the request stays
    }
    settle_request(host, index, ConnRequest::Fate::accepted);
    h.consumer.attempt_begins();
    Conn& conn = *find(pending.conn);
    bind(host, conn);
    conn.side[static_cast<std::size_t>(host)].accepted = true;
    if (pending.request.requester_gone()) { // CR-6
        happen(host, Stimulus::handshake_failed, h.ep.attempt());
        return;
    }
    send(conn, host, MessageKind::accept);
    if (conn.lost) { // nobody knows
        arm(host, TimerKind::keepalive, conn, config_.keepalive_us);
    }
    if (config_.no_ready) {
        happen(host, Stimulus::handshake_done, h.ep.attempt()); // U-65
        return;
    }
    arm(host, TimerKind::handshake, conn, config_.handshake_us);
}

void World::reject(int host, std::uint32_t index) {
    const PendingRequest pending = host_(host).requests[index];
    if (pending.own) {
        call(host, Stimulus::reject);
    }
    settle_request(host, index, ConnRequest::Fate::rejected);
    Conn& conn = *find(pending.conn);
    send(conn, host, MessageKind::reject);
    conn.side[static_cast<std::size_t>(host)].rejected = true;
    conn.side[static_cast<std::size_t>(host)].open = false;
    if (host_(host).ep.state() == State::provider) {
        host_(host).consumer.gone();
    }
}

void World::disconnect(int host, Stimulus stimulus) {
    if (Conn* conn = current(host); conn && host_(host).ep.state() < State::ending) {
        conn->side[static_cast<std::size_t>(host)].asked_end = true;
    }
    call(host, stimulus);
}

void World::post(int host, Direction direction, MessageKind kind) {
    Host& h = host_(host);
    const Endpoint before = h.ep;
    const bool request = direction == Direction::request;
    std::uint64_t seq = 0;
    const PostVerdict verdict = request ? h.ep.post_request(seq) : h.ep.post_receive(seq);
    reach(request ? Stimulus::post_request : Stimulus::post_recv, before.state());
    const bool room = h.consumer.outstanding(direction) < config_.limit;
    if (verdict == PostVerdict::refused || verdict == PostVerdict::full) {
        if (!(h.ep == before)) {
            violate(host, "GEN-2: a refused post changed the endpoint");
        }
        if (verdict == PostVerdict::full && room) {
            violate(host, "DTO-5: full below the limit");
        }
        return;
    }
    if (!room) {
        violate(host, "DTO-5: more outstanding than the limit");
    }
    h.consumer.posted(direction, seq);
    record({.kind = Recorded::Kind::posted,
            .host = host,
            .attempt = h.ep.attempt(),
            .direction = direction,
            .seq = seq});
    Conn* conn = current(host);
    if (conn && request && verdict == PostVerdict::posted) {
        ++conn->side[static_cast<std::size_t>(host)].unacked;
        send(*conn, host, kind, seq);
        if (config_.local_completion || config_.fault == Fault::early_send_completion) {
            h.ep.requests().finish(seq, core::DtoStatus::success);
        }
    } else if (conn && !request) {
        place_staged(host, *conn);
    }
    settle(host);
}

void World::free(int host) {
    Host& h = host_(host);
    Conn* conn = current(host);
    const State before = h.ep.state();
    const core::Attempt attempt = h.ep.attempt();
    const core::Outcome outcome = h.ep.call(Stimulus::free);
    reach(Stimulus::free, before);
    record(host, Stimulus::free, before, attempt, outcome);
    if (outcome.verdict != Verdict::go) {
        return;
    }
    note(host, core::name(Stimulus::free), core::name(h.ep.state()));
    if (config_.fault == Fault::completion_after_free) {
        h.consumer.gone();
    }
    h.ep.flush(outcome.flush);
    reap(host);
    h.consumer.gone();
    if (conn) {
        Side& side = conn->side[static_cast<std::size_t>(host)];
        send(*conn, host, farewell(host, *conn));
        side.open = false;
        side.staged.clear();
    }
    if (!config_.keep_timers) {
        std::erase_if(timers_, [host](const Timer& timer) { return timer.host == host; });
    }
}

void World::create(int host, State initial) {
    unbind_all(host);
    host_(host).ep = Endpoint(config_.limit, config_.limit, initial);
    host_(host).consumer.created();
    created(host, initial);
}

// --- misfortunes --------------------------------------------------------

void World::misfortune(const Action& action) {
    const int host = action.host;
    switch (action.kind) {
    case ActionKind::die:
    case ActionKind::die_silent:
        die(host, action.kind == ActionKind::die_silent);
        break;
    case ActionKind::restart:
        host_(host).dead = false;
        create(host, State::unconnected);
        break;
    case ActionKind::break_conn:
        cut(*find(action.arg));
        break;
    case ActionKind::lose_conn:
        lose(*find(action.arg));
        break;
    case ActionKind::unreachable: {
        Conn& conn = *find(action.arg);
        conn.lane = {};
        conn.lost = true;
        happen(conn.initiator, Stimulus::unreachable,
               conn.side[static_cast<std::size_t>(conn.initiator)].attempt);
        break;
    }
    case ActionKind::async_error:
        happen(host, Stimulus::async_error, host_(host).ep.attempt());
        break;
    case ActionKind::latency:
        latency_us_ = action.arg;
        break;
    default:
        break;
    }
}

// IA-11: everything the process had goes at once, without completions.
void World::die(int host, bool silent) {
    Host& h = host_(host);
    for (Conn& conn : conns_) {
        Side& side = conn.side[static_cast<std::size_t>(host)];
        if (silent) {
            lose(conn);
        } else {
            send(conn, host, farewell(host, conn));
        }
        side.open = side.bound = false;
        side.staged.clear();
    }
    reach(Stimulus::ia_close, h.ep.state());
    const State before = h.ep.state();
    const core::Attempt attempt = h.ep.attempt();
    const core::Outcome outcome = h.ep.call(Stimulus::ia_close);
    record(host, Stimulus::ia_close, before, attempt, outcome);
    if (h.ep.state() != before) {
        note(host, core::name(Stimulus::ia_close), core::name(h.ep.state()));
    }
    h.consumer.gone();
    h.requests.clear();
    h.listener = ServicePoint(ServicePoint::Kind::consumer, config_.backlog);
    h.listener.close();
    h.dead = true;
    h.silent = silent;
    std::erase_if(timers_, [host](const Timer& timer) { return timer.host == host; });
}

// --- progress -----------------------------------------------------------

void World::progress(const Action& action) {
    if (action.kind == ActionKind::flush_one) {
        flush_one(action.host, static_cast<Direction>(action.arg));
        return;
    }
    if (action.kind == ActionKind::finish_late) {
        finish_late(action.host, static_cast<Direction>(action.arg));
        return;
    }
    if (action.kind == ActionKind::fire) {
        const Timer timer = timers_[action.arg];
        timers_.erase(timers_.begin() + action.arg);
        now_us_ = std::max(now_us_, timer.due_us);
        timer_fires(timer);
        return;
    }
    Conn& conn = *find(action.arg / 2);
    Lane& lane = conn.lane[static_cast<std::size_t>(action.host)][action.arg % 2];
    const Message message = lane.front();
    lane.erase(lane.begin());
    now_us_ = std::max(now_us_, message.due_us);
    arrive(conn, other(action.host), message);
}

// --- checks -------------------------------------------------------------

void World::violate(int host, Consumer::Broken rule) {
    if (rule) {
        violations_.push_back({host, rule});
        record({.kind = Recorded::Kind::violation, .host = host, .rule = rule});
        note(host, "VIOLATION", rule);
    }
}

void World::check_step() {
    for (int host = 0; host < kHosts; ++host) {
        const Host& h = host_(host);
        if (h.dead) {
            continue;
        }
        violate(host, h.consumer.look(h.ep.state()));
        const Conn* conn = current(host);
        if (conn && h.ep.state() == State::completion_pending &&
            conn->side[static_cast<std::size_t>(host)].told_end) {
            violate(host, "CR-6: waits for a requester that is known to have gone");
        }
    }
}

void World::check_rest() {
    for (int host = 0; host < kHosts; ++host) {
        const State state = host_(host).ep.state();
        if (state == State::active_connection_pending || state == State::completion_pending ||
            state == State::disconnect_pending || state == State::ending) {
            violate(host, "quiescence: nothing can end this endpoint's attempt");
        }
        const Conn* conn = current(host);
        if (conn && in_data_state(host) &&
            (conn->lost || conn->side[static_cast<std::size_t>(host)].told_end)) {
            violate(host, "U-65, U-67: connected to a peer that has gone");
        }
    }
}

void World::created(int host, State initial) {
    record({.kind = Recorded::Kind::created, .host = host, .from = initial});
    note(host, "created", core::name(initial));
}

void World::record(int host, Stimulus stimulus, State from, core::Attempt attempt,
                   const core::Outcome& outcome, bool late) {
    const Endpoint& ep = host_(host).ep;
    record({.kind = Recorded::Kind::transition,
            .host = host,
            .from = from,
            .to = ep.state(),
            .stimulus = stimulus,
            .outcome = outcome,
            .pending = ep.recorded(),
            .attempt = attempt,
            .attempt_after = ep.attempt(),
            .late = late});
}

void World::note(int host, std::string_view what, std::string_view detail) {
    if (config_.notes) {
        notes_.push_back(std::string(host == 0 ? "A: " : "B: ") + std::string(what) +
                         (detail.empty() ? "" : " ") + std::string(detail));
    }
}

} // namespace dat::sim
