// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How the link ends: failed work requests, events of the connection manager, and letting
// go of the queue pair. See link.h.
#include "base/attempt.h"
#include "base/log.h"
#include "engine/domain.h"
#include "engine/kernel.h"
#include "links/verbs/goodbye.h"
#include "links/verbs/link.h"
#include "links/verbs/link_parts.h"
#include "links/verbs/message_buffers.h"
#include "links/verbs/queues.h"
#include "links/verbs/shared_queue.h"
#include "links/verbs/sigpipe.h"
#include "links/verbs/unanswered.h"

#include <cerrno>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <utility>

namespace dat::verbs {

using core::DtoStatus;
using core::Reason;
using core::Stimulus;
using engine::Parting;

namespace {

// How long the connection manager may take to say why a queue pair has failed.
constexpr std::chrono::milliseconds kGrace{1000};
// How long the end waits for what is owed.
constexpr std::chrono::seconds kOwed{1};

} // namespace

DtoStatus status_of(const ibv_wc& wc, const Device& device) {
    const bool rxe_receive = device.rxe && is_receive(wc.wr_id);
    if (rxe_receive && (wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_LOC_QP_OP_ERR)) {
        return DtoStatus::local_length; // rxe's words for it: the message did not fit
    }
    switch (wc.status) {
    case IBV_WC_LOC_LEN_ERR:
        return DtoStatus::local_length;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
        return DtoStatus::local_protection;
    case IBV_WC_WR_FLUSH_ERR:
        return DtoStatus::flushed;
    case IBV_WC_MW_BIND_ERR:
        return DtoStatus::rmr_operation_failed;
    case IBV_WC_BAD_RESP_ERR:
        return DtoStatus::bad_response;
    case IBV_WC_REM_ACCESS_ERR:
        return DtoStatus::remote_access;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
        return DtoStatus::remote_responder;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return DtoStatus::receiver_not_ready;
    case IBV_WC_RETRY_EXC_ERR:
        return DtoStatus::transport;
    default:
        return DtoStatus::local_ep;
    }
}

// siw gives back so what it has sent, where the peer, who may have all of it, closes before siw has
// looked at it again; and what cannot be sent any more.
bool Link::ended_by_stream(const ibv_wc& wc) const {
    return domain_.device().siw && !is_receive(wc.wr_id) && wc.status == IBV_WC_LOC_QP_OP_ERR;
}

// The first request that the device gives back: those before it are done, and it is not, nor are
// those behind it. siw gives back a message or write as it goes out, also where a read before it
// has not been answered; what it flushes, in order.
void Link::gave_back(const ibv_wc& wc) {
    if (std::exchange(given_back_, true)) {
        return;
    }
    const std::uint64_t seq = seq_of(wc.wr_id);
    const bool late =
        ended_by_stream(wc) || (domain_.device().siw && wc.status != IBV_WC_WR_FLUSH_ERR &&
                                endpoint_.request(seq).op != engine::OpCode::read);
    finish_below(seq, late ? Reads::unanswered : Reads::answered);
}

// False: the connection is over.
bool Link::failed(const ibv_wc& wc) {
    DtoStatus status = status_of(wc, domain_.device());
    if (status == DtoStatus::flushed || ended_by_stream(wc)) {
        // The queue pair has failed, or is being closed; why, others say: the work request
        // that failed first, or the connection manager.
        if (!is_receive(wc.wr_id)) {
            if (wc.wr_id != kMarker && wc.wr_id != kReady) {
                gave_back(wc);
            }
        } else if (shared_) {
            receive_of(wc); // part of a message is in it
        }
        fail_soon(likely_reason_);
        return true;
    }
    DAT_INFO(ep_data, "%s: %s", domain_.device().name.c_str(), ibv_wc_status_str(wc.status));
    if (is_receive(wc.wr_id) && buffers_) { // what came is longer than any message of a peer
        endpoint_.over(Stimulus::broken, Reason::protocol, Parting::clean);
        return false;
    }
    if (is_receive(wc.wr_id)) {
        const std::uint64_t seq = receive_of(wc);
        if (!shared_ && endpoint_.of_old_zone(seq)) { // U-32
            status = DtoStatus::local_protection;
        }
        endpoint_.complete_receive(seq, status, 0);
        endpoint_.over(Stimulus::broken, Reason::dto_error, Parting::clean);
        return false;
    }
    if (wc.wr_id == kMarker || wc.wr_id == kReady) {
        endpoint_.over(Stimulus::broken, Reason::dto_error, Parting::clean);
        return false;
    }
    const std::uint64_t seq = seq_of(wc.wr_id);
    gave_back(wc);
    temporary_registrations_.end(wc.wr_id);
    const Reason reason =
        status == DtoStatus::receiver_not_ready ? Reason::rnr_timeout : Reason::dto_error;
    endpoint_.request_failed(seq, status, reason, Parting::clean);
    return false;
}

// U-9, or nobody has said why the queue pair has failed.
void Link::expired() {
    if (life_.drains()) {
        return done_ != drained_at_ ? watch_drain() : endpoint_.receives_missing();
    }
    endpoint_.over(Stimulus::broken, likely_reason_, Parting::abandon);
}

// Unless a completion, or the connection manager, says more of it.
void Link::fail_soon(Reason reason) {
    likely_reason_ = reason;
    if (!life_.has_failed()) {
        life_.happen(LinkEvent::fail);
        domain_.engine().handshakes().arm(*this, kGrace);
    }
}

static bool is_fatal(int event) {
    return event == IBV_EVENT_QP_FATAL || event == IBV_EVENT_CQ_ERR || event == IBV_EVENT_SRQ_ERR;
}

bool Link::has_failed_early() const { return said_early_ && is_fatal(*said_early_); }

void Link::device_says(int event) {
    const auto type = static_cast<ibv_event_type>(event);
    if (life_.is_over()) {
        return;
    }
    if (type == IBV_EVENT_COMM_EST) {
        if (!life_.has_started() && passive_) {
            peer_was_heard();
        }
        return;
    }
    const bool migrates = type == IBV_EVENT_PATH_MIG || type == IBV_EVENT_PATH_MIG_ERR;
    if (!life_.has_started() && !migrates) { // the handshake's, which ends by itself
        said_early_ = has_failed_early() ? said_early_ : event;
        return;
    }
    switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        return queues_failed(event);
    case IBV_EVENT_QP_REQ_ERR: // what the peer asked for was refused (IBA 11.6.3.2)
    case IBV_EVENT_QP_ACCESS_ERR:
        fail_soon(Reason::protocol);
        break;
    case IBV_EVENT_QP_LAST_WQE_REACHED: // of a shared queue no flushed receive tells so
        fail_soon(likely_reason_);
        break;
    default:
        break;
    }
    DAT_INFO(ep_ctrl, "%s, a connection's queue pair %u: %s", domain_.device().name.c_str(),
             number(), ibv_event_type_str(type));
}

