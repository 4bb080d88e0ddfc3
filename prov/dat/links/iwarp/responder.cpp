// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The responder's handshake, from the accept to ready-to-receive. See connect.h.
#include "links/iwarp/connect.h"
#include "links/iwarp/handshake.h"
#include "links/iwarp/link.h"
#include "links/shm/link.h"

#include <optional>
#include <sys/epoll.h>
#include <vector>

namespace dat::iwarp {
namespace {

using core::Reason;
using core::Stimulus;

class Responder final : public TcpHandshake, private shm::Host {
  public:
    explicit Responder(engine::Endpoint& endpoint) : TcpHandshake(endpoint) {}

    void begin(Arrived&& request, std::span<const std::byte> private_data) {
        TcpHandshake::begin(std::move(request.socket));
        local_ = request.local;
        peer_ = request.peer;
        early_ = std::move(request.early);
        asked_ns_ = request.at_ns;
        proposal_ = request.proposal;
        listener_ = request.listener;
        is_local_ = proposal_.has_value();
        reply_to(request.frame, private_data);
    }

  private:
    void reply_to(const MpaFrame& request, std::span<const std::byte> private_data) {
        const bool dat_peer = request.from_dat;
        MpaFrame reply;
        reply.kind = MpaKind::reply;
        reply.revision = request.revision;
        reply.crc = request.crc || wants_crc(domain_.settings().crc, local_, peer_);
        reply.from_dat = reply.wide = dat_peer;
        parameters_.dat_peer = dat_peer;
        parameters_.wide = dat_peer && request.wide;
        parameters_.crc = reply.crc;
        parameters_.ord = depth(endpoint_.reads().out, kUnknownReadDepth);
        parameters_.ird = endpoint_.reads().in;
        if (request.enhanced) {
            reply.enhanced = negotiate(*request.enhanced);
        }
        parameters_.hold = !parameters_.await_rtr;
        why_tcp_ = !dat_peer                 ? "the peer is no `dat`"
                   : !domain_.settings().shm ? "FI_DAT_SHM=0"
                   : !request.memory ? "the peer asks for no shared memory: it is on another "
                                       "host, or has FI_DAT_SHM=0"
                   : request.memory_of_0_1()
                       ? "the peer is version 0.1, whose memory has another layout"
                   : !is_local_ && !on_this_host(local_, peer_) ? "the peer is on another host"
                   : !is_local_ && !leaves_room(private_data)
                       ? "the private data leave no room for an offer of shared memory"
                   : !parameters_.await_rtr ? "the peer sends no ready-to-receive"
                                            : nullptr;
        shm::Placed placed;
        if (!why_tcp_ && !base::attempt([&] { offer_memory(placed); })) {
            DAT_WARN(ep_ctrl, "a connection of one host stays on TCP: out of memory");
        }
        if (!why_tcp_) {
            why_tcp_ = offer_ ? "the peer did not take the offer of shared memory"
                              : "shared memory cannot be offered";
        }
        std::array<std::byte, kMpaMaxPrivateData> data;
        auto end = std::ranges::copy(private_data, data.begin()).out;
        if (offer_ && !is_local_) {
            end = std::ranges::copy(*offer_, end).out;
        }
        reply.memory = offer_.has_value();
        reply.private_data = {data.begin(), end};
        const auto behind = std::as_bytes(std::span(&placed, offer_ && is_local_ ? 1u : 0u));
        prepare(reply, {}, behind);
        if (!is_local_ && gone()) { // a local stream tells who sends to it
            return fail_soon(Stimulus::handshake_failed, Reason::peer_closed);
        }
        domain_.handshakes().arm(*this, domain_.settings().handshake_limit);
        reply_now();
    }

    void offer_memory(shm::Placed& placed) {
        shm::LocalListener* const local_listener = shm::LocalListener::of(domain_);
        if (!local_listener) {
            return;
        }
        if (is_local_) {
            offer_ = local_listener->offer(*this, *proposal_, listener_, placed);
            is_placed_ = placed.has_place != 0;
        } else {
            offer_ = local_listener->offer(*this, shm::ends_of(peer_, local_), listener_);
        }
    }

    void abandon() override {
        withdraw();
        TcpHandshake::abandon();
    }

    void withdraw() {
        if (offer_) {
            const shm::Offer offer = *offer_;
            offer_.reset();
            shm::LocalListener::at(domain_).withdraw(offer);
        }
    }

    // The initiator may leave this connection before it is seen to have come.
    void invited() override { ignore(); }

    void stayed_out() override {
        offer_.reset();
        if (watch(replied_ ? EPOLLIN : EPOLLOUT) != 0) {
            fail_soon(Stimulus::handshake_failed, Reason::peer_closed);
        }
    }

    // The initiator has come by the other way.
    void joined(shm::Joint joint) override {
        offer_.reset();
        joint.parameters.ord = parameters_.ord;
        joint.parameters.ird = parameters_.ird;
        log_memory(joint);
        const Socket left = detach();
        if (auto link = make_link<shm::Link>(Stimulus::handshake_failed, std::move(joint.channel),
                                             joint.parameters, local_)) {
            say_why(*link, joint);
            endpoint_.established(attempt_, Stimulus::handshake_done, std::move(link), {});
        }
    }

