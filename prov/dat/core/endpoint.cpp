// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See endpoint.h.
#include "core/endpoint.h"

#include "base/assert.h"

#include <utility>

namespace dat::core {
namespace {

// Stimuli that begin an attempt, and those after which no happening of the
// old attempt can mean anything.
bool changes_attempt(State from, State to) {
    const bool begins = from == State::unconnected || from == State::reserved;
    const bool over = to == State::unconnected || to == State::destroyed || to == State::provider;
    return from != to && (begins || over);
}

} // namespace

Outcome Endpoint::call(Stimulus stimulus) {
    DAT_ASSERT(stimulus_class(stimulus) == StimulusClass::api);
    if (state_ == State::destroyed || state_ == State::provider) {
        return {Verdict::refuse, Event::none, Flush::none};
    }
    return apply(stimulus);
}

Outcome Endpoint::happen(Stimulus stimulus, Attempt of) {
    DAT_ASSERT(stimulus_class(stimulus) != StimulusClass::api);
    if (of != attempt_ || state_ == State::destroyed || state_ == State::provider) {
        return {Verdict::ignore, Event::none, Flush::none}; // EP-67
    }
    return apply(stimulus);
}

Outcome Endpoint::apply(Stimulus stimulus) {
    const Cell& c = cell(stimulus, state_);
    Outcome outcome{c.verdict, c.event, c.flush};
    if (c.verdict != Verdict::go || c.next == state_) {
        return outcome;
    }
    if (c.next == State::ending) { // EP-68: raised when everything is flushed
        recorded_ = std::exchange(outcome.event, Event::none);
    } else if (c.event == Event::recorded) {
        DAT_ASSERT(quiet());
        outcome.event = std::exchange(recorded_, Event::none);
    }
    enter(c.next);
    return outcome;
}

void Endpoint::enter(State next) {
    if (changes_attempt(state_, next)) {
        attempt_ = Attempt{static_cast<std::uint32_t>(attempt_) + 1};
        if (next < State::destroyed) { // what a free flushes keeps its order (DISC-8)
            requests_.restart();
            receives_.restart();
        }
    }
    state_ = next;
    set_verdicts();
}

void Endpoint::set_verdicts() {
    const auto of = [this](Stimulus stimulus, bool held) {
        const Verdict verdict =
            state_ < State::destroyed ? cell(stimulus, state_).verdict : Verdict::refuse;
        if (verdict == Verdict::refuse) {
            return PostVerdict::refused;
        }
        if (held) {
            return PostVerdict::full;
        }
        return verdict == Verdict::flush || state_ == State::ending ? PostVerdict::flushed
                                                                    : PostVerdict::posted;
    };
    request_verdict_ = of(Stimulus::post_request, requests_held_);
    receive_verdict_ = of(Stimulus::post_recv, receives_held_);
}

PostVerdict Endpoint::post_otherwise(PostVerdict verdict, DtoStream& stream) {
    if (verdict == PostVerdict::refused) {
        return verdict;
    }
    if (stream.full() || verdict == PostVerdict::full) {
        return PostVerdict::full;
    }
    stream.finish(stream.post(), DtoStatus::flushed); // FLS-1, EP-25
    return PostVerdict::flushed;
}

void Endpoint::flush(Flush what) {
    if (what == Flush::all) {
        requests_.flush();
    }
    if (what == Flush::all || what == Flush::recvs) {
        receives_.flush();
    }
}

} // namespace dat::core