// EP-60. What it is about completes nothing any more, so nobody else will say it.
void Link::queues_failed(int event) {
    DAT_WARN(ep_ctrl, "%s: a connection is broken: %s", domain_.device().name.c_str(),
             ibv_event_type_str(static_cast<ibv_event_type>(event)));
    life_.happen(LinkEvent::fail);
    if (take_what_is_there()) {
        endpoint_.over(Stimulus::async_error, Reason::resources, Parting::clean);
    }
}

// What an operation failed of comes before the end that follows it. False: that was it.
bool Link::take_what_is_there() {
    withdraw_offer();
    while (has_news()) {
        while (next_ != end_) {
            if (!take(*next_++)) {
                return false;
            }
        }
    }
    return true;
}

void Link::happened(const CmEvent& event) {
    if (life_.is_over()) {
        return;
    }
    if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
        return endpoint_.over(Stimulus::async_error, Reason::resources, Parting::abandon);
    }
    if (event.type != RDMA_CM_EVENT_DISCONNECTED) {
        return;
    }
    life_.happen(LinkEvent::peer_left);
    if (!take_what_is_there()) {
        return;
    }
    if (qp_failed()) { // the peer leaves because an access of its was refused
        return endpoint_.over(Stimulus::broken, Reason::protocol, Parting::clean);
    }
    // siw may end the stream by its answer to the marker.
    const bool drained = life_.state() == LinkState::left_marked;
    endpoint_.over(Stimulus::peer_disconnected, drained ? Reason::local : Reason::peer_closed,
                   Parting::clean);
}

