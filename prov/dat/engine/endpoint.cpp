// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See endpoint.h.
#include "engine/endpoint.h"

#include "base/assert.h"
#include "base/log.h"
#include "engine/domain.h"

#include <utility>

namespace dat::engine {

using core::DtoStatus;
using core::Event;
using core::Outcome;
using core::Stimulus;
using core::Verdict;

Endpoint::Endpoint(Domain& domain, EndpointOwner& owner, const Limits& limits, const void* zone,
                   core::State initial, bool named)
    : domain_(domain), owner_(owner), zone_(zone), core_(limits.requests, limits.receives, initial),
      slots_(core_.requests(), core_.receives(), named), completions_(core_), connection_(domain) {
    if (Trace* const trace = domain.trace()) {
        trace_ = std::make_unique<EndpointTrace>(*trace, this, initial);
    } else if (operations_are_probed()) {
        trace_ = std::make_unique<EndpointTrace>(Trace::nowhere(), this, initial);
    }
    completions_.set_trace(trace_.get());
}

Endpoint::~Endpoint() { DAT_ASSERT(!prepared_ && !armed()); }

Outcome Endpoint::call(Stimulus stimulus) {
    const core::State from = core_.state();
    const core::Attempt attempt = core_.attempt();
    const Outcome outcome = core_.call(stimulus);
    // What a call of this side ends, it ends by itself.
    const auto reason = core_.recorded() == Event::none ? core::Reason::none : core::Reason::local;
    probe_transition(this, stimulus, from, core_, outcome, reason);
    if (trace_) {
        trace_->transition(stimulus, from, attempt, core_, outcome, false, reason, 0);
    }
    return outcome;
}

Outcome Endpoint::happen(Stimulus stimulus, core::Attempt of, core::Reason reason,
                         std::uint32_t terminate_code) {
    const core::State from = core_.state();
    const bool late = of != core_.attempt();
    const Outcome outcome = core_.happen(stimulus, of);
    probe_transition(this, stimulus, from, core_, outcome, reason);
    if (trace_) {
        trace_->transition(stimulus, from, of, core_, outcome, late, reason, terminate_code);
    }
    return outcome;
}

bool Endpoint::begin_connect(std::optional<std::chrono::microseconds> timeout) {
    if (call(Stimulus::connect).refused()) {
        return false;
    }
    if (timeout) {
        domain_.handshakes().arm(*this, *timeout);
    }
    domain_.statistics().join(*this);
    domain_.need_progress();
    return true;
}

bool Endpoint::begin_accept() {
    const bool own = core_.state() == core::State::passive_connection_pending ||
                     core_.state() == core::State::tentative_connection_pending;
    if (call(own ? Stimulus::accept_own : Stimulus::accept_given).refused()) {
        return false;
    }
    domain_.statistics().join(*this);
    domain_.need_progress();
    return true;
}

void Endpoint::expired() { // TMO-2, U-1
    if (const std::uint32_t count = watermarks_.take_put_off(); count > 0) {
        return passed_watermark(count);
    }
    failed(core_.attempt(), Stimulus::timer_expired, core::Reason::timeout);
}

bool Endpoint::disconnect(bool graceful) {
    const core::State from = core_.state();
    const Stimulus stimulus =
        graceful ? Stimulus::disconnect_graceful : Stimulus::disconnect_abrupt;
    const Outcome outcome = call(stimulus);
    if (outcome.verdict == Verdict::go) {
        if (core_.state() == core::State::disconnect_pending) {
            link()->drain();
        } else {
            end_attempt(from, stimulus, outcome.flush, core::Reason::local, Parting::clean, {});
        }
    } else {
        connection_.leave();
    }
    return !outcome.refused();
}

bool Endpoint::reset() {
    const Outcome outcome = call(Stimulus::reset);
    if (outcome.verdict == Verdict::go) {
        last_end_ = {};
        connection_.forget();
    }
    return !outcome.refused();
}

void Endpoint::free() {
    prepared_.reset();
    connection_.forget();
    if (core_.state() == core::State::provider) { // EP-16: given back
        flush(core::Flush::recvs);
        domain_.statistics().leave(*this);
        return completions_.leave_queues(limits());
    }
    const Outcome outcome = call(Stimulus::free);
    DAT_ASSERT(!outcome.refused());
    const core::State from = core_.state();
    set_starved(false);
    connection_.let_go(Parting::clean);
    stop_timer();
    const Statistics::Carried carried{core_.requests().first(), core_.receives().first()};
    flush(outcome.flush);
    if (tally().kind) { // a connection that the program has not ended before
        domain_.statistics().ended(*this, from, Stimulus::free, Event::none, core::Reason::local,
                                   carried);
    }
    domain_.statistics().leave(*this);
    completions_.leave_queues(limits());
}

Outcome Endpoint::serve(Stimulus stimulus) {
    return core::stimulus_class(stimulus) == core::StimulusClass::api
               ? call(stimulus)
               : happen(stimulus, core_.attempt(), core::Reason::none);
}

void Endpoint::set_zone(const void* zone) {
    if (zone != zone_) {
        zone_ = zone;
        matching_.change_zone(core_.receives());
    }
}

bool Endpoint::resize(const Limits& limits) {
    DAT_ASSERT(core_.requests().idle() && !link());
    core::DtoStream requests = core_.requests();
    core::DtoStream receives = core_.receives();
    if (!requests.resize(limits.requests) || !receives.resize(limits.receives)) {
        return false;
    }
    OperationSlots slots(requests, receives, slots_.named());
    slots_.copy_receives(core_.receives(), slots, receives);
    if (!completions_.queues().expect(limits, this->limits())) {
        throw std::bad_alloc();
    }
    core_.requests() = std::move(requests);
    core_.receives() = std::move(receives);
    slots_ = std::move(slots);
    return true;
}

void Endpoint::established(core::Attempt of, Stimulus stimulus, std::unique_ptr<Link> link,
                           std::span<const std::byte> private_data) {
    const Outcome outcome = happen(stimulus, of, core::Reason::none);
    if (outcome.verdict != Verdict::go) { // EP-67: of an attempt that is over
        link->part(Parting::abandon);
        domain_.retire(std::move(link));
        return;
    }
    domain_.handshakes().disarm(*this);
    connection_.carry(std::move(link));
    tally().begin(this->link()->kind(), core_.requests().first(), core_.receives().first());
    domain_.statistics().established();
    owner_.link_ready(*this->link());
    raise(outcome.event, core::Reason::none, private_data);
    this->link()->start();
    if (watermarks_.passed(core_.receives().outstanding())) [[unlikely]] {
        passed_watermark(core_.receives().outstanding());
    }
}

void Endpoint::failed(core::Attempt of, Stimulus stimulus, core::Reason reason,
                      std::span<const std::byte> private_data) {
    const core::State from = core_.state();
    const Outcome outcome = happen(stimulus, of, reason);
    if (outcome.verdict == Verdict::go) {
        end_attempt(from, stimulus, outcome.flush, reason, Parting::abandon, private_data);
    }
}

void Endpoint::over(Stimulus stimulus, core::Reason reason, Parting parting,
                    std::uint32_t terminate_code) {
    const core::State from = core_.state();
    const Outcome outcome = happen(stimulus, core_.attempt(), reason, terminate_code);
    if (outcome.verdict == Verdict::go) {
        last_end_.terminate_code = terminate_code;
        if (parting == Parting::clean && stimulus == Stimulus::broken) {
            parting = Parting::broken;
        }
        end_attempt(from, stimulus, outcome.flush, reason, parting, {});
    }
}

void Endpoint::request_failed(std::uint64_t seq, DtoStatus status, core::Reason reason,
                              Parting parting, std::uint32_t terminate_code) {
    core_.requests().finish(seq, status);
    over(Stimulus::broken, reason, parting, terminate_code);
}

void Endpoint::receives_missing() {
    DAT_WARN(ep_data,
             "a connection is broken: no receive was posted for its messages within %lld s "
             "(FI_DAT_RNR_TIMEOUT)",
             static_cast<long long>(domain_.settings().rnr_limit.count()));
    if (core_.requests().idle()) {
        return over(Stimulus::broken, core::Reason::rnr_timeout, Parting::clean);
    }
    request_failed(core_.requests().first(), DtoStatus::receiver_not_ready,
                   core::Reason::rnr_timeout, Parting::clean);
}

std::uint64_t Endpoint::owed_end(std::uint64_t begin) const {
    std::uint64_t end = core_.requests().next();
    while (end != begin && !is_owed(request(end - 1))) {
        --end;
    }
    return end;
}

// Neither a connect timeout nor a watermark is due any more.
void Endpoint::stop_timer() {
    domain_.handshakes().disarm(*this);
    watermarks_.put_off(0);
}

void Endpoint::peer_left() {
    const std::unique_ptr<HalfClosed> over = connection_.take_left();
    owner_.peer_left();
}

void Endpoint::flush(core::Flush what) {
    core_.flush(what);
    if (what != core::Flush::none) {
        matching_.pass_all(core_.receives());
    }
    complete_requests();
    complete_receives();
}

// EP-68: this domain lets go of everything at once, so ENDING lasts for this call.
void Endpoint::end_attempt(core::State from, Stimulus stimulus, core::Flush what,
                           core::Reason reason, Parting parting,
                           std::span<const std::byte> private_data) {
    set_starved(false);
    // What private_data lies in, a handshake, is retired and not destroyed before the lock is left.
    const bool both_left = connection_.end(reason, parting, connection_options_.await_peer);
    stop_timer();
    const Statistics::Carried carried{core_.requests().first(), core_.receives().first()};
    flush(what);
    const Outcome outcome =
        happen(Stimulus::flushed, core_.attempt(), reason, last_end_.terminate_code);
    last_end_.event = outcome.event;
    last_end_.reason = reason;
    domain_.statistics().ended(*this, from, stimulus, outcome.event, reason, carried);
    tally().kind.reset();
    raise(outcome.event, reason, private_data);
    if (both_left) {
        peer_left();
    }
}

void Endpoint::raise(Event event, core::Reason reason, std::span<const std::byte> private_data) {
    owner_.raise({event, reason, private_data});
}

} // namespace dat::engine
