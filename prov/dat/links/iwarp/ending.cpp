// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How an iWARP connection ends: by the stream, by a fault, by draining, or because
// something waited for too long. See link.h.
#include "base/log.h"
#include "links/iwarp/closing_link.h"
#include "links/iwarp/faults.h"
#include "links/iwarp/link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace dat::iwarp {

using core::Reason;
using core::Stimulus;
using engine::LinkEvent;
using engine::Parting;

// The peer's stream ended in order (U-2): between frames it is a disconnect, but
// messages that came before it and still wait for a receive come first (U-9 b).
void Link::stream_ended() {
    if (send_failed_ && sender_.error() != EPIPE && sender_.error() != ECONNRESET) {
        return stream_failed(sender_.error()); // the send took the error from the socket
    }
    if (reset_) {
        return stream_failed(ECONNRESET); // known before what came ahead of it was received
    }
    life_.happen(LinkEvent::peer_ended);
    if (receiver_.inside_frame()) {
        return endpoint_.over(Stimulus::broken, Reason::end_in_frame, Parting::clean);
    }
    if (receiver_.inbox().has_unreceived()) {
        return messages_wait();
    }
    const bool answers = life_.said_goodbye() && endpoint_.core().requests().idle();
    endpoint_.over(answers ? Stimulus::drained : Stimulus::peer_disconnected,
                   answers ? Reason::local : Reason::peer_closed, Parting::clean);
}

void Link::messages_wait() { // U-9 b
    life_.happen(LinkEvent::all_taken);
    update_interest();
    watch_on();
}

void Link::stream_failed(int error) {
    life_.happen(LinkEvent::peer_ended);
    if (error == EFAULT) { // the memory of a receive or a read is not there
        DAT_WARN(ep_data, "a buffer posted for receiving is not writable memory");
        return endpoint_.over(Stimulus::broken, Reason::dto_error, Parting::clean);
    }
    if (error != ECONNRESET && error != EPIPE) { // ETIMEDOUT, EHOSTUNREACH ...: keepalive
        DAT_INFO(ep_ctrl, "a connection is lost: %s", std::strerror(error));
        return endpoint_.over(Stimulus::broken, Reason::keepalive, Parting::abandon);
    }
    if (receiver_.inside_frame()) {
        return endpoint_.over(Stimulus::broken, Reason::end_in_frame, Parting::abandon);
    }
    reset_ = error == ECONNRESET; // EPIPE: the peer had ended in order before
    if (receiver_.inbox().has_unreceived()) {
        return messages_wait();
    }
    endpoint_.over(Stimulus::peer_disconnected, Reason::peer_reset, Parting::abandon);
}

// The peer's end was noticed while reading had stopped. What it sent before is still
// to be read; how long that may wait is limited (U-9 b).
void Link::peer_is_gone() {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0 && error != ECONNRESET && error != EPIPE) {
        return stream_failed(error);
    }
    reset_ = error == ECONNRESET; // which the socket tells once
    domain_.reactor().remove(socket_.fd(), *this);
    watched_ = false;
    life_.happen(LinkEvent::peer_ended);
    watch_on();
}

// The receiver found a fault: the peer's, or one of this side's receives.
void Link::faulted() {
    const Fault& fault = receiver_.fault();
    const auto code = static_cast<std::uint32_t>(fault.code);
    if (fault.kind == Fault::Kind::terminate) {
        DAT_INFO(ep_ctrl, "the peer ended the connection with a Terminate: %s (0x%04x)", fault.what,
                 code);
        const auto& requests = endpoint_.core().requests();
        if (requests.idle()) {
            return endpoint_.over(Stimulus::broken, Reason::terminate, Parting::clean, code);
        }
        return endpoint_.request_failed(requests.first(), status_of(fault.code), Reason::terminate,
                                        Parting::clean, code);
    }
    if (fault.kind == Fault::Kind::memory) {
        DAT_WARN(ep_data, "a connection is broken: %s", fault.what);
    } else {
        DAT_INFO(ep_ctrl, "a connection is broken: %s (Terminate 0x%04x)", fault.what, code);
    }
    if (receiver_.awake()) {
        sender_.release();
    }
    sender_.note_placed(receiver_.inbox().placed());
    sender_.push(socket_.fd()); // responses to earlier reads come before the Terminate
    sender_.terminate(fault.code, {fault.header.data(), fault.header_size}, fault.ulpdu_size);
    const Reason reason = fault.kind == Fault::Kind::receive  ? Reason::dto_error
                          : fault.kind == Fault::Kind::memory ? Reason::resources
                                                              : Reason::protocol;
    endpoint_.over(Stimulus::broken, reason, Parting::clean);
}

// The memory of a read that the peer was promised has been closed since.
void Link::source_gone() {
    sender_.terminate(TerminateCode::rdmap_invalid_stag, {}, 0);
    endpoint_.over(Stimulus::broken, Reason::protocol, Parting::clean);
}