// On iWARP the end of the stream ends the queue pair as well, and says nothing.
bool Link::qp_failed() const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr made{};
    return !domain_.device().iwarp &&
           kernel::uncancelled(ibv_query_qp, qp_, &attr, IBV_QP_STATE, &made) == 0 &&
           attr.qp_state == IBV_QPS_ERR;
}

// --- a graceful disconnect ---

void Link::drain() {
    life_.happen(LinkEvent::drain);
    domain_.engine().need_progress();
    if (life_.drains()) { // else it waits for the reason of its failure
        watch_drain();
        check_drained();
    }
}

// As long as something completes the peer takes what it is sent.
void Link::watch_drain() {
    drained_at_ = done_;
    domain_.engine().handshakes().arm(*this, domain_.engine().settings().rnr_limit);
}

// Everything is complete. On iWARP that says no more than that it has been sent: a read
// behind it is answered once it is placed. siw may answer more bytes than none, those of
// what it sent last, and the connection breaks by that; but it has answered.
void Link::check_drained() {
    const bool all = done_ == endpoint_.core().requests().next();
    const bool by_answer = domain_.device().iwarp && reads_out() > 0;
    const bool waits = life_.state() == LinkState::draining;
    if (life_.state() == LinkState::confirmed || (waits && all && !by_answer)) {
        endpoint_.over(Stimulus::drained, Reason::local, Parting::clean);
    } else if (waits && !send_marker()) {
        endpoint_.over(Stimulus::broken, Reason::dto_error, Parting::clean);
    }
}

bool Link::send_marker() {
    ibv_sge nothing{};
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.wr_id = kMarker;
    wr.sg_list = &nothing;
    wr.num_sge = domain_.device().iwarp ? 1 : 0;
    wr.opcode = domain_.device().iwarp ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (post_send_(qp_, &wr, &bad) != 0) {
        return false;
    }
    life_.happen(LinkEvent::mark);
    return true;
}

// --- letting go ---

// What is complete is taken in before the rest counts as flushed. In a failed queue pair
// each request that had not completed gives a completion, also one that asked for none:
// those before the first of them are done.
void Link::harvest() {
    while (has_news()) {
        while (next_ != end_) {
            const ibv_wc& wc = *next_++;
            if (wc.wr_id == kMarker) {
                harvest_marker(wc);
                continue;
            }
            if (wc.wr_id == kReady) {
                continue;
            }
            if (wc.status == IBV_WC_SUCCESS) {
                if (is_receive(wc.wr_id)) {
                    if (!buffers_) { // a sink has let go of the connection
                        received(wc);
                    }
                } else if (!given_back_) {
                    succeeded(seq_of(wc.wr_id));
                }
            } else if (is_receive(wc.wr_id)) {
                if (shared_) { // part of a message is in it
                    receive_of(wc);
                }
            } else {
                gave_back(wc);
            }
        }
    }
}

void Link::harvest_marker(const ibv_wc& wc) {
    const bool succeeds = wc.status == IBV_WC_SUCCESS;
    life_.happen(succeeds ? LinkEvent::confirm : LinkEvent::fail);
    if (succeeds && !given_back_) {
        finish_below(endpoint_.core().requests().next(), Reads::answered);
    }
}

