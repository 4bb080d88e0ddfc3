// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// An endpoint's receives: those that are shared, those that are taken back, and watermarks.
#include "engine/endpoint.h"

#include "engine/domain.h"
#include "engine/shared_receives.h"

#include <algorithm>

namespace dat::engine {

using core::DtoStatus;
using core::Stimulus;

void Endpoint::set_watermarks(std::uint32_t soft, std::uint32_t hard) {
    soft_watermark_ = soft;
    hard_watermark_ = hard;
    watermark_ = std::min(soft, hard);
    if (core_.receives().outstanding() > watermark_) {
        passed_watermark(core_.receives().outstanding());
    }
}

// More receives are at the endpoint than one of its watermarks says.
void Endpoint::passed_watermark(std::uint32_t count) {
    if (count > soft_watermark_) { // once for each setting
        soft_watermark_ = UINT32_MAX;
        watermark_ = hard_watermark_;
        owner_.soft_watermark_passed();
    }
    if (count > hard_watermark_ && link_) {
        over(Stimulus::broken, core::Reason::watermark, Parting::clean);
    }
}

// A receive was posted, and that is not all.
void Endpoint::receive_posted(std::uint64_t seq, core::PostVerdict verdict) {
    if (verdict == core::PostVerdict::flushed) {
        match_next_ = seq + 1;
        complete_receives();
    } else if (starved_ && link_) {
        link_->receive_posted();
    } else if (starved_ && handshake_) {
        handshake_->receives_posted();
    }
    if (core_.receives().outstanding() > watermark_) {
        passed_watermark(core_.receives().outstanding());
    }
}

bool Endpoint::cancel_receive(const void* context) {
    for (std::uint64_t seq = match_next_; seq != core_.receives().next(); ++seq) {
        Receive& r = receive(seq);
        if (r.context == context && core_.receives().withdraw(seq)) {
            report(r, DtoStatus::flushed, seq);
            complete_receives(); // passes over it where it was the oldest
            return true;
        }
    }
    return false;
}

bool Endpoint::may_share() const {
    return !shared_->empty() && !core_.receives().full() && !core_.holds_receives();
}

const Receive& Endpoint::take_shared() { return shared_->take(); }

std::uint64_t Endpoint::adopt(const Receive& shared) {
    const std::uint64_t seq = core_.receives().post();
    move_receive(shared, receive(seq), receive_extra_segments(seq));
    if (trace_) [[unlikely]] {
        trace_->posted(seq, receive(seq), core_.attempt());
    }
    match_next_ = seq + 1;
    if (core_.receives().outstanding() > watermark_) [[unlikely]] {
        // The link is in the middle of a message: not from here.
        too_many_ = core_.receives().outstanding();
        domain_.handshakes().arm(*this, Clock::now());
    }
    return seq;
}

void Endpoint::set_starved(bool starved) {
    tally_.not_ready += starved && !starved_ ? 1 : 0;
    if (shared_ && starved != starved_) {
        if (starved) {
            shared_->starve(*this);
        } else {
            shared_->forget(*this);
        }
    }
    starved_ = starved;
}

void Endpoint::receives_shared() {
    starved_ = false; // not among the starved any more
    link_->receive_posted();
}

} // namespace dat::engine
