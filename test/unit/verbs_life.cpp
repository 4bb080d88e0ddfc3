// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Links over made-up devices (verbs_fake.h) that go through the states of links/verbs/life.def.
#include "links/verbs/life.h"
#include "links/verbs/link.h"
#include "links/verbs/link_parts.h"

#include "verbs_world.h"

#include <criterion/criterion.h>
#include <memory>
#include <utility>

using namespace verbs_test;
using verbs::kMarker;
using verbs::LinkState;
using verbs::plain_receive_id;
using verbs::plain_request_id;

namespace {

// A connection that this side has asked for.
struct Asked {
    Asked() {
        world.connected(side);
        id = state().last_id;
    }
    World world;
    Side side{world.engine};
    rdma_cm_id* id;
};

struct Arrived final : verbs::ListenerOwner {
    void announce(std::unique_ptr<verbs::ConnRequest> from) override { request = std::move(from); }
    std::unique_ptr<verbs::ConnRequest> request;
};

// One that it has accepted.
struct Accepted {
    Accepted() {
        cr_assert_eq(listener.bind(address(1)), 0);
        cr_assert_eq(listener.listen(8), 0);
        id = fake::ask(state().last_id);
        listener.progress();
        {
            const engine::BiasedLockOwner in(world.engine.biased_lock());
            cr_assert_eq(verbs::accept(world.domain, side.endpoint, *arrived.request, {}), 0);
        }
        world.await([&] { return side.connected(); });
    }
    World world;
    Side side{world.engine};
    Arrived arrived;
    verbs::Listener listener{arrived, false};
    rdma_cm_id* id;
};

verbs::Link& link_of(Side& side) { return static_cast<verbs::Link&>(*side.endpoint.link()); }

// It takes the completions that there are, also where it sleeps, or has offered them to their
// queue.
template <class Connection> void take(Connection& c) {
    const engine::BiasedLockOwner in(c.world.engine.biased_lock());
    link_of(c.side).called();
    for (int i = 0; i < 2 && c.side.endpoint.link(); ++i) {
        link_of(c.side).poll();
    }
    cr_assert(state().completed.empty());
}

template <class Connection> void is_at(Connection& c, LinkState expected) {
    const LinkState now = link_of(c.side).state();
    cr_assert(now == expected, "%s, not %s", verbs::name(now), verbs::name(expected));
}

template <class Connection> void disconnect(Connection& c) {
    const engine::BiasedLockOwner in(c.world.engine.biased_lock());
    cr_assert(c.side.endpoint.disconnect(true));
}

template <class Connection> void send(Connection& c) {
    static constexpr std::byte out[4]{};
    const engine::BiasedLockOwner in(c.world.engine.biased_lock());
    c.side.template send<verbs::Link>(out, 1);
}

template <class Connection> void receive(Connection& c) {
    static std::byte into[16];
    const engine::BiasedLockOwner in(c.world.engine.biased_lock());
    c.side.receive(into);
}

template <class Connection> void ends(Connection& c, Event event, Reason reason) {
    c.world.await([&] { return c.side.ended(); });
    assert_ended(c.side, event, reason);
}

// The marker comes back, and that is the end of a drain.
template <class Connection> void is_confirmed(Connection& c) {
    is_at(c, LinkState::marked);
    fake::complete(kMarker);
    take(c);
    ends(c, Event::disconnected, Reason::local);
}

// The queue pair fails, which a receive that it gives back tells.
template <class Connection> void fails(Connection& c) {
    fake::complete(plain_receive_id(0), IBV_WC_WR_FLUSH_ERR);
    take(c);
}

} // namespace

// DISC-4.
Test(verbs_life, drain__ends_once_the_marker_is_back) {
    for (const bool siw : {false, true}) {
        if (siw) {
            fake::become_siw();
        }
        Asked c;
        is_at(c, LinkState::open);
        send(c);
        disconnect(c);
        is_at(c, LinkState::marked);
        fake::complete(plain_request_id(0));
        take(c);
        is_confirmed(c);
    }
}

