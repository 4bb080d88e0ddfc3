// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See consumer.h.
#include "sim/consumer.h"

namespace dat::sim {

using core::DtoStatus;
using core::Event;
using core::State;

void Consumer::attempt_begins() {
    trying_ = true;
    established_ = ended_ = false;
    failed_ = {};
}

Consumer::Broken Consumer::reset() {
    const bool had_its_end = ended_;
    trying_ = established_ = ended_ = false;
    failed_ = {};
    return had_its_end ? nullptr : "EP-70: reset of an attempt that had no ending event";
}

Consumer::Broken Consumer::completed(Direction direction, std::uint64_t seq, DtoStatus status) {
    std::vector<std::uint64_t>& pending = ops(direction);
    if (gone_) {
        return "FREE-2: completion after the endpoint was freed";
    }
    if (pending.empty()) {
        return "DISC-11: completion of an operation that is not outstanding";
    }
    if (pending.front() != seq) {
        return "DISC-8: completion out of posting order";
    }
    pending.erase(pending.begin());
    bool& failed = failed_[at(direction)];
    if (failed && status != DtoStatus::flushed) {
        return "DISC-8: other than FLUSHED after an unsuccessful completion";
    }
    failed = status != DtoStatus::success;
    if (status == DtoStatus::success && !established_) {
        return "EP-75: success before ESTABLISHED";
    }
    if (status == DtoStatus::success && ended_) {
        return "FLS-1: success after the connection ended";
    }
    return nullptr;
}

Consumer::Broken Consumer::event(Event event, State state) {
    if (gone_) {
        return "FREE-2: event after the endpoint was freed";
    }
    if (event == Event::none || event == Event::recorded) {
        return "EP-68: an event that is none was raised";
    }
    if (event == Event::connection_request) {
        return state == State::passive_connection_pending ? nullptr : "EP-71: request before state";
    }
    if (!trying_) {
        return "EP-67: event without an attempt";
    }
    if (ended_) {
        return event == Event::established ? "EP-70: ESTABLISHED after the ending event"
                                           : "EP-70: second ending event of an attempt";
    }
    if (event == Event::established) {
        const bool twice = established_;
        established_ = true;
        if (twice) {
            return "EP-70: second ESTABLISHED of an attempt";
        }
        return state == State::connected ? nullptr : "EP-71: ESTABLISHED before the state";
    }
    ended_ = true;
    if (!ops_[0].empty() || !ops_[1].empty()) {
        return "U-7: ending event before the completions of its operations";
    }
    return state == State::disconnected ? nullptr : "EP-71: ending event before the state";
}

Consumer::Broken Consumer::look(State state) const {
    switch (state) {
    case State::connected:
        return established_ && !ended_ ? nullptr : "EP-71: CONNECTED without its ESTABLISHED";
    case State::disconnect_pending:
        return established_ && !ended_ ? nullptr : "EP-71: draining what is not connected";
    case State::ending:
        return ended_ ? "EP-68: ending event raised in ENDING" : nullptr;
    case State::disconnected:
        if (!ops_[0].empty() || !ops_[1].empty()) {
            return "DISC-11: operation outstanding in DISCONNECTED";
        }
        return ended_ ? nullptr : "EP-70: DISCONNECTED without an ending event";
    case State::destroyed:
        return ops_[0].empty() && ops_[1].empty() ? nullptr : "FREE-2: operation lost in a free";
    default:
        return ended_ ? "EP-74: left DISCONNECTED without reset" : nullptr;
    }
}

} // namespace dat::sim