// --- DISC-4: draining ---

void Link::drain() {
    life_.happen(LinkEvent::drain);
    watch_on();
    push(); // what was put off; and looks whether all is done
}

// Requests are complete and everything is out: say goodbye; the peer's end, which it
// reaches only behind all that was sent, is its confirmation (U-42).
void Link::check_drained() {
    if (life_.is_over() || !endpoint_.core().requests().idle() || !sender_.idle()) {
        return;
    }
    if (!life_.said_goodbye()) {
        life_.happen(LinkEvent::goodbye);
        if (::shutdown(socket_.fd(), SHUT_WR) != 0 && errno != ENOTCONN) {
            stream_failed(errno); // no socket of ours any more
        }
    }
}

// --- limits ---

// Something waits: for the peer to take what was sent, or for what U-9 limits.
void Link::watch_on() {
    const auto keepalive = domain_.settings().keepalive;
    if (life_.is_limited()) {
        end_limit_.begin(moved());
        look_at_limits();
    } else if (keepalive.count() > 0) {
        domain_.reactor().arm(watch_, std::chrono::milliseconds(keepalive) / 4);
    }
}

void Link::look() {
    tcp_info info{};
    socklen_t size = sizeof info;
    // A local stream has none: its peer is dead when it has ended.
    if (getsockopt(socket_.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0 && errno != EOPNOTSUPP) {
        return stream_failed(errno); // no socket of ours any more
    }
    if (!std::exchange(keeps_alive_, true)) {
        socket_.keep_alive(domain_.settings().keepalive); // a short connection needs none
    }
    if (is_dead(info)) {
        DAT_INFO(ep_ctrl, "a peer has answered nothing for %lld s: the connection is broken",
                 static_cast<long long>(domain_.settings().keepalive.count()));
        return endpoint_.over(Stimulus::broken, Reason::keepalive, Parting::abandon);
    }
    if (life_.is_limited()) {
        look_at_limits();
        return;
    }
    int unconfirmed = 0; // bytes that the peer's TCP has not confirmed
    if (ioctl(socket_.fd(), SIOCOUTQ, &unconfirmed) == 0 && unconfirmed > 0) {
        watch_on();
    }
}

// Keepalive probes are not sent while data is on its way, and a peer that keeps its
// window closed is alive; but a living one answers each probe and retransmission, so
// several without an answer, for as long as the limit, mean a dead one.
bool Link::is_dead(const tcp_info& info) const {
    constexpr unsigned kUnanswered = 3;
    const auto limit = std::chrono::milliseconds(domain_.settings().keepalive);
    const std::chrono::milliseconds silence(info.tcpi_last_ack_recv);
    return limit.count() > 0 && silence > limit &&
           (info.tcpi_retransmits >= kUnanswered || info.tcpi_probes >= kUnanswered);
}

// U-9, U-42: the limit runs while nothing moves.
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

void Link::drop_unreceived() {
    endpoint_.over(Stimulus::peer_disconnected, reset_ ? Reason::peer_reset : Reason::peer_closed,
                   reset_ ? Parting::abandon : Parting::clean);
}

void Link::not_ready_for_too_long() {
    sender_.terminate(TerminateCode::ddp_untagged_no_buffer, {}, 0);
    endpoint_.receives_missing();
}

void Link::part(Parting how) {
    const bool peer_ended = life_.peer_ended();
    const bool silent = life_.is_silent() || send_failed_;
    life_.happen(LinkEvent::part);
    receiver_.inbox().announce_rest();
    domain_.reactor().disarm(watch_);
    domain_.handshakes().disarm(again_);
    if (how == Parting::abandon || !socket_) {
        if (std::exchange(watched_, false)) {
            domain_.reactor().remove(socket_.fd(), *this);
        }
        socket_.close();
        return;
    }
    Remainder remainder =
        how == Parting::clean && !silent ? last_of_all() : rest(); // needs the socket
    const ClosingLink::Watched watched{std::exchange(watched_, false) ? this : nullptr, interest_};
    ClosingLink::begin(domain_, std::move(socket_), watched, std::move(remainder),
                       receiver_.frames_to_come(), peer_ended);
}

Remainder Link::rest() {
    Remainder remainder;
    remainder.bytes = sender_.take_rest();
    return remainder;
}

// What was put off goes out first, as far as the socket takes it; what is owed behind it is kept.
Remainder Link::last_of_all() {
    const bool dead = sender_.push(socket_.fd()) == Sender::Result::dead;
    if (dead && sender_.error() == EFAULT) {
        DAT_WARN(ep_data, "the buffer of a posted request is not readable memory");
    }
    return dead ? rest() : sender_.take_remainder();
}

} // namespace dat::iwarp
