// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What may happen next in the simulated world, and the names of things.
#include "sim/world.h"

#include <algorithm>
#include <limits>

namespace dat::sim {

using core::ServicePoint;
using core::State;
using core::Stimulus;
using core::Verdict;

namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(ActionKind::count_)> kActions{
    "listen",
    "unlisten",
    "connect",
    "reserve",
    "unreserve",
    "accept",
    "reject",
    "post_send",
    "post_send_long",
    "post_recv",
    "disconnect_abrupt",
    "disconnect_graceful",
    "reset",
    "free",
    "create",
    "die",
    "die_silent",
    "restart",
    "break_conn",
    "lose_conn",
    "unreachable",
    "async_error",
    "latency",
    "deliver",
    "fire",
    "flush_one",
    "finish_late"};

constexpr std::array<std::string_view, static_cast<std::size_t>(Fault::count_)> kFaults{
    "none",
    "no_attempt_check",
    "event_before_completions",
    "lose_completion",
    "double_end",
    "early_receive",
    "early_send_completion",
    "drain_without_ack",
    "completion_after_free",
    "no_handshake_limit",
    "no_rnr_limit",
    "no_end_grace",
    "end_grace_breaks",
    "forget_requester"};

} // namespace

std::string_view name(Fault fault) { return kFaults[static_cast<std::size_t>(fault)]; }

bool is_progress(ActionKind kind) { return kind >= ActionKind::deliver; }

std::string to_string(const Action& action) {
    std::string out(kActions[static_cast<std::size_t>(action.kind)]);
    out += action.host == 0 ? " A" : " B";
    if (action.kind == ActionKind::deliver) {
        return out + " connection " + std::to_string(action.arg / 2) + " lane " +
               std::to_string(action.arg % 2);
    }
    return action.arg ? out + " " + std::to_string(action.arg) : out;
}

std::vector<Action> World::enabled_actions() const {
    std::vector<Action> out;
    for (int host = 0; host < kHosts; ++host) {
        offer_calls(host, out);
    }
    if (left_.misfortunes > 0) {
        offer_misfortunes(out);
    }
    offer_progress(out);
    return out;
}

// Whether a call changes anything; refusals and no-ops are offered on request.
bool World::worth_offering(int host, Stimulus stimulus) const {
    const State state = host_(host).ep.state();
    if (state >= State::destroyed) {
        return false;
    }
    const Verdict verdict = core::cell(stimulus, state).verdict;
    return verdict == Verdict::go || verdict == Verdict::flush ||
           (config_.refused_calls && verdict != Verdict::impossible);
}

void World::offer_calls(int host, std::vector<Action>& out) const {
    const Host& h = host_(host);
    const auto at = static_cast<std::size_t>(host);
    const auto offer = [&](ActionKind kind, bool allowed) {
        if (allowed) {
            out.push_back({kind, host, 0});
        }
    };
    const auto can = [&](Stimulus stimulus) { return worth_offering(host, stimulus); };
    if (h.dead) {
        return;
    }
    offer(ActionKind::connect,
          left_.connects > 0 && config_.may_connect[at] && can(Stimulus::connect));
    offer_posts(host, out);
    if (left_.calls == 0) {
        return;
    }
    const bool reserves = config_.listener[at] == ServicePoint::Kind::reserved;
    const bool settled = h.requests.empty() && !h.listener.listening();
    offer(ActionKind::listen, !reserves && settled);
    offer(ActionKind::unlisten, config_.unlisten && !reserves && h.listener.listening());
    offer(ActionKind::reserve, reserves && settled && can(Stimulus::reserve));
    offer(ActionKind::unreserve,
          h.listener.kind() == ServicePoint::Kind::reserved && can(Stimulus::unreserve));
    for (std::uint32_t i = 0; i < h.requests.size(); ++i) {
        if (h.requests[i].own || can(Stimulus::accept_given)) {
            out.push_back({ActionKind::accept, host, i});
        }
        out.push_back({ActionKind::reject, host, i});
    }
    offer(ActionKind::disconnect_abrupt, can(Stimulus::disconnect_abrupt));
    offer(ActionKind::disconnect_graceful, can(Stimulus::disconnect_graceful));
    offer(ActionKind::reset, can(Stimulus::reset));
    offer(ActionKind::free, config_.frees && can(Stimulus::free));
    offer(ActionKind::create,
          h.ep.state() >= State::destroyed && config_.listener[at] != ServicePoint::Kind::provider);
}

