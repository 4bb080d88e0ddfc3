// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See rdm_peer.h.
#include "ofi/rdm_peer.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/random.h"
#include "ofi/errors.h"
#include "ofi/rdm_ep.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

namespace dat::ofi {

using core::RdmAction;
using core::RdmState;

namespace {

constexpr core::RdmPeer::Limits kLimits;
constexpr std::chrono::seconds kConnectTimeout{10};

core::RdmReply reply_in(const rdm::Hello& hello) {
    return {hello.from, hello.number, hello.refusal};
}

} // namespace

RdmPeer::RdmPeer(RdmEndpoint& endpoint, rdm::Messages& messages, const net::SocketAddress& address,
                 std::uint32_t number, UnknownSources::Number unknown_source)
    : rdm::Peer(messages, static_cast<rdm::PeerOwner&>(*this), number), of_(endpoint),
      address_(address), unknown_source_(std::move(unknown_source)),
      look_(endpoint.domain().engine().settings().rdm_idle.count() > 0
                ? std::make_unique<Look>(*this)
                : nullptr) {}

RdmPeer::~RdmPeer() = default;

bool RdmPeer::is_at_rest() const {
    return machine_.state() == RdmState::idle || machine_.state() == RdmState::dead;
}

void RdmPeer::become(const net::SocketAddress& address, UnknownSources::Number unknown_source) {
    address_ = address;
    unknown_source_ = std::move(unknown_source);
    machine_ = {};
    current_ = 0;
    gives_up_ = leaves_ = false;
    rma_waits_ = rma_failed_ = false;
}

void RdmPeer::wanted(rdm::Peer&) { act(machine_.operation()); }

ssize_t RdmPeer::ready_for_rma() {
    if (flows() || (is_self() && machine_.state() == RdmState::connected)) {
        return 0;
    }
    if (rma_failed_ && endpoint_) { // it completes as what that attempt has flushed
        rma_failed_ = false;
        return 0;
    }
    rma_waits_ = true;
    act(machine_.operation());
    return -FI_EAGAIN;
}

void RdmPeer::act(const Answer& answer, Incoming* request) {
    if (answer.has(RdmAction::drop) && request && endpoint_) {
        end_now(); // so that nothing is outstanding of what fails
    }
    if (answer.has(RdmAction::fail)) {
        rma_failed_ = std::exchange(rma_waits_, false);
        fail();
    }
    if (answer.has(RdmAction::stop)) {
        of_.domain().engine().handshakes().disarm(*this);
    }
    if (answer.has(RdmAction::drop)) {
        drop_soon();
    }
    if (request && (answer.has(RdmAction::refuse_crossed) || answer.has(RdmAction::refuse_stale) ||
                    answer.has(RdmAction::refuse_other))) {
        refuse(*request, answer);
    }
    if (answer.has(RdmAction::accept)) {
        accept(*request, answer);
    }
    if (answer.has(RdmAction::connect)) {
        current_ = 0;
        // Not in the middle of the end of what its endpoint was connected with.
        if (answer.stimulus == core::RdmStimulus::ended_wanted) {
            of_.attempt_soon(*this);
        } else {
            of_.attempt(*this);
        }
    }
    if (answer.has(RdmAction::leave)) {
        leaves_ = true;
        of_.domain().engine().defer(drop_);
    }
    if (answer.has(RdmAction::ask)) {
        say_of_release(rdm::Kind::ask);
    }
    if (answer.has(RdmAction::agree)) {
        say_of_release(rdm::Kind::agree);
    }
    if (answer.has(RdmAction::decline)) {
        say_of_release(rdm::Kind::decline);
    }
    if (answer.has(RdmAction::retry) || answer.has(RdmAction::expect)) {
        start_timer();
    }
    if (answer.has(RdmAction::go)) {
        rma_waits_ = rma_failed_ = false;
        if (answer.stimulus != core::RdmStimulus::declined) {
            DAT_INFO(ep_ctrl, "connected with the peer %s", address_.text().c_str());
        }
        if (is_self()) {
            return; // whose messages need no connection
        }
        if (look_) {
            of_.domain().engine().handshakes().arm(*look_,
                                                   of_.domain().engine().settings().rdm_idle);
        }
        if (answer.stimulus == core::RdmStimulus::established) {
            connected(endpoint_->engine(), window_, false);
        } else {
            go_on();
        }
    }
    if (is_at_rest()) {
        of_.rests(*this);
    }
}

void RdmPeer::start_timer() {
    const auto after = std::chrono::microseconds(
        machine_.retry_us(kLimits, static_cast<std::uint32_t>(engine::random_bits())));
    of_.domain().engine().handshakes().arm(*this, after);
}

void RdmPeer::expired() { act(machine_.due(has_queued() || rma_waits_, kLimits)); }

// Nothing of the connection, or attempt, counts any more.
void RdmPeer::drop_soon() {
    current_ = 0;
    parted();
    attempt_over();
    of_.domain().engine().defer(drop_);
}

void RdmPeer::drop() {
    engine::Domain::forget(drop_);
    const bool leaves = std::exchange(leaves_, false);
    if (endpoint_ && (current_ == 0 || leaves || std::exchange(gives_up_, false))) {
        endpoint_->engine().disconnect(false);
    }
}

// What nothing has used since the last look is let go, if the peer agrees.
void RdmPeer::look_for_use() {
    if (machine_.state() != RdmState::connected) {
        return;
    }
    const std::uint64_t before = std::exchange(look_->activity_, activity());
    if (before == look_->activity_ && is_quiet() && !rma_waits_) {
        return act(machine_.unused(current_));
    }
    of_.domain().engine().handshakes().arm(*look_, of_.domain().engine().settings().rdm_idle);
}

void RdmPeer::asked(rdm::Peer&) { act(machine_.asked(current_, !is_quiet() || rma_waits_)); }

void RdmPeer::agreed(rdm::Peer&) {
    const Answer answer = machine_.agreed(current_);
    if (answer.has(RdmAction::leave)) {
        DAT_INFO(ep_ctrl, "the connection with the peer %s is let go, which nothing uses",
                 address_.text().c_str());
    }
    act(answer);
}

void RdmPeer::declined(rdm::Peer&) { act(machine_.declined(current_)); }

// Not in the middle of its link's work.
void RdmPeer::end_now() {
    current_ = 0;
    endpoint_->engine().disconnect(false);
    parted();
}

void RdmPeer::attempt_over() {
    if (std::exchange(attempting_, false)) {
        of_.attempt_over();
    }
}

bool RdmPeer::make(std::unique_ptr<Endpoint>& endpoint, std::unique_ptr<Endpoint>& unready,
                   EndpointWatcher& watcher) {
    if (!endpoint && no_throw([&] {
                         if (!unready) {
                             unready = of_.make_endpoint(watcher);
                             unready->engine().set_sink(this); // which a device has memory for
                         }
                         return unready->make_ready();
                     }) == 0) {
        endpoint = std::move(unready);
    }
    return endpoint != nullptr;
}

bool RdmPeer::make_endpoint() {
    if (!make(endpoint_, unready_, static_cast<EndpointWatcher&>(*this))) {
        return false;
    }
    drop();
    return endpoint_->engine().core().state() == core::State::unconnected ||
           endpoint_->engine().reset();
}

// Its turn among the attempts has come.
void RdmPeer::begin_attempt() {
    attempting_ = true;
    current_ = 0;
    int rc = -ENOMEM;
    if (make_endpoint()) {
        rdm::Hello hello = of_.hello();
        const core::RdmHello says = machine_.begin(of_.self());
        hello.from = says.from;
        hello.to = is_self() ? of_.secret() : says.to;
        hello.number = says.number;
        RdmEndpoint::HelloBytes bytes;
        current_ = machine_.connection();
        rc = endpoint_->connect_watched(address_, of_.write(hello, bytes), kConnectTimeout);
    }
    if (rc) {
        DAT_INFO(ep_ctrl, "cannot connect to the peer %s: %s", address_.text().c_str(),
                 std::strerror(-rc));
        attempt_over();
        current_ = 0;
        act(machine_.failed(machine_.connection(), kLimits));
    }
}

void RdmPeer::refuse(Incoming& request, const Answer& answer) {
    const core::RdmReply reply = core::RdmPeer::reply(of_.self(), answer);
    rdm::Hello hello = of_.hello();
    hello.number = reply.given_up;
    hello.refusal = reply.refusal;
    RdmEndpoint::HelloBytes bytes;
    request.reject(of_.write(hello, bytes));
}

void RdmPeer::requested(Incoming& request, const rdm::Hello& hello) {
    const core::RdmHello says{hello.from, hello.to, hello.number};
    const std::uint32_t window = std::exchange(window_, hello.window);
    const Answer answer = machine_.request(of_.self(), says);
    if (!answer.has(RdmAction::accept)) {
        window_ = window;
    }
    act(answer, &request);
}

void RdmPeer::requested_by_self(Incoming& request) {
    if (!make(far_end_, unready_far_end_, unheard_)) {
        return;
    }
    engine::Endpoint& far = far_end_->engine();
    far.disconnect(false);
    if (far.core().state() == core::State::unconnected || far.reset()) {
        RdmEndpoint::HelloBytes bytes;
        far_end_->accept_watched(request, of_.write(of_.hello(), bytes));
    }
}

void RdmPeer::accept(Incoming& request, const Answer& answer) {
    attempt_over();
    of_.forget(*this);
    current_ = 0;
    parted();
    int rc = -ENOMEM;
    if (make_endpoint()) {
        rdm::Hello hello = of_.hello();
        hello.number = core::RdmPeer::reply(of_.self(), answer).given_up;
        RdmEndpoint::HelloBytes bytes;
        current_ = machine_.connection();
        rc = endpoint_->accept_watched(request, of_.write(hello, bytes));
    }
    if (rc) {
        DAT_INFO(ep_ctrl, "cannot accept the peer %s: %s", address_.text().c_str(),
                 std::strerror(-rc));
        current_ = 0;
        act(machine_.ended(machine_.connection(), has_queued() || rma_waits_));
    }
}

void RdmPeer::give_up(rdm::Peer&) {
    DAT_WARN(ep_data, "out of memory for messages of the peer %s: its connection ends",
             address_.text().c_str());
    gives_up_ = true;
    of_.domain().engine().defer(drop_);
}

void RdmPeer::confirmed(rdm::Peer&) { act(machine_.confirmed(current_)); }

void RdmPeer::note_answer(const core::ConnectionEvent& event) {
    rdm::Hello hello;
    const core::RdmPeer::Connection of = current_;
    if (!get(event.private_data.data(), event.private_data.size(), hello)) {
        const Answer answer = machine_.failed(of, kLimits);
        if (event.event == core::Event::established) {
            DAT_WARN(ep_ctrl, "%s is no reliable datagram endpoint of `dat`",
                     address_.text().c_str());
            drop_soon();
        }
        return act(answer);
    }
    window_ = hello.window;
    const Answer answer = machine_.answered(of, reply_in(hello), kLimits);
    if (event.event == core::Event::established && !answer.has(RdmAction::go) &&
        !answer.has(RdmAction::drop)) {
        drop_soon();
    }
    act(answer);
}

void RdmPeer::raised(const core::ConnectionEvent& event) {
    if (current_ == 0) {
        return; // of what does not count any more
    }
    if (event.event == core::Event::established) {
        attempt_over();
        if (machine_.state() == RdmState::connecting) {
            return note_answer(event);
        }
        return connected(endpoint_->engine(), window_, true);
    }
    attempt_over();
    if (machine_.state() == RdmState::connecting) {
        note_answer(event);
        current_ = machine_.state() == RdmState::connecting ? current_ : 0;
        return;
    }
    const core::RdmPeer::Connection of = std::exchange(current_, 0);
    const bool queued = has_queued() || rma_waits_;
    DAT_INFO(ep_ctrl, "the connection with the peer %s has ended", address_.text().c_str());
    const Answer answer = machine_.ended(of, queued);
    if (!answer.has(RdmAction::fail)) {
        parted();
        return act(answer);
    }
    act(answer);
    parted();
}

void RdmPeer::remove() {
    of_.domain().engine().handshakes().disarm(*this);
    if (look_) {
        of_.domain().engine().handshakes().disarm(*look_);
    }
    of_.forget(*this);
    attempt_over();
    if (endpoint_) {
        end_now();
    }
    fail();
    engine::Domain::forget(drop_);
    unknown_source_ = {};
}

} // namespace dat::ofi
