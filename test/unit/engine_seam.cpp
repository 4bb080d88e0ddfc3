// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The endpoint of the software domain on a link that is trivial: both ends in one
// process, bytes copied at once. What holds here is the endpoint's, not a link's.
#include "engine_harness.h"

#include <algorithm>
#include <criterion/criterion.h>
#include <cstring>
#include <deque>
#include <memory>

using namespace engine_test;
using dat::core::Reason;
using dat::core::Stimulus;
using dat::engine::Parting;

namespace {

// Copies what is posted on one end into a receive or a region of the other.
class InProcessLink final : public dat::engine::Link {
  public:
    explicit InProcessLink(dat::engine::Endpoint& own)
        : Link(dat::engine::LinkKind::in_process), own_(own) {}

    static void join(InProcessLink& a, InProcessLink& b) {
        a.peer_ = &b;
        b.peer_ = &a;
    }

    static constexpr auto kKind = dat::engine::LinkKind::in_process;
    bool confirms_delivery() const override { return true; }
    bool dat_peer() const override { return true; }
    bool wide() const override { return true; }
    bool peer_serves_reads() const override { return true; }
    void transmit(dat::engine::Request&, std::uint64_t seq, bool) override {
        waiting_.push_back(seq);
        deliver();
    }

    void start() override { deliver(); }
    void poll() override {}
    void push() override {}
    void receive_posted() override {
        own_.set_starved(false);
        peer_->deliver();
    }
    void drain() override {
        draining_ = true;
        deliver();
    }
    void part(Parting) override {
        if (InProcessLink* peer = std::exchange(peer_, nullptr)) {
            peer->peer_ = nullptr;
            peer->own_.over(Stimulus::peer_disconnected, Reason::peer_closed, Parting::clean);
        }
    }

  private:
    void deliver() {
        while (peer_ && !waiting_.empty() && deliver_one(waiting_.front())) {
            const std::uint64_t seq = waiting_.front();
            waiting_.pop_front();
            own_.finish_request(seq, DtoStatus::success);
        }
        if (draining_ && own_.core().requests().idle()) {
            draining_ = false;
            own_.over(Stimulus::drained, Reason::local, Parting::clean);
        }
    }

    bool deliver_one(std::uint64_t seq) {
        const dat::engine::Request& r = own_.request(seq);
        if (r.op == dat::engine::OpCode::write) {
            const auto target = own_.domain().regions().find(
                r.remote_key, r.remote_address, r.length, dat::engine::kRemoteWrite, own_.zone());
            std::memcpy(target.at, r.iov.base, r.length);
            return true;
        }
        dat::engine::Endpoint& to = peer_->own_;
        if (to.core().state() != State::connected || !to.has_receive()) {
            to.set_starved(true);
            return false;
        }
        const std::uint64_t match = to.match_receive();
        std::memcpy(to.receive(match).iov.base, r.iov.base, r.length);
        to.complete_receive(match, DtoStatus::success, r.length);
        return true;
    }

    dat::engine::Endpoint& own_;
    InProcessLink* peer_ = nullptr;
    bool draining_ = false;
    std::deque<std::uint64_t> waiting_;
};

struct Joined {
    Joined() { connect(); }

    // A handshake that is over as it begins.
    void connect() {
        cr_assert(a.endpoint.begin_connect({}));
        cr_assert(b.endpoint.begin_accept());
        auto la = std::make_unique<InProcessLink>(a.endpoint);
        auto lb = std::make_unique<InProcessLink>(b.endpoint);
        InProcessLink::join(*la, *lb);
        struct Nothing final : dat::engine::Handshake {
            void abandon() override {}
        };
        a.endpoint.run(std::make_unique<Nothing>());
        b.endpoint.run(std::make_unique<Nothing>());
        b.endpoint.established(b.endpoint.attempt(), Stimulus::handshake_done, std::move(lb), {});
        a.endpoint.established(a.endpoint.attempt(), Stimulus::peer_accepted, std::move(la),
                               bytes("welcome"));
    }

    OpenDomain domain;
    Side a{domain};
    Side b{domain};
};

} // namespace

// EP-40, EP-51, PD-2.
Test(engine_seam, both_sides_are_established_once_with_the_link_that_was_given) {
    Joined j;
    cr_assert(j.a.connected() && j.b.connected());
    cr_assert_eq(j.a.events.size(), 1u);
    cr_assert_eq(j.b.events.size(), 1u);
    cr_assert(j.a.events[0].event == Event::established);
    cr_assert(text(j.a.events[0].private_data) == "welcome");
    cr_assert(j.a.kind == dat::engine::LinkKind::in_process);
}

// EP-25, DTO-12: receives posted before the connection take messages in order.
Test(engine_seam, a_receive_posted_in_unconnected_takes_the_first_message) {
    OpenDomain domain;
    std::vector<std::byte> first(8), second(8);
    Joined j;
    j.b.endpoint.disconnect(false);
    cr_assert(j.a.ended() && j.b.ended());
    cr_assert(j.a.endpoint.reset() && j.b.endpoint.reset());
    j.b.receive(first, 1);
    j.b.receive(second, 2);
    j.connect();
    j.a.send<InProcessLink>(bytes("one"));
    j.a.send<InProcessLink>(bytes("two"));
    const auto done = j.b.receives.take();
    cr_assert_eq(done.size(), 2u);
    cr_assert_eq(done[0].context, reinterpret_cast<void*>(1));
    cr_assert_eq(done[0].length, 3u);
    cr_assert(text(std::span(first).first(3)) == "one");
    cr_assert(text(std::span(second).first(3)) == "two");
}

