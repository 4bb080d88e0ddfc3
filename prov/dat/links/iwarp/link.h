// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The iWARP link: a sender and a receiver on one TCP socket, what its end means
// (U-2), and the limits on waiting (U-9, U-42). Under the domain's lock.
#ifndef DAT_LINKS_IWARP_LINK_H
#define DAT_LINKS_IWARP_LINK_H

#include "engine/link.h"
#include "engine/link_life.h"
#include "engine/reactor.h"
#include "engine/stall_timer.h"
#include "links/iwarp/receiver.h"
#include "links/iwarp/sender.h"
#include "net/socket.h"

#include <cstddef>
#include <cstdint>
#include <netinet/tcp.h>
#include <span>

namespace dat::iwarp {

using net::Socket;
using net::SocketAddress;

class Link final : public engine::Link, private engine::Pollable {
  public:
    static constexpr engine::LinkKind kKind = engine::LinkKind::iwarp;
    using Parameters = LinkParameters;

    // `early`: bytes that the handshake read behind its own. Throws std::bad_alloc.
    // `local`: the address and port of this side.
    Link(engine::Endpoint& endpoint, Socket socket, const SocketAddress& local,
         const Parameters& parameters, std::span<const std::byte> early = {});
    ~Link() override;

    // The address and port of this side.
    const SocketAddress& local() const { return local_; }

    // The request has been posted under `seq`; `more`: another follows at once.
    void transmit(engine::Request& request, std::uint64_t, bool more) override {
        // The first post since the last progress goes out at once, for its latency;
        // small ones behind it go together at the next progress, in one system call.
        if (blocked_) {
            return; // the reactor says when there is room
        }
        const bool small = request.length <= kSmall;
        const bool next = sent_in_ == domain_.round();
        if (more || (small && next && domain_.is_attended())) {
            put_off();
        } else {
            sent_in_ = domain_.round();
            push();
        }
    }

    // FI_DELIVERY_COMPLETE can be kept: between `dat` peers always, towards another by
    // a read behind the request, where it serves any (U-61).
    bool confirms_delivery() const override { return sender_.confirms_delivery(); }

    // The peer understands what goes beyond RFC 5040.
    bool dat_peer() const override { return sender_.dat_peer(); }
    bool wide() const override { return sender_.wide(); }
    // An RDMA read would ever go out.
    bool peer_serves_reads() const override { return sender_.peer_serves_reads(); }

    // Where it stands, for tests.
    engine::LinkState state() const { return life_.state(); }

    void describe(engine::LinkFacts& facts) const override;
    void start() override;
    void poll() override;
    void push() override;
    void receive_posted() override;
    void drain() override;
    void part(engine::Parting how) override;
    std::unique_ptr<engine::HalfClosed> half_close(bool left) override {
        return engine::keep_stream(domain_, endpoint_, socket_.fd(), left);
    }

  private:
    static constexpr std::uint64_t kSmall = 16384; // bytes
    // Something to wait for, looked at in steps.
    struct Watch final : engine::Timer {
        explicit Watch(Link& link) : link_(link) {}
        void expired() override { link_.look(); }
        Link& link_;
    };

    // Ready-to-receive is said again while nothing else has been said.
    struct Again final : engine::Timer {
        explicit Again(Link& link) : link_(link) {}
        void expired() override { link_.ready_again(); }
        Link& link_;
    };

    void ready(std::uint32_t events) override;
    void lost() override;
    void expect_answer();
    void ready_again();
    void put_off();
    std::uint32_t interest() const;
    void update_interest();
    void send_failed();
    void receive();
    bool read_once();
    void after_receiving();
    void stream_ended();
    void stream_failed(int error);
    void peer_is_gone();
    void faulted();
    void source_gone();
    void check_drained();
    void watch_on();
    void look();
    void look_at_limits();
    bool is_dead(const tcp_info& info) const;
    std::uint64_t moved() const { return sender_.bytes_sent() + received_bytes_; }
    void not_ready_for_too_long();
    void drop_unreceived();
    void messages_wait();
    Remainder rest();
    Remainder last_of_all();

    engine::Endpoint& endpoint_;
    engine::Domain& domain_;
    Socket socket_;
    Sender sender_;
    Receiver receiver_;
    Watch watch_{*this};
    Again again_{*this};
    int times_ready_ = 0;          // ready-to-receive was sent
    std::uint64_t ready_sent_ = 0; // bytes_sent() after that
    std::uint64_t sent_in_ = 0;    // the round of the domain in which a post went out at once
    std::uint32_t interest_ = 0;   // what the reactor watches for
    bool watched_ = false;         // in the reactor
    bool put_off_ = false;         // in the domain's list of pushes
    bool blocked_ = false;         // the socket is full
    bool says_ready_ = false;      // to a peer that may miss it
    bool stopped_ = false;         // reading has stopped: too much is staged
    bool reset_ = false;           // the peer's end is none in order
    bool send_failed_ = false;     // and so will every send
    bool keeps_alive_ = false;     // the socket has its keepalive
    engine::LinkLife life_;
    std::uint64_t received_bytes_ = 0;
    engine::EndLimit end_limit_;
    const SocketAddress local_;
};

} // namespace dat::iwarp

#endif