// Over InfiniBand a completion says that the peer has it; over iWARP that it has gone out.
Test(verbs_life, drain_of_what_is_complete__needs_a_marker_on_iwarp_alone) {
    Asked c;
    disconnect(c);
    ends(c, Event::disconnected, Reason::local);
    fake::become_siw();
    Asked d;
    disconnect(d);
    is_confirmed(d);
}

Test(verbs_life, held_requests__go_out_behind_the_peers_first_message) {
    fake::become_siw();
    Accepted c;
    is_at(c, LinkState::held);
    receive(c);
    send(c);
    disconnect(c);
    is_at(c, LinkState::held_draining);
    cr_assert_eq(state().sent.size(), 0);
    fake::complete(plain_receive_id(0));
    take(c);
    is_at(c, LinkState::marked);
    cr_assert_eq(state().sent.size(), 2);
    cr_assert_eq(state().sent.back(), kMarker);
    fake::complete(state().sent.front());
    is_confirmed(c);
}

Test(verbs_life, held_requests__go_out_in_the_end_also_where_the_peer_is_silent) {
    fake::become_siw();
    Accepted c;
    send(c);
    cr_assert_eq(state().sent.size(), 0);
    c.world.await([&] { return link_of(c.side).state() == LinkState::open; });
    cr_assert_eq(state().sent.size(), 1);
}

// A drain that waits for them is looked at again then.
Test(verbs_life, held_requests_of_a_drain__go_out_in_the_end) {
    fake::become_siw();
    Accepted c;
    send(c);
    disconnect(c);
    c.world.await([&] { return link_of(c.side).state() == LinkState::marked; });
    cr_assert_eq(state().sent.size(), 2);
}

// Those before a request that is given back would count as done.
Test(verbs_life, held_requests__stay_in_order_where_the_queue_pair_fails) {
    fake::become_siw();
    Accepted c;
    receive(c);
    send(c);
    fails(c);
    is_at(c, LinkState::held_failed);
    send(c);
    cr_assert_eq(state().sent.size(), 0);
    c.world.await([&] { return link_of(c.side).state() == LinkState::failed; });
    cr_assert_eq(state().sent.size(), 2);
    fake::leave(c.id);
    ends(c, Event::disconnected, Reason::peer_closed);
}

Test(verbs_life, failed_queue_pair__is_explained_by_the_connection_manager) {
    Asked c;
    receive(c);
    fails(c);
    is_at(c, LinkState::failed);
    disconnect(c);
    is_at(c, LinkState::failed);
    fake::leave(c.id);
    ends(c, Event::disconnected, Reason::peer_closed);
}

Test(verbs_life, failed_queue_pair_that_nobody_explains__is_a_broken_connection) {
    Asked c;
    receive(c);
    fails(c);
    is_at(c, LinkState::failed);
    ends(c, Event::broken, Reason::peer_reset);
}

// The peer ended the stream by its answer, or behind it: all was complete.
Test(verbs_life, end_of_the_stream_behind_the_marker__is_a_disconnect) {
    fake::become_siw();
    {
        Asked c;
        disconnect(c);
        fake::complete(kMarker, IBV_WC_WR_FLUSH_ERR);
        take(c);
        is_at(c, LinkState::failed_marked);
        fake::leave(c.id);
        ends(c, Event::disconnected, Reason::local);
    }
    Asked c;
    disconnect(c);
    is_at(c, LinkState::marked);
    fake::leave(c.id);
    ends(c, Event::disconnected, Reason::local);
}

Test(verbs_life, peer_that_disconnects__ends_what_is_open) {
    Asked c;
    receive(c);
    fake::complete(plain_receive_id(0)); // before that
    fake::leave(c.id);
    ends(c, Event::disconnected, Reason::peer_closed);
    cr_assert_eq(c.side.receives.size(), 1);
}