// U-9: without a receive the request waits; posting one lets it go.
Test(engine_seam, a_message_without_a_receive_waits_for_one) {
    Joined j;
    std::vector<std::byte> into(8);
    j.a.send<InProcessLink>(bytes("late"));
    cr_assert(j.a.requests.empty());
    cr_assert(!j.a.endpoint.core().requests().idle());
    j.b.receive(into);
    cr_assert_eq(j.a.requests.take().size(), 1u);
    cr_assert_eq(j.b.receives.take().size(), 1u);
}

// PZ-1, LMR-5: the domain's one table serves every link.
Test(engine_seam, a_write_lands_in_the_region_its_key_names) {
    Joined j;
    std::vector<std::byte> memory(16);
    const std::uint32_t key = j.domain.regions().add(
        {memory.data(), memory.size(), 0, &Side::zone, dat::engine::kRemoteWrite});
    j.a.rma<InProcessLink>(dat::engine::OpCode::write, bytes("here"), key, 4);
    cr_assert_eq(j.a.requests.take().size(), 1u);
    cr_assert(text(std::span(memory).subspan(4, 4)) == "here");
}

// DISC-3, DISC-8, U-7, EP-70: flushed in posting order, before the one event.
Test(engine_seam, an_abrupt_end_flushes_everything_before_its_event_on_both_sides) {
    Joined j;
    std::vector<std::byte> into(8);
    j.a.receive(into, 1);
    j.a.receive(into, 2);
    j.a.send<InProcessLink>(bytes("x"), 3);
    j.a.send<InProcessLink>(bytes("y"), 4);
    j.a.endpoint.disconnect(false);
    cr_assert(j.a.ended() && j.b.ended());
    cr_assert_eq(j.a.completions_at_event, 4u);
    cr_assert_eq(j.a.events.size(), 2u);
    cr_assert(j.a.events[1].event == Event::disconnected);
    cr_assert(j.a.events[1].reason == Reason::local);
    cr_assert_eq(j.b.events.size(), 2u);
    cr_assert(j.b.events[1].reason == Reason::peer_closed);
    const auto sent = j.a.requests.take();
    cr_assert_eq(sent.size(), 2u);
    cr_assert_eq(sent[0].context, reinterpret_cast<void*>(3));
    cr_assert(sent[0].status == DtoStatus::flushed && sent[1].status == DtoStatus::flushed);
    cr_assert_eq(j.a.receives.take().size(), 2u);
}

// DISC-4, DISC-5, EP-58.
Test(engine_seam, a_graceful_end_waits_for_its_requests_and_takes_no_new_ones) {
    Joined j;
    std::vector<std::byte> into(8);
    j.a.send<InProcessLink>(bytes("last"), 1);
    j.a.endpoint.disconnect(true);
    cr_assert(j.a.endpoint.core().visible_state() == State::disconnect_pending);
    cr_assert(j.a.send<InProcessLink>(bytes("no")) == PostVerdict::refused);
    cr_assert(j.a.endpoint.disconnect(true)); // no effect
    cr_assert_eq(j.a.events.size(), 1u);
    j.b.receive(into);
    cr_assert(j.a.ended());
    const auto sent = j.a.requests.take();
    cr_assert_eq(sent.size(), 1u);
    cr_assert(sent[0].status == DtoStatus::success);
    cr_assert_eq(j.b.receives.take().size(), 1u);
}

// FLS-1, RST-3: a marker in DISCONNECTED completes behind everything else.
Test(engine_seam, a_post_in_disconnected_completes_at_once_as_flushed) {
    Joined j;
    std::vector<std::byte> into(8);
    j.a.receive(into, 1);
    j.a.endpoint.disconnect(false);
    cr_assert(j.a.receive(into, 2) == PostVerdict::flushed);
    cr_assert(j.a.send<dat::engine::Link>(bytes("marker"), 3) == PostVerdict::flushed);
    const auto done = j.a.receives.take();
    cr_assert_eq(done.size(), 2u);
    cr_assert_eq(done[1].context, reinterpret_cast<void*>(2));
    cr_assert_eq(j.a.requests.take().size(), 1u);
}

// RST-1, RST-4, EP-67: many lives of one endpoint, no event but its own.
Test(engine_seam, an_endpoint_is_reset_and_connected_again) {
    Joined j;
    std::vector<std::byte> into(8);
    for (int round = 0; round < 100; ++round) {
        j.b.receive(into);
        j.a.send<InProcessLink>(bytes("again"));
        cr_assert_eq(j.b.receives.take().size(), 1u);
        (round % 2 ? j.a : j.b).endpoint.disconnect(round % 3 == 0);
        cr_assert(j.a.ended() && j.b.ended());
        cr_assert(j.a.endpoint.reset() && j.b.endpoint.reset());
        j.connect();
    }
    cr_assert_eq(j.a.events.size(), 201u);
    cr_assert_eq(j.b.events.size(), 201u);
}

// EP-22, FREE-2: flushes are queued before free returns; nothing comes after.
Test(engine_seam, free_flushes_and_raises_nothing) {
    Joined j;
    std::vector<std::byte> into(8);
    j.a.receive(into);
    j.a.endpoint.free();
    cr_assert_eq(j.a.receives.take().size(), 1u);
    cr_assert_eq(j.a.events.size(), 1u);
    cr_assert(j.b.ended());
}

// DTO-5: the limit, from both sides.
Test(engine_seam, one_more_than_the_limit_is_full_and_changes_nothing) {
    OpenDomain domain;
    Side side(domain, {4, 2});
    std::vector<std::byte> into(8);
    cr_assert(side.receive(into) == PostVerdict::posted);
    cr_assert(side.receive(into) == PostVerdict::posted);
    cr_assert(side.receive(into) == PostVerdict::full);
    side.endpoint.free();
    cr_assert_eq(side.receives.take().size(), 2u);
}
