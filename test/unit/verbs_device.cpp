// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a device grants, says and refuses, with devices that are made up (verbs_fake.h): the sizes
// of queues, events, limits of the connection manager.
#include "links/verbs/connect.h"
#include "links/verbs/link.h"
#include "links/verbs/link_parts.h"
#include "links/verbs/queues.h"
#include "links/verbs/shared_queue.h"

#include "engine/shared_receives.h"
#include "engine_harness.h"
#include "verbs_fake.h"
#include "verbs_world.h"

#include <criterion/criterion.h>

#include <cerrno>
#include <memory>
#include <tuple>
#include <utility>

using namespace dat;
using core::DtoStatus;
using core::Event;
using core::Reason;
using engine_test::Side;
using fake::state;
using verbs_test::address;
using verbs_test::assert_ended;
using verbs_test::World;

namespace {

ibv_wc failed(ibv_wc_status status, bool receive) {
    ibv_wc wc{};
    wc.wr_id = receive ? verbs::plain_receive_id(0) : verbs::plain_request_id(0);
    wc.status = status;
    return wc;
}

verbs::Device device(bool rxe) {
    verbs::Device made;
    made.rxe = rxe;
    return made;
}

} // namespace

// --- what is granted ---

Test(verbs_device, inline_data__is_as_much_as_the_device_has) {
    for (const auto& [most, given] : {std::pair{80U, 80U}, {1024U, 128U}, {0U, 0U}, {63U, 48U}}) {
        World world;
        state().most_inline = most;
        auto first = world.queues();
        cr_assert_eq(first->inline_size(), given);
        // The next asks for no more than that.
        state().asked_inline.clear();
        auto second = world.queues();
        cr_assert_eq(second->inline_size(), given);
        cr_assert_eq(state().asked_inline.size(), 1);
    }
}

Test(verbs_device, a_queue_pair_that_is_refused_without_inline_data__is_asked_for_no_more) {
    World world;
    state().most_inline = 0;
    state().most_queued = 4;
    cr_assert_null(world.queues());
    cr_assert_eq(errno, ENOMEM);
    cr_assert_eq(state().queues, 0);
}

Test(verbs_device, queues_that_are_asked_for_and_have_no_memory__are_refused) {
    World world;
    state().most_queued = 100;
    Side side(world.engine, {.requests = 200, .receives = 60});
    const engine::BiasedLockOwner in(world.engine.biased_lock());
    cr_assert_eq(verbs::prepare(world.domain, side.endpoint, false), -ENOMEM);
    cr_assert_null(side.endpoint.prepared());
    cr_assert_eq(side.endpoint.limits().requests, 200);
    cr_assert_eq(side.endpoint.limits().receives, 60);
    cr_assert_eq(state().queues, 0);
}

Test(verbs_device, default_queues_that_have_no_memory__are_smaller) {
    World world;
    state().most_queued = 100;
    Side side(world.engine, {.requests = 128, .receives = 128});
    {
        const engine::BiasedLockOwner in(world.engine.biased_lock());
        cr_assert_eq(verbs::prepare(world.domain, side.endpoint, true), 0);
        cr_assert_not_null(side.endpoint.prepared());
        cr_assert_eq(side.endpoint.limits().requests, 32);
        cr_assert_eq(side.endpoint.limits().receives, 32);
        cr_assert_eq(state().queues, 2);
    }
    // Those are what a connection takes.
    world.connected(side);
    cr_assert_eq(state().queues, 2);
}

Test(verbs_device, no_memory_for_any_queue__is_refused) {
    World world;
    state().most_queued = 1;
    Side side(world.engine);
    const engine::BiasedLockOwner in(world.engine.biased_lock());
    cr_assert_eq(verbs::prepare(world.domain, side.endpoint, true), -ENOMEM);
    cr_assert_eq(side.endpoint.limits().requests, 128);
    cr_assert_eq(state().queues, 0);
}

Test(verbs_device, shared_queue_that_has_no_memory__is_smaller) {
    World world;
    state().most_queued = 100;
    engine::SharedReceives receives(1000);
    const engine::BiasedLockOwner in(world.engine.biased_lock());
    const auto queue = verbs::SharedQueue::of(world.domain, receives, world.domain.pd(nullptr));
    cr_assert(queue);
    cr_assert_eq(queue->size(), 62);
}

