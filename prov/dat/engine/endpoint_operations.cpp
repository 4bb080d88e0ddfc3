// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An endpoint's operations: receives that are posted, shared and taken back, and what is over.
#include "engine/endpoint.h"

#include "engine/domain.h"
#include "engine/shared_receives.h"

namespace dat::engine {

using core::DtoStatus;
using core::Stimulus;

void Endpoint::set_watermarks(std::uint32_t soft, std::uint32_t hard) {
    watermarks_.set(soft, hard);
    if (watermarks_.passed(core_.receives().outstanding())) {
        passed_watermark(core_.receives().outstanding());
    }
}

// More receives are at the endpoint than one of its watermarks says.
void Endpoint::passed_watermark(std::uint32_t count) {
    if (watermarks_.soft_passed(count)) {
        owner_.soft_watermark_passed();
    }
    if (watermarks_.hard_passed(count) && link()) {
        over(Stimulus::broken, core::Reason::watermark, Parting::clean);
    }
}

// A receive was posted, and that is not all.
void Endpoint::receive_posted(std::uint64_t seq, core::PostVerdict verdict) {
    if (verdict == core::PostVerdict::flushed) {
        matching_.pass(seq);
        complete_receives();
    } else if (starved()) {
        connection_.receive_posted();
    }
    if (watermarks_.passed(core_.receives().outstanding())) {
        passed_watermark(core_.receives().outstanding());
    }
}

bool Endpoint::cancel_receive(const void* context) {
    for (std::uint64_t seq = matching_.next(); seq != core_.receives().next(); ++seq) {
        Receive& r = receive(seq);
        if (r.context == context && core_.receives().withdraw(seq)) {
            completions_.report(r, DtoStatus::flushed, seq);
            complete_receives(); // passes over it where it was the oldest
            return true;
        }
    }
    return false;
}

std::uint64_t Endpoint::adopt(const Receive& shared) {
    const std::uint64_t seq = core_.receives().post();
    move_receive(shared, receive(seq), receive_extra_segments(seq));
    if (trace_) [[unlikely]] {
        trace_->posted(seq, receive(seq), core_.attempt());
    }
    matching_.pass(seq);
    if (watermarks_.passed(core_.receives().outstanding())) [[unlikely]] {
        // The link is in the middle of a message: not from here.
        watermarks_.put_off(core_.receives().outstanding());
        domain_.handshakes().arm(*this, Clock::now());
    }
    return seq;
}

void Endpoint::set_starved(bool starved) {
    if (starved == matching_.starved()) {
        return;
    }
    matching_.set_starved(starved);
    tally().not_ready += starved ? 1 : 0;
    if (SharedReceives* const shared = matching_.shared()) {
        starved ? shared->starve(*this) : shared->forget(*this);
    }
}

void Endpoint::receives_shared() {
    matching_.set_starved(false); // not among the starved any more
    link()->receive_posted();
}

void Endpoint::complete_receive(std::uint64_t seq, DtoStatus status, std::size_t length,
                                std::uint8_t how, std::uint64_t data, std::size_t overflow) {
    Receive& done = receive(seq);
    done.length = length;
    done.data = data;
    done.overflow = overflow;
    if (how != kPlain) [[unlikely]] {
        done.completion_flags =
            ((how & kByWrite) != 0 ? 0 : done.completion_flags) | completions_.flags_of(how);
    }
    const std::size_t used = (how & kByWrite) != 0 ? 0 : length;
    if (done.multi && status == DtoStatus::success && completions_.goes_on(done, seq, used))
        [[unlikely]] {
        return matching_.take_again(seq);
    }
    if (core_.receives().finish(seq, status)) {
        complete_receives();
    }
}

void Endpoint::complete_requests() {
    core::DtoStream::Done done{};
    while (core_.requests().pop(done)) {
        const Request& r = request(done.seq);
        tally().request_bytes -= done.status == DtoStatus::success ? 0 : r.length;
        if (r.op == OpCode::bind && done.status != DtoStatus::success) [[unlikely]] {
            domain_.regions().spoil(r.remote_key); // RMR-6
        }
        completions_.report(r, done.status);
    }
}

void Endpoint::complete_receives() {
    core::DtoStream::Done done{};
    while (core_.receives().pop(done)) {
        const Receive& r = receive(done.seq);
        tally().receive_bytes += done.status == DtoStatus::success ? r.length : 0;
        completions_.report(r, done.status);
    }
}

void Endpoint::carry_out_bind(std::uint64_t seq) {
    domain_.regions().bind(request(seq).remote_key);
    finish_request(seq, DtoStatus::success);
}

void Endpoint::remote_read(std::uint32_t key) {
    core::Counter* const counter = completions_.counters().remote_read;
    if (counter && !domain_.regions().is_announced(key)) {
        counter->add(DtoStatus::success);
    }
    if (domain_.regions().counts()) {
        domain_.regions().count_read(key);
    }
}

void Endpoint::remote_written(std::uint32_t key) {
    if (core::Counter* const counter = completions_.counters().remote_write) {
        counter->add(DtoStatus::success);
    }
    if (domain_.regions().counts()) {
        domain_.regions().count_write(key);
    }
}

} // namespace dat::engine
