// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How a connection over shared memory ends: by the peer, by a fault, by draining, or
// because something waited for too long. See link.h.
#include "base/log.h"
#include "engine/barrier.h"
#include "links/iwarp/faults.h"
#include "links/shm/closing_link.h"
#include "links/shm/link.h"

#include <algorithm>
#include <utility>

namespace dat::shm {

using core::DtoStatus;
using core::Reason;
using core::Stimulus;
using engine::LinkEvent;
using engine::Parting;
using iwarp::TerminateCode;

// The peer writes no more. What it wrote comes first (U-2).
void Link::peer_ended() {
    life_.happen(LinkEvent::peer_ended);
    if (!sender_.look()) {
        return violated();
    }
    while (!life_.is_over() && receiver_.has_record() && !receiver_.stopped()) {
        poll();
    }
    if (!life_.is_over()) {
        finish();
    }
}

// All that can be taken has been.
void Link::finish() {
    const End end = side_.peers->end.load(std::memory_order_acquire);
    if (end == End::faulted) {
        return peer_faulted();
    }
    if (receiver_.inbox().has_unreceived() || receiver_.waits()) { // U-9 b
        const bool waited = life_.waits();
        life_.happen(LinkEvent::all_taken);
        if (!waited) {
            watch_on();
        }
        return;
    }
    if (end == End::none && receiver_.inside()) {
        return endpoint_.over(Stimulus::broken, Reason::end_in_frame, Parting::clean);
    }
    const bool answers = life_.said_goodbye() && endpoint_.core().requests().idle();
    if (answers) {
        return endpoint_.over(Stimulus::drained, Reason::local, Parting::clean);
    }
    end_as(end);
}

void Link::end_as(End end) {
    endpoint_.over(Stimulus::peer_disconnected,
                   end == End::none ? Reason::peer_reset : Reason::peer_closed, Parting::clean);
}

void Link::peer_faulted() {
    const std::uint32_t value = side_.peers->end_code.load(std::memory_order_relaxed) & 0xffff;
    const auto code = static_cast<TerminateCode>(value);
    DAT_INFO(ep_ctrl, "the peer ended the connection: %s (0x%04x)", iwarp::text(code), value);
    const auto& requests = endpoint_.core().requests();
    if (requests.idle()) {
        return endpoint_.over(Stimulus::broken, Reason::terminate, Parting::clean, value);
    }
    const DtoStatus status =
        code == kUnreadable ? DtoStatus::local_protection : iwarp::status_of(code);
    endpoint_.request_failed(requests.first(), status, Reason::terminate, Parting::clean, value);
}

// The receiver found a fault: the peer's, or one of this side's memory.
void Link::faulted() {
    const Fault fault = receiver_.fault();
    const auto code = static_cast<std::uint32_t>(fault.code);
    const bool own = fault.kind != Fault::Kind::peer;
    const bool resources =
        fault.kind == Fault::Kind::copying || fault.kind == Fault::Kind::resources;
    if (fault.kind == Fault::Kind::memory || resources) {
        DAT_WARN(ep_data, "a connection is broken: %s", fault.what);
    } else {
        DAT_INFO(ep_ctrl, "a connection is broken: %s (Terminate 0x%04x)", fault.what, code);
    }
    sender_.push(); // responses to earlier reads come before
    say_end(End::faulted, code);
    const Reason reason = resources ? Reason::resources
                          : own     ? Reason::dto_error
                                    : Reason::protocol;
    endpoint_.over(Stimulus::broken, reason, Parting::clean);
}

void Link::violated() {
    DAT_INFO(ep_ctrl, "a connection is broken: the peer says that it took what was never sent");
    say_end(End::faulted, static_cast<std::uint32_t>(TerminateCode::ddp_untagged_msn_range));
    endpoint_.over(Stimulus::broken, Reason::protocol, Parting::clean);
}

// The memory of a read that the peer was promised has been closed since.
void Link::source_gone() {
    say_end(End::faulted, static_cast<std::uint32_t>(TerminateCode::rdmap_invalid_stag));
    endpoint_.over(Stimulus::broken, Reason::protocol, Parting::clean);
}

// Why nothing comes behind what has been sent. The first reason counts.
void Link::say_end(End end, std::uint32_t code) {
    if (side_.mine->end.load(std::memory_order_relaxed) == End::none) {
        side_.mine->end_code.store(code, std::memory_order_relaxed);
        side_.mine->end.store(end, std::memory_order_release);
    }
}

// --- DISC-4: draining ---

void Link::drain() {
    life_.happen(LinkEvent::drain);
    watch_on();
    push(); // and looks whether all is done
}

// Requests are complete and everything is out: say goodbye; the peer's end, which it
// reaches only behind all that was sent, is its confirmation (U-42). The socket stays
// open: the peer may still have to be woken for what is taken from it.
void Link::check_drained() {
    if (life_.is_silent() || !endpoint_.core().requests().idle() || !sender_.idle()) {
        return;
    }
    life_.happen(LinkEvent::goodbye);
    say_end(End::closed, 0);
    ring();
}

// --- limits (U-9, U-42): they run while nothing moves ---

void Link::watch_on() {
    end_limit_.begin(moved());
    look_at_limits();
}

void Link::look_at_limits() {
    switch (end_limit_.look(endpoint_, watch_, life_.peer_ended(), moved())) {
    case engine::EndLimit::Result::waits:
        return;
    case engine::EndLimit::Result::drop:
        return drop_unreceived();
    case engine::EndLimit::Result::too_long:
        return not_ready_for_too_long();
    }
}

void Link::drop_unreceived() { end_as(side_.peers->end.load(std::memory_order_acquire)); }

void Link::not_ready_for_too_long() {
    say_end(End::faulted, static_cast<std::uint32_t>(TerminateCode::ddp_untagged_no_buffer));
    endpoint_.receives_missing();
}

// What was sent is in memory that the peer keeps. What it would copy from this process is void
// from here on, unless it is owed.
void Link::part(engine::Parting how) {
    const bool silent = life_.is_silent();
    life_.happen(LinkEvent::part);
    if (std::exchange(by_doorbell_, false)) {
        channel_->ignore();
    }
    receiver_.inbox().announce_rest();
    Remainder rest = how == Parting::clean && !silent ? last_of_all() : Remainder();
    sender_.part();
    domain_.reactor().disarm(watch_);
    channel_->leave();
    // Answers to the peer's reads that it would copy from here are void, and what is behind them
    // is not.
    side_.mine->regions_gone.fetch_add(1, std::memory_order_seq_cst);
    side_.mine->parted.store(1, std::memory_order_seq_cst);
    engine::full_fence(); // the program's memory has something else in it only after this is seen
    if (!rest.empty()) {
        return ClosingLink::begin(domain_, {channel_, fences_, receiver_.position()},
                                  std::move(rest));
    }
    say_end(End::closed, 0);
    side_.mine->revoked.store(kVoid, std::memory_order_seq_cst);
    engine::full_fence(); // as above
    // Else the peer is to see this only when what is kept of the channel has gone.
    if (how != engine::Parting::abandon || !endpoint_.connection_options().await_peer) {
        channel_->hang_up();
    }
}

// What was put off goes out first, as far as the ring takes it; what is owed behind it, or would
// be copied from the program's memory, is kept.
Remainder Link::last_of_all() {
    const std::uint64_t before = sender_.records();
    sender_.push();
    if (sender_.records() != before) {
        tell(kForRecords);
    }
    return sender_.take_remainder();
}

} // namespace dat::shm
