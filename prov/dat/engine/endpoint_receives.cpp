// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An endpoint's receives: those that are shared, those that are taken back, and watermarks.
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
    if (watermarks_.hard_passed(count) && link_) {
        over(Stimulus::broken, core::Reason::watermark, Parting::clean);
    }
}

// A receive was posted, and that is not all.
void Endpoint::receive_posted(std::uint64_t seq, core::PostVerdict verdict) {
    if (verdict == core::PostVerdict::flushed) {
        matching_.pass(seq);
        complete_receives();
    } else if (starved() && link_) {
        link_->receive_posted();
    } else if (starved() && handshake_) {
        handshake_->receives_posted();
    }
    if (watermarks_.passed(core_.receives().outstanding())) {
        passed_watermark(core_.receives().outstanding());
    }
}

bool Endpoint::cancel_receive(const void* context) {
    for (std::uint64_t seq = matching_.next(); seq != core_.receives().next(); ++seq) {
        Receive& r = receive(seq);
        if (r.context == context && core_.receives().withdraw(seq)) {
            report(r, DtoStatus::flushed, seq);
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
    tally_.not_ready += starved ? 1 : 0;
    if (SharedReceives* const shared = matching_.shared()) {
        starved ? shared->starve(*this) : shared->forget(*this);
    }
}

void Endpoint::receives_shared() {
    matching_.set_starved(false); // not among the starved any more
    link_->receive_posted();
}

} // namespace dat::engine