// A queue pair that has failed sends no more, and one that has not takes messages into receives
// that are the program's again: so what is owed is waited for here, while the peer answers.
void Link::finish_owed() {
    constexpr std::chrono::milliseconds kHeld{100};
    constexpr int kSpins = 64;
    const std::uint64_t end = endpoint_.owed_end(done_);
    const auto begin = engine::Clock::now();
    const bool by_answer = domain_.device().iwarp && reads_out() > 0;
    const auto is_done = [&] {
        return done_ >= end && (life_.state() == LinkState::confirmed || !by_answer);
    };
    life_.happen(LinkEvent::drain);
    for (int spins = 0; !is_done(); ++spins) {
        const auto passed = engine::Clock::now() - begin;
        if (life_.has_failed() || given_back_ || passed > kOwed) {
            break;
        }
        if (life_.holds() && (heard() || passed > kHeld)) {
            release();
        }
        if (life_.state() == LinkState::draining) {
            (void)send_marker();
        }
        harvest();
        if (spins > kSpins) {
            const kernel::NoCancel asleep;
            ::poll(nullptr, 0, 1);
        }
    }
    if (done_ < end) {
        DAT_WARN(ep_data,
                 "a connection is closed although its peer's device has not taken %llu requests "
                 "that were posted without a completion",
                 static_cast<unsigned long long>(end - done_));
    }
}

void Link::leave_unanswered() {
    queues_->belong_to(nullptr);
    std::unique_ptr<Unanswered> left;
    if (!base::attempt(
            [&] { left = std::make_unique<Unanswered>(domain_, std::move(queues_), id_); })) {
        return;
    }
    id_ = nullptr;
    if (left->start()) {
        domain_.engine().defer_close(std::move(left));
    }
}

// On iWARP a disconnect has no answer: who makes one has left the stream, and so has the peer.
std::unique_ptr<engine::HalfClosed> Link::half_close(bool left) {
    if (domain_.device().iwarp || (left && life_.peer_left())) {
        return nullptr;
    }
    std::unique_ptr<KeptId> kept;
    (void)base::attempt([&] { kept = std::make_unique<KeptId>(domain_, endpoint_, left); });
    // cppcheck-suppress danglingLifetime ; what is kept goes to the caller, and lasts
    kept_ = kept.get();
    return kept;
}

void Link::part(Parting how) {
    withdraw_offer();
    const bool started = life_.has_started();
    if (how == Parting::clean && started && !life_.peer_left() &&
        endpoint_.owed_end(done_) != done_) {
        finish_owed();
    }
    life_.happen(LinkEvent::part);
    domain_.remove(*this);
    domain_.engine().handshakes().disarm(*this);
    domain_.engine().handshakes().disarm(opening_);
    if (qp_) {
        const NoSigpipe guard(domain_.device().siw);
        const bool iwarp = domain_.device().iwarp;
        ibv_qp_attr failed{};
        failed.qp_state = IBV_QPS_ERR;
        if (!iwarp) {
            kernel::uncancelled(ibv_modify_qp, qp_, &failed, IBV_QP_STATE);
        }
        const bool told = how != Parting::abandon && started && rdma_disconnect(id_) == 0;
        if (iwarp && !told) { // else it would send no more
            kernel::uncancelled(ibv_modify_qp, qp_, &failed, IBV_QP_STATE);
        }
        harvest();
        domain_.windows().link_ends(this, domain_.engine().regions());
        // From here on the device touches no memory of the program.
        id_->qp = nullptr;
        if (unanswered_) {
            leave_unanswered();
        }
        queues_.reset();
        buffers_.reset();
        qp_ = nullptr;
        cq_ = nullptr;
        if (kept_ && (told || !kept_->watching())) {
            kept_->take(std::exchange(id_, nullptr));
        } else if (told && !iwarp) {
            say_goodbye(domain_, std::exchange(id_, nullptr));
        }
    }
    temporary_registrations_.end_all();
    shared_.reset(); // the last one: what nobody has taken goes back
    if (id_) {
        kernel::uncancelled(rdma_destroy_id, id_);
        id_ = nullptr;
    }
}

} // namespace dat::verbs
