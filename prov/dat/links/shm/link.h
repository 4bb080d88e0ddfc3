// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The link over memory that two processes of one host share: a channel of their peering, whose
// socket wakes a sleeping peer, and whose end is the peer's end. Under the domain's lock.
#ifndef DAT_LINKS_SHM_LINK_H
#define DAT_LINKS_SHM_LINK_H

#include "engine/barrier.h"
#include "engine/link.h"
#include "engine/link_life.h"
#include "engine/reactor.h"
#include "engine/stall_timer.h"
#include "links/shm/kept_channel.h"
#include "links/shm/peering.h"
#include "links/shm/receiver.h"
#include "links/shm/segment.h"
#include "links/shm/sender.h"
#include "net/socket.h"

#include <cstdint>
#include <memory>

namespace dat::shm {

class Link final : public engine::MemoryLink, private Party {
  public:
    static constexpr engine::LinkKind kKind = engine::LinkKind::shm;

    // `name`: of this side, on the connection on which this one was agreed.
    Link(engine::Endpoint& endpoint, std::shared_ptr<Channel> channel,
         const LinkParameters& parameters, const net::SocketAddress& name = {});
    ~Link() override;

    const net::SocketAddress& name() const { return name_; }

    // The request has been posted under `seq`.
    void transmit(engine::Request& request, std::uint64_t seq, bool) override {
        if (sender_.send_short(request, seq)) [[likely]] {
            tell(kForRecords);
            if (asleep_) [[unlikely]] {
                stay_wakeable();
            }
        } else {
            push();
        }
    }
    bool confirms_delivery() const override { return true; }
    bool dat_peer() const override { return true; }
    bool wide() const override { return true; }
    bool peer_serves_reads() const override { return sender_.peer_serves_reads(); }

    bool copy_from_peer(std::span<const iovec> from, std::span<const iovec> to) override {
        return receiver_.copy_from_peer(from, to);
    }
    bool copies_from_peer() const override { return receiver_.pulls(); }
    bool peer_may_push() const override {
        const std::uint32_t asleep = side_.peers->asleep.load(std::memory_order_relaxed);
        return asleep == 0 || (asleep & kByDoorbell) != 0;
    }

    // Where it stands, for tests.
    engine::LinkState state() const { return life_.state(); }

    void start() override;
    void poll() override;
    void push() override;
    void receive_posted() override;
    void drain() override;
    void part(engine::Parting how) override;
    std::unique_ptr<engine::HalfClosed> half_close(bool left) override {
        return keep_channel(endpoint_, channel_, left);
    }
    bool arm() override;
    bool has_news() const override;
    void disarm() override;
    std::uint64_t taken_by_peer() const override {
        return side_.peers->records_taken.load(std::memory_order_relaxed);
    }
    void remind_peer() override;

  private:
    // Something to wait for, looked at in steps.
    struct Watch final : engine::Timer {
        explicit Watch(Link& link) : link_(link) {}
        void expired() override { link_.look_at_limits(); }
        Link& link_;
    };

    // The peer is woken if it sleeps and waits for that.
    void tell(Wake why) {
        if (fences_) [[unlikely]] {
            engine::full_fence();
        } else { // the peer's heavy_barrier() does it for both; the compiler has to keep the order
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        if ((side_.peers->asleep.load(std::memory_order_relaxed) & why) != 0) [[unlikely]] {
            wake_peer();
        } else if (why == kForRecords) {
            domain_.memory().told_nobody(*this);
        }
    }
    void wake_peer();
    void ring();
    void tired();
    void rung() override;
    void peer_gone() override;
    void lost() override;
    void get_up();
    void stay_wakeable();
    void receive();
    void after_receiving();
    bool heed_peer();
    void look();
    void faulted();
    void violated();
    void source_gone();
    void peer_ended();
    void finish();
    void peer_faulted();
    void check_drained();
    void watch_on();
    void look_at_limits();
    std::uint64_t moved() const {
        return sender_.records() + receiver_.records() + receiver_.inbox().placed();
    }
    void not_ready_for_too_long();
    void drop_unreceived();
    void end_as(End end); // of the peer
    void say_end(End end, std::uint32_t code);
    Remainder last_of_all();

    engine::Endpoint& endpoint_;
    engine::Domain& domain_;
    const std::shared_ptr<Channel> channel_;
    const Side side_;
    const bool fences_;
    const net::SocketAddress name_;
    Sender sender_;
    Receiver receiver_;
    Watch watch_{*this};
    bool asleep_ = false;
    bool by_doorbell_ = false; // asleep_, and polled when the peer has rung
    bool for_room_ = false;    // and the peer rings for room as well
    bool peer_gone_ = false;   // as it was told
    engine::LinkLife life_;
    engine::EndLimit end_limit_;
};

} // namespace dat::shm

#endif
