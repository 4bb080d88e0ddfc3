// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The link over memory that two processes of one host share. A local socket between
// them carries nothing but rings: it wakes a sleeping peer, and its end is the peer's
// end. Under the domain's gate. May include: soft, core, base, soft/iwarp/socket.h,
// system headers.
#ifndef DAT_SOFT_SHM_LINK_H
#define DAT_SOFT_SHM_LINK_H

#include "soft/barrier.h"
#include "soft/iwarp/socket.h"
#include "soft/link.h"
#include "soft/reactor.h"
#include "soft/shm/doorbell.h"
#include "soft/shm/receiver.h"
#include "soft/shm/segment.h"
#include "soft/shm/sender.h"
#include "soft/standstill.h"

#include <cstdint>

namespace dat::shm {

class Link final : public soft::MemoryLink, private soft::Pollable {
  public:
    static constexpr soft::LinkKind kKind = soft::LinkKind::shm;

    // `bell`: a connected local socket that keeps messages apart. `name`: of this side, on
    // the connection on which this one was agreed. `place`: where each side can ring for the
    // other without a system call, if there is one.
    Link(soft::Endpoint& endpoint, iwarp::Socket bell, Segment segment,
         const LinkParameters& parameters, const iwarp::SocketAddress& name = {},
         DoorbellPlace place = {});
    ~Link() override;

    const iwarp::SocketAddress& name() const { return name_; }

    // The request has been posted under `seq`.
    void transmit(soft::Request& request, std::uint64_t seq, bool) override {
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
    bool wide_data() const override { return true; }
    bool peer_serves_reads() const override { return sender_.peer_serves_reads(); }

    void start() override;
    void poll() override;
    void push() override;
    void receive_posted() override;
    void drain() override;
    void part(soft::Parting how) override;
    std::unique_ptr<soft::HalfClosed> half_close(bool left) override {
        return soft::keep_stream(domain_, endpoint_, bell_.fd(), left);
    }
    bool doze() override;
    bool stirs() const override;
    void rouse() override;

  private:
    // Something to wait for, looked at in steps.
    struct Watch final : soft::Timer {
        explicit Watch(Link& link) : link_(link) {}
        void expired() override { link_.bell_lost_ ? link_.lost() : link_.look_at_limits(); }
        Link& link_;
    };

    // The peer is woken if it sleeps and waits for that.
    void tell(Wake why) {
        if (fences_) [[unlikely]] {
            soft::full_fence();
        } else { // the peer's heavy_barrier() does it for both; the compiler has to keep the order
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        if ((side_.peers->asleep.load(std::memory_order_relaxed) & why) != 0) [[unlikely]] {
            wake_peer();
        }
    }
    void wake_peer();
    void ring();
    void send_ring();
    void tired();
    void ready(std::uint32_t events) override; // rung, or the peer has gone
    void lost() override;
    void stay_wakeable();
    void receive();
    void after_receiving();
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
    bool limited() const { return draining_ || end_waits_; }
    std::uint64_t moved() const {
        return sender_.records() + receiver_.records() + receiver_.inbox().placed();
    }
    void not_ready_for_too_long();
    void drop_unreceived();
    void end_as(End end); // of the peer
    void say_end(End end, std::uint32_t code);
    Remainder last_of_all();

    soft::Endpoint& endpoint_;
    soft::Domain& domain_;
    Segment segment_;
    const Side side_;
    const bool fences_;
    iwarp::Socket bell_;
    const bool bell_refuses_; // descriptors
    const iwarp::SocketAddress name_;
    DoorbellPlace place_;
    Sender sender_;
    Receiver receiver_;
    Watch watch_{*this};
    std::uint32_t idle_polls_ = 0;
    bool asleep_ = false;
    bool by_doorbell_ = false; // asleep_, and polled when the peer has rung
    bool for_room_ = false;    // and the peer rings for room as well
    bool bell_lost_ = false;   // the program has closed or replaced it
    bool watched_ = false;     // bell_ is in the reactor
    bool over_ = false;        // part() was called
    bool peer_ended_ = false;  // the peer's end has been seen
    bool end_waits_ = false;   // but messages before it wait for receives
    bool draining_ = false;
    bool said_goodbye_ = false;
    soft::EndLimit end_limit_;
};

} // namespace dat::shm

#endif