    // RFC 6581 9: what is served and asked for at once, and which ready-to-receive
    // frame the initiator is to send.
    MpaEnhanced negotiate(const MpaEnhanced& offer) {
        parameters_.ord = depth(endpoint_.reads().out, offer.ird);
        parameters_.ird = depth(endpoint_.reads().in, offer.ord);
        MpaEnhanced answer;
        answer.ird = parameters_.ird;
        answer.ord = parameters_.ord;
        answer.peer_to_peer = offer.peer_to_peer &&
                              (offer.rtr_rdma_write || offer.rtr_rdma_read || offer.rtr_empty_fpdu);
        answer.rtr_rdma_write = answer.peer_to_peer && offer.rtr_rdma_write;
        answer.rtr_rdma_read = answer.peer_to_peer && !answer.rtr_rdma_write && offer.rtr_rdma_read;
        answer.rtr_empty_fpdu =
            answer.peer_to_peer && !answer.rtr_rdma_write && !answer.rtr_rdma_read;
        parameters_.await_rtr = answer.peer_to_peer;
        return answer;
    }

    void expired() override {
        if (fails_soon()) {
            return fail_now();
        }
        DAT_INFO(ep_ctrl, "%s was accepted but sent no ready-to-receive frame within %lld s",
                 peer_.text().c_str(),
                 static_cast<long long>(domain_.settings().handshake_limit.count()));
        fail(Stimulus::handshake_failed, Reason::handshake_limit);
    }

    void ready(std::uint32_t) override {
        if (!replied_) {
            return reply_now();
        }
        std::size_t before = 0;
        do {
            before = in_;
            read_first();
        } while (socket_ && in_ != before);
    }

    void reply_now() {
        // Taken before: a reply does not arrive before it is sent.
        const std::uint64_t now_ns = engine::trace_now_ns();
        const int sent = send();
        if (sent < 0) {
            if (is_placed_ && offer_ && !begun()) {
                shm::LocalListener::at(domain_).unsaid(*std::exchange(offer_, {}));
            }
            return fail_soon(Stimulus::handshake_failed,
                             is_local_ ? Reason::peer_closed : Reason::peer_reset);
        }
        replied_ = sent > 0;
        if (replied_ && endpoint_.trace()) {
            endpoint_.trace()->clock(false, attempt_, asked_ns_, now_ns);
        }
        if (replied_) { // the buffer is free for what comes in
            std::ranges::copy(early_, buffer_.begin());
            in_ = early_.size();
        }
        if (replied_ && is_placed_ && offer_) {
            return ignore(); // what it makes of the place it says by the peering
        }
        if (replied_ && (!parameters_.await_rtr || has_first())) {
            return done();
        }
        if (watch(replied_ ? EPOLLIN : EPOLLOUT) != 0) {
            fail_soon(Stimulus::handshake_failed, Reason::peer_closed);
        }
    }

    // Until the header of the first frame is there: ready-to-receive or, from a peer
    // that leaves it out, anything else. What comes behind it is read along, so that it is one
    // read.
    void read_first() {
        const ssize_t n = kernel::recv(socket_.fd(), buffer_.data() + in_, buffer_.size() - in_, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n <= 0) {
            return fail(Stimulus::requester_gone, // EP-50
                        n < 0 ? Reason::peer_reset : Reason::peer_closed);
        }
        in_ += static_cast<std::size_t>(n);
        if (has_first()) {
            done();
        }
    }

    bool has_first() const {
        return in_ >= kFpduLengthSize &&
               in_ >= std::min(fpdu_size(peek_ulpdu_size(buffer_.data())), kFpduUntaggedHeaderSize);
    }

    void done() {
        withdraw();
        log_tcp(why_tcp_);
        auto link = make_link<Link>(Stimulus::handshake_failed, detach(), local_, parameters_,
                                    std::span<const std::byte>(buffer_.data(), in_));
        if (link) {
            link->say_why(why_tcp_);
            endpoint_.established(attempt_, Stimulus::handshake_done, std::move(link), {});
        }
    }

    Link::Parameters parameters_;
    const char* why_tcp_ = nullptr;   // if it comes to that; once it has begun
    std::optional<shm::Offer> offer_; // that stands
    std::optional<shm::Proposal> proposal_;
    shm::Name listener_{};
    bool is_placed_ = false; // the reply gives a place in memory
    bool replied_ = false;
    std::uint64_t asked_ns_ = 0; // when the request had arrived
    std::vector<std::byte> early_;
    std::size_t in_ = 0; // bytes of the first frames in buffer_
};

} // namespace

int accept(engine::Endpoint& endpoint, ConnRequest& request,
           std::span<const std::byte> private_data) {
    DAT_ASSERT(private_data.size() <= request.max_private_data());
    if (!request.pending()) {
        return -EINVAL;
    }
    std::unique_ptr<Responder> handshake;
    if (!base::attempt([&] { handshake = std::make_unique<Responder>(endpoint); })) {
        return -ENOMEM;
    }
    if (const int error = endpoint.domain().start_progress(); error != 0) {
        return error;
    }
    if (!endpoint.begin_accept()) {
        return -EISCONN;
    }
    request.core_.settle(core::ConnRequest::Fate::accepted);
    if (!request.arrived_.proposal &&
        request.keepalive_ != endpoint.domain().settings().keepalive) {
        request.arrived_.socket.keep_alive(endpoint.domain().settings().keepalive);
    }
    Responder& responder = *handshake;
    endpoint.run(std::move(handshake));
    responder.begin(std::move(request.arrived_), private_data);
    return 0;
}

} // namespace dat::iwarp