Test(verbs_device, segments_of_a_read__are_what_the_device_says) {
    const auto read_segments = [](ibv_transport_type transport, int said) {
        state().devices[0].transport_type = transport;
        state().attr.max_sge_rd = said;
        verbs::Device described;
        verbs::describe(&state().shared[0], 1, described);
        return described.read_segments;
    };
    cr_assert_eq(read_segments(IBV_TRANSPORT_IWARP, 1), 1);
    cr_assert_eq(read_segments(IBV_TRANSPORT_IWARP, 4), 4);
    cr_assert_eq(read_segments(IBV_TRANSPORT_IWARP, 0), 1);
    cr_assert_eq(read_segments(IBV_TRANSPORT_IB, 2), 2);
    cr_assert_eq(read_segments(IBV_TRANSPORT_IB, 0), 8);
}

Test(verbs_device, fork__is_made_safe_by_the_library) {
    cr_assert_eq(verbs::make_fork_safe(), 0);
    cr_assert_eq(state().fork_inits, 1);
    state().fork_answer = EINVAL;
    cr_assert_eq(verbs::make_fork_safe(), EINVAL);
}

// --- the connection manager ---

Test(verbs_device, resolving_and_retries__are_limited_as_the_settings_say) {
    engine::Domain::Options options = engine_test::options();
    options.settings.resolve_limit = std::chrono::milliseconds(1234);
    options.settings.retries = 3;
    options.settings.ack_timeout = 9;
    World world(options);
    Side side(world.engine);
    world.connected(side);
    cr_assert_eq(state().address_ms, 1234);
    cr_assert_eq(state().route_ms, 1234);
    cr_assert_eq(state().param.retry_count, 3);
    cr_assert_eq(state().ready.retry_cnt, 3);
    cr_assert_eq(state().ready.timeout, 9);
    cr_assert_eq(state().ready_mask & IBV_QP_TIMEOUT, IBV_QP_TIMEOUT);
}

// EP-10: a program asks for its port as soon as the call is back.
Test(verbs_device, a_port__is_bound_by_connect) {
    World world;
    Side side(world.engine);
    const verbs::SocketAddress from = world.connect(side);
    cr_assert_eq(from.port(), fake::kPort);
    world.await([&] { return side.connected(); });
}

// What is wrong with the address is said when it is resolved.
Test(verbs_device, an_address_that_cannot_be_bound__is_for_the_connection_manager_to_refuse) {
    World world;
    Side side(world.engine);
    state().bind_error = EADDRNOTAVAIL;
    cr_assert_eq(world.connect(side).port(), 0);
    world.await([&] { return side.connected(); });
}

Test(verbs_device, ack_timeout_that_is_not_set__is_the_connection_managers) {
    World world;
    Side side(world.engine);
    world.connected(side);
    cr_assert_eq(state().ready.timeout, 14);
    cr_assert_eq(state().ready.retry_cnt, 7);
}

// The requester says in its request how often both send again.
Test(verbs_device, retries_of_an_accepted_connection__are_the_requesters) {
    engine::Domain::Options options = engine_test::options();
    options.settings.retries = 5;
    World world(options);
    Side side(world.engine);
    const engine::BiasedLockOwner in(world.engine.biased_lock());
    rdma_cm_id* id = nullptr;
    rdma_create_id(world.domain.manager(), &id, nullptr, RDMA_PS_TCP);
    rdma_bind_addr(id, nullptr);
    verbs::Link link(world.domain, side.endpoint, id, true);
    cr_assert_eq(link.open(), 0);
    state().param.retry_count = 1;
    const rdma_conn_param answer{};
    cr_assert(link.become_ready(&answer));
    cr_assert_eq(state().ready.retry_cnt, 1);
    link.part(engine::Parting::abandon);
}

// The peer is there; it is this domain whose address has moved, as in a bond.
Test(verbs_device, way_over_another_device__is_not_unreachable) {
    World world;
    Side side(world.engine);
    state().leads_to = &state().devices[1];
    world.connect(side);
    world.await([&] { return side.ended(); });
    assert_ended(side, Event::non_peer_rejected, Reason::resources);
}

// --- what completions say ---