void World::offer_posts(int host, std::vector<Action>& out) const {
    const auto at = static_cast<std::size_t>(host);
    if (left_.requests[at] > 0 && worth_offering(host, Stimulus::post_request)) {
        out.push_back({ActionKind::post_send, host, 0});
    }
    if (left_.requests[at] > 0 && config_.long_sends &&
        host_(host).ep.state() == State::connected) {
        out.push_back({ActionKind::post_send_long, host, 0});
    }
    if (left_.receives[at] > 0 && worth_offering(host, Stimulus::post_recv)) {
        out.push_back({ActionKind::post_recv, host, 0});
    }
}

bool World::request_in_flight(const Conn& conn) const {
    const auto& lanes = conn.lane[static_cast<std::size_t>(conn.initiator)];
    return std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) {
        return !lane.empty() && lane.front().kind == MessageKind::request;
    });
}

void World::offer_misfortunes(std::vector<Action>& out) const {
    for (int host = 0; host < kHosts; ++host) {
        if (host_(host).dead) {
            out.push_back({ActionKind::restart, host, 0});
            continue;
        }
        out.push_back({ActionKind::die, host, 0});
        out.push_back({ActionKind::die_silent, host, 0});
        if (host_(host).ep.state() < State::destroyed) {
            out.push_back({ActionKind::async_error, host, 0});
        }
    }
    for (const Conn& conn : conns_) {
        if (conn.lost || !(in_use(conn, 0) || in_use(conn, 1) || request_in_flight(conn))) {
            continue;
        }
        out.push_back({ActionKind::break_conn, conn.initiator, conn.id});
        out.push_back({ActionKind::lose_conn, conn.initiator, conn.id});
        if (request_in_flight(conn)) {
            out.push_back({ActionKind::unreachable, conn.initiator, conn.id});
        }
    }
    if (config_.timed) {
        for (const std::uint32_t us : {1u, 100u, 20'000u, 3'000'000u}) {
            out.push_back({ActionKind::latency, 0, us});
        }
    }
}

// In a timed world only what is due first may come next; what is let go of by
// the hardware has no time of its own.
void World::offer_progress(std::vector<Action>& out) const {
    std::vector<std::pair<std::int64_t, Action>> due;
    for (const Conn& conn : conns_) {
        for (int from = 0; from < kHosts; ++from) {
            for (std::uint32_t lane = 0; lane < 2; ++lane) {
                const Lane& messages = conn.lane[static_cast<std::size_t>(from)][lane];
                if (!messages.empty()) {
                    due.push_back(
                        {messages.front().due_us, {ActionKind::deliver, from, conn.id * 2 + lane}});
                }
            }
        }
    }
    for (std::uint32_t i = 0; i < timers_.size(); ++i) {
        due.push_back({timers_[i].due_us, {ActionKind::fire, timers_[i].host, i}});
    }
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const auto& [when, action] : due) {
        first = std::min(first, std::max(when, now_us_));
    }
    for (const auto& [when, action] : due) {
        if (when <= first) {
            out.push_back(action);
        }
    }
    for (int host = 0; host < kHosts; ++host) {
        if (host_(host).ep.state() == State::ending) {
            offer_flushes(host, out);
        }
    }
}

void World::offer_flushes(int host, std::vector<Action>& out) const {
    const core::Endpoint& ep = host_(host).ep;
    for (const Direction direction : {Direction::request, Direction::receive}) {
        const core::DtoStream& stream =
            direction == Direction::request ? ep.requests() : ep.receives();
        const auto arg = static_cast<std::uint32_t>(direction);
        if (!stream.idle()) {
            out.push_back({ActionKind::flush_one, host, arg});
        }
        if (stream.outstanding() > 1 && !stream.finished(stream.next() - 1)) {
            out.push_back({ActionKind::finish_late, host, arg});
        }
    }
}

} // namespace dat::sim
