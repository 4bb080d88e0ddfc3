// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See endpoint.h. May include: soft, core, base.
#include "soft/endpoint.h"

#include "soft/domain.h"

#include <cassert>
#include <utility>

namespace dat::soft {

using core::DtoStatus;
using core::Event;
using core::Outcome;
using core::Stimulus;
using core::Verdict;

Endpoint::Endpoint(Domain& domain, EndpointOwner& owner, const Limits& limits, const void* zone)
    : domain_(domain), owner_(owner), zone_(zone), core_(limits.requests, limits.receives),
      requests_(std::make_unique_for_overwrite<Request[]>(core_.requests().slots())),
      receives_(std::make_unique_for_overwrite<Receive[]>(core_.receives().slots())),
      inline_areas_(std::make_unique_for_overwrite<std::byte[]>(
          std::size_t{core_.requests().slots()} * kInjectSize)) {}

Endpoint::~Endpoint() { assert(!link_ && !handshake_ && !armed()); }

bool Endpoint::begin_connect(std::optional<std::chrono::microseconds> timeout) {
    if (core_.call(Stimulus::connect).refused()) {
        return false;
    }
    if (timeout) {
        domain_.handshakes().arm(*this, *timeout);
    }
    domain_.need_progress();
    return true;
}

bool Endpoint::begin_accept() {
    if (core_.call(Stimulus::accept_given).refused()) {
        return false;
    }
    domain_.need_progress();
    return true;
}

void Endpoint::expired() { // TMO-2, U-1
    failed(core_.attempt(), Stimulus::timer_expired, core::Reason::timeout);
}

bool Endpoint::disconnect(bool graceful) {
    const Outcome outcome =
        core_.call(graceful ? Stimulus::disconnect_graceful : Stimulus::disconnect_abrupt);
    if (outcome.verdict == Verdict::go) {
        if (core_.state() == core::State::disconnect_pending) {
            link_->drain();
        } else {
            end_attempt(outcome.flush, core::Reason::local, Parting::clean, {});
        }
    }
    return !outcome.refused();
}

bool Endpoint::reset() {
    const Outcome outcome = core_.call(Stimulus::reset);
    if (outcome.verdict == Verdict::go) {
        last_end_ = Event::none;
        reason_ = core::Reason::none;
        terminate_code_ = 0;
    }
    return !outcome.refused();
}

void Endpoint::free() {
    const Outcome outcome = core_.call(Stimulus::free);
    assert(!outcome.refused());
    let_go(Parting::clean);
    flush(outcome.flush);
}

core::PostVerdict Endpoint::begin_receive(std::uint64_t& seq) { return core_.post_receive(seq); }

void Endpoint::receive_filled(std::uint64_t seq, core::PostVerdict verdict) {
    if (verdict == core::PostVerdict::flushed) {
        match_next_ = seq + 1;
        complete_receives();
    } else if (starved_) [[unlikely]] {
        link_->receive_posted();
    }
}

core::PostVerdict Endpoint::begin_request(std::uint64_t& seq) { return core_.post_request(seq); }

void Endpoint::established(core::Attempt of, Stimulus stimulus, std::unique_ptr<Link> link,
                           std::span<const std::byte> private_data) {
    const Outcome outcome = core_.happen(stimulus, of);
    if (outcome.verdict != Verdict::go) { // EP-67: of an attempt that is over
        link->part(Parting::abandon);
        domain_.retire(std::move(link));
        return;
    }
    domain_.handshakes().disarm(*this);
    domain_.retire(std::move(handshake_));
    link_ = std::move(link);
    owner_.link_ready(*link_);
    raise(outcome.event, core::Reason::none, private_data);
    link_->start();
}

void Endpoint::failed(core::Attempt of, Stimulus stimulus, core::Reason reason,
                      std::span<const std::byte> private_data) {
    const Outcome outcome = core_.happen(stimulus, of);
    if (outcome.verdict == Verdict::go) {
        end_attempt(outcome.flush, reason, Parting::abandon, private_data);
    }
}

void Endpoint::complete_receive(std::uint64_t seq, DtoStatus status, std::size_t length,
                                std::uint64_t flags, std::uint64_t data, std::size_t overflow) {
    Receive& done = receive(seq);
    done.length = length;
    done.completion_flags |= flags;
    done.data = data;
    done.overflow = overflow;
    if (core_.receives().finish(seq, status)) {
        complete_receives();
    }
}

void Endpoint::over(Stimulus stimulus, core::Reason reason, Parting parting,
                    std::uint32_t terminate_code) {
    const Outcome outcome = core_.happen(stimulus, core_.attempt());
    if (outcome.verdict == Verdict::go) {
        terminate_code_ = terminate_code;
        end_attempt(outcome.flush, reason, parting, {});
    }
}

void Endpoint::request_failed(std::uint64_t seq, DtoStatus status, core::Reason reason,
                              Parting parting, std::uint32_t terminate_code) {
    core_.requests().finish(seq, status);
    over(Stimulus::broken, reason, parting, terminate_code);
}

// Nothing of the attempt reaches this endpoint any more, and nobody holds a buffer
// of the application.
void Endpoint::let_go(Parting parting) {
    domain_.handshakes().disarm(*this);
    starved_ = false;
    if (link_) {
        link_->part(parting);
        domain_.retire(std::move(link_));
    }
    if (handshake_) {
        handshake_->abandon();
        domain_.retire(std::move(handshake_));
    }
}

void Endpoint::flush(core::Flush what) {
    core_.flush(what);
    if (what != core::Flush::none) {
        match_next_ = core_.receives().next();
    }
    complete_requests();
    complete_receives();
}

// EP-68: this domain lets go of everything at once, so ENDING lasts for this call.
void Endpoint::end_attempt(core::Flush what, core::Reason reason, Parting parting,
                           std::span<const std::byte> private_data) {
    // The data may lie in what let_go() destroys.
    const std::vector<std::byte> data(private_data.begin(), private_data.end());
    let_go(parting);
    flush(what);
    const Outcome outcome = core_.happen(Stimulus::flushed, core_.attempt());
    last_end_ = outcome.event;
    reason_ = reason;
    raise(outcome.event, reason, data);
}

void Endpoint::complete_requests() {
    core::DtoStream::Done done{};
    while (core_.requests().pop(done)) {
        const Request& r = request(done.seq);
        const bool wanted = done.status == DtoStatus::success ? r.signaled : !r.silent; // DTO-21
        if (wanted && request_cq_) {
            request_cq_->push(
                {r.context, r.completion_flags, r.length, nullptr, 0, 0, done.status});
        }
    }
}

void Endpoint::complete_receives() {
    core::DtoStream::Done done{};
    while (core_.receives().pop(done)) {
        const Receive& r = receive(done.seq);
        const bool success = done.status == DtoStatus::success;
        if ((r.signaled || !success) && receive_cq_) {
            receive_cq_->push({r.context, r.completion_flags, success ? r.length : 0,
                               r.iov_count > 0 ? r.iov[0].base : nullptr, r.data, r.overflow,
                               done.status});
        }
    }
}

void Endpoint::raise(Event event, core::Reason reason, std::span<const std::byte> private_data) {
    owner_.raise({event, reason, {private_data.begin(), private_data.end()}});
}

} // namespace dat::soft