// IBA 11.6.2: a local QP operation error is one of this side, whatever the work request.
Test(verbs_device, status_of_a_receive__is_rxes_own_on_rxe_alone) {
    for (const ibv_wc_status status : {IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_INV_REQ_ERR}) {
        cr_assert_eq(verbs::status_of(failed(status, true), device(true)), DtoStatus::local_length);
        cr_assert_neq(verbs::status_of(failed(status, true), device(false)),
                      DtoStatus::local_length);
        cr_assert_neq(verbs::status_of(failed(status, false), device(true)),
                      DtoStatus::local_length);
    }
    cr_assert_eq(verbs::status_of(failed(IBV_WC_LOC_QP_OP_ERR, true), device(false)),
                 DtoStatus::local_ep);
    cr_assert_eq(verbs::status_of(failed(IBV_WC_LOC_LEN_ERR, true), device(false)),
                 DtoStatus::local_length);
}

// --- events of the device ---

Test(verbs_device, queues__are_made_where_their_events_are_read) {
    World world;
    const auto queues = world.queues();
    cr_assert_eq(queues->qp()->context, state().own);
    cr_assert_eq(queues->cq()->context, state().own);
    cr_assert_neq(state().own, &state().shared[0]);
}

// EP-60.
Test(verbs_device, fatal_event_of_a_queue__breaks_its_connection_alone) {
    for (const bool of_cq : {false, true}) {
        World world;
        Side other(world.engine);
        Side side(world.engine);
        world.connected(other);
        world.connected(side);
        if (of_cq) {
            fake::say(IBV_EVENT_CQ_ERR, state().last_qp->send_cq);
        } else {
            fake::say(IBV_EVENT_QP_FATAL, state().last_qp);
        }
        world.await([&] { return side.ended(); });
        assert_ended(side, Event::broken, Reason::resources);
        cr_assert(other.connected());
        world.read_all();
    }
}

Test(verbs_device, failure_before_the_answer__breaks_the_connection) {
    for (const auto& [first, then, reason] :
         {std::tuple{IBV_EVENT_QP_FATAL, IBV_EVENT_QP_ACCESS_ERR, Reason::resources},
          {IBV_EVENT_QP_REQ_ERR, IBV_EVENT_PATH_MIG, Reason::protocol}}) {
        World world;
        Side side(world.engine);
        state().answers = false;
        world.connect(side);
        world.await([&] { return state().queues == 2; });
        fake::say(first, state().last_qp);
        fake::say(then, state().last_qp);
        world.read_all();
        cr_assert(side.events.empty());
        fake::answer(state().last_id);
        world.await([&] { return side.ended(); });
        assert_ended(side, Event::broken, reason);
    }
}

Test(verbs_device, fatal_event_of_queues_without_a_connection__is_acknowledged) {
    World world;
    const auto queues = world.queues();
    fake::say(IBV_EVENT_QP_FATAL, queues->qp());
    fake::say(IBV_EVENT_CQ_ERR, queues->cq());
    world.read_all();
}

Test(verbs_device, fatal_event_of_a_shared_queue__breaks_all_that_take_from_it) {
    World world;
    engine::SharedReceives receives(16);
    {
        Side one(world.engine);
        Side two(world.engine);
        Side other(world.engine);
        one.endpoint.set_shared(&receives);
        two.endpoint.set_shared(&receives);
        world.connected(one);
        world.connected(two);
        world.connected(other);
        fake::say(IBV_EVENT_SRQ_ERR, state().last_srq);
        world.await([&] { return one.ended() && two.ended(); });
        assert_ended(one, Event::broken, Reason::resources);
        assert_ended(two, Event::broken, Reason::resources);
        cr_assert(other.connected());
        world.read_all();
    }
    cr_assert_eq(state().queues, 0);
}

Test(verbs_device, fatal_event_of_a_shared_queue__breaks_one_in_its_handshake_behind_that,
     .timeout = 20) {
    World world;
    engine::SharedReceives receives(16);
    Side one(world.engine);
    Side two(world.engine);
    one.endpoint.set_shared(&receives);
    two.endpoint.set_shared(&receives);
    world.connected(one);
    state().answers = false;
    world.connect(two);
    world.await([&] { return state().queues == 5; });
    fake::say(IBV_EVENT_SRQ_ERR, state().last_srq);
    world.await([&] { return one.ended(); });
    cr_assert(two.events.empty());
    fake::answer(state().last_id);
    world.await([&] { return two.ended(); });
    assert_ended(two, Event::broken, Reason::resources);
}

// What the peer asked for was refused: if nobody says more of it that is why.
Test(verbs_device, refused_access_of_the_peer__breaks_the_connection) {
    World world;
    Side side(world.engine);
    world.connected(side);
    fake::say(IBV_EVENT_QP_ACCESS_ERR, state().last_qp);
    world.await([&] { return side.ended(); });
    assert_ended(side, Event::broken, Reason::protocol);
}

// No receive is flushed there that would say so.
Test(verbs_device, last_work_request_of_a_shared_queue__breaks_the_connection) {
    World world;
    engine::SharedReceives receives(16);
    Side side(world.engine);
    side.endpoint.set_shared(&receives);
    world.connected(side);
    fake::say(IBV_EVENT_QP_LAST_WQE_REACHED, state().last_qp);
    world.await([&] { return side.ended(); });
    assert_ended(side, Event::broken, Reason::peer_reset);
}

Test(verbs_device, what_informs__changes_nothing) {
    World world;
    Side side(world.engine);
    world.connected(side);
    for (const auto type : {IBV_EVENT_PATH_MIG, IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_COMM_EST}) {
        fake::say(type, state().last_qp);
    }
    for (const auto type : {IBV_EVENT_GID_CHANGE, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_LID_CHANGE}) {
        fake::say(type, 1);
    }
    fake::say(IBV_EVENT_SRQ_LIMIT_REACHED, static_cast<ibv_srq*>(nullptr));
    fake::say(IBV_EVENT_PORT_ERR, 2); // another
    world.read_all();
    cr_assert(side.connected());
    cr_assert_eq(world.down, 0);
    fake::say(IBV_EVENT_PORT_ERR, 1);
    world.read_all();
    cr_assert_eq(world.down, 1);
    cr_assert(side.connected());
}

// EP-62.
Test(verbs_device, fatal_event_of_the_device__breaks_every_connection) {
    World world;
    Side one(world.engine);
    Side two(world.engine);
    world.connected(one);
    world.connected(two);
    fake::say(IBV_EVENT_DEVICE_FATAL, 0);
    world.await([&] { return one.ended() && two.ended(); });
    assert_ended(one, Event::broken, Reason::resources);
    cr_assert_eq(world.gone, 1);
    world.read_all();
}

// U-65: so the connection is there, whatever became of the requester's confirmation.
Test(verbs_device, word_that_the_peer_was_heard__makes_an_accepted_connection) {
    World world;
    Side side(world.engine);
    const engine::BiasedLockOwner in(world.engine.biased_lock());
    rdma_cm_id* id = nullptr;
    rdma_create_id(world.domain.manager(), &id, nullptr, RDMA_PS_TCP);
    rdma_bind_addr(id, nullptr);
    verbs::Link link(world.domain, side.endpoint, id, true);
    cr_assert_eq(link.open(), 0);
    fake::say(IBV_EVENT_COMM_EST, state().last_qp);
    world.engine.progress();
    cr_assert_eq(state().notified, 1);
    link.part(engine::Parting::abandon);
}

namespace {

struct Arrived final : verbs::ListenerOwner {
    void announce(std::unique_ptr<verbs::ConnRequest> from) override { request = std::move(from); }
    std::unique_ptr<verbs::ConnRequest> request;
};

} // namespace

// A listener of every address gets requests by every device: by that of the domain one is accepted.
Test(verbs_device, request_by_another_device__is_not_accepted_and_stays) {
    World world;
    Side side(world.engine);
    Arrived arrived;
    verbs::Listener listener(arrived, false);
    cr_assert_eq(listener.bind(address(1)), 0);
    cr_assert_eq(listener.listen(8), 0);
    rdma_cm_id* const id = state().last_id;
    ibv_context* const own = id->verbs;
    const auto ask_by = [&](ibv_context* device) {
        id->verbs = device;
        fake::ask(id);
        id->verbs = own;
        listener.progress();
        cr_assert(arrived.request);
        const engine::BiasedLockOwner in(world.engine.biased_lock());
        return verbs::accept(world.domain, side.endpoint, *arrived.request, {});
    };
    cr_assert_eq(ask_by(&state().shared[1]), -ENODEV);
    cr_assert(arrived.request->reject({}), "it is still there");
    cr_assert(side.events.empty() && side.endpoint.core().state() == core::State::unconnected);
    arrived.request.reset();
    cr_assert_eq(ask_by(&state().shared[0]), 0);
    world.await([&] { return side.connected(); });
}
