// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: the DISCONNECTED state, reset, and endpoints that are used
// again.
#include "suite.h"

#include <cstdlib>
#include <cstring>

using namespace dat::test;

namespace {

void end_connection(Endpoint& by, Endpoint& other, fi_dat_disconnect how) {
    DAT_MUST(by.disconnect(how));
    wait_shutdown(by);
    wait_shutdown(other);
}

// Connects `active` to `passive`, which is UNCONNECTED and takes the request.
void connect_again(Pair& pair, Endpoint& active, Endpoint& passive) {
    DAT_MUST(active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(passive.dat()->take_request(passive.get(), request.info->handle));
    DAT_MUST(passive.accept());
    cr_assert_eq(wait_event(pair.near, FI_CONNECTED).fid, active.fid());
    cr_assert_eq(wait_event(pair.far, FI_CONNECTED).fid, passive.fid());
}

void exchange(Endpoint& from, Endpoint& to, unsigned seed) {
    const Bytes out = pattern(3000, seed);
    Bytes in(out.size());
    Op& receive = to.recv(in.data(), in.size());
    Op& request = from.send_confirmed(out.data(), out.size());
    wait_op(request);
    wait_op(receive);
    cr_assert(request.ok() && receive.ok() && in == out);
}

// After `end` of its first attempt the endpoint connects like a new one.
void require_reusable(Pair& pair, fi_dat_end end) {
    require_end(pair.active, end);
    DAT_MUST(pair.active.reset());
    require_state(pair.active, FI_DAT_UNCONNECTED);
    cr_assert_eq(pair.active.status().end, FI_DAT_END_NONE);
    cr_assert_eq(pair.active.status().reason, FI_DAT_REASON_NONE);
    pair.connect();
    exchange(pair.active, pair.passive(), 1);
    exchange(pair.passive(), pair.active, 2);
    settle(20);
    cr_assert(pair.near.events().empty() && pair.far.events().empty());
}

} // namespace

// RST-1, RST-4, EP-15, EP-21, EP-67: the same two endpoints, again and again,
// ended by either side in either way.
TRANSPORT_TEST(reset_reuse, fifty_connections_of_the_same_endpoints__all_work) {
    only_dat();
    Pair pair(transport);
    Endpoint passive(pair.far);
    for (unsigned round = 0; round < 50; ++round) {
        connect_again(pair, pair.active, passive);
        exchange(pair.active, passive, round);
        exchange(passive, pair.active, round);
        std::vector<Bytes> unused(2, Bytes(10));
        Op& at_active = pair.active.recv(unused[0].data(), 10);
        Op& at_passive = passive.recv(unused[1].data(), 10);
        const fi_dat_disconnect how = round & 1 ? FI_DAT_GRACEFUL : FI_DAT_ABRUPT;
        if (round & 2)
            end_connection(pair.active, passive, how);
        else
            end_connection(passive, pair.active, how);
        cr_assert(at_active.flushed() && at_passive.flushed(), "round %u", round);
        require_end(pair.active, FI_DAT_END_DISCONNECTED);
        require_end(passive, FI_DAT_END_DISCONNECTED);
        DAT_MUST(pair.active.reset());
        DAT_MUST(passive.reset());
    }
    settle(20);
    cr_assert(pair.near.events().empty() && pair.far.events().empty());
}

// Which end connects may change too: an endpoint has no side of its own.
TRANSPORT_TEST(reset_reuse, in_the_other_role__works) {
    only_dat();
    Pair pair(transport);
    pair.connect();
    pair.near.listen();
    end_connection(pair.active, pair.passive(), FI_DAT_GRACEFUL);
    DAT_MUST(pair.active.reset());
    DAT_MUST(pair.passive().reset());
    DAT_MUST(pair.passive().connect(pair.near));
    const Event request = wait_event(pair.near, FI_CONNREQ);
    DAT_MUST(pair.active.dat()->take_request(pair.active.get(), request.info->handle));
    DAT_MUST(pair.active.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    exchange(pair.active, pair.passive(), 1);
    exchange(pair.passive(), pair.active, 2);
}

// EP-21.
TRANSPORT_TEST(reset_in_wrong_state, connecting_connected_or_draining__is_refused) {
    only_dat();
    setenv("FI_DAT_UNEXPECTED", "0", 1);
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    cr_assert_eq(pair.active.reset(), -FI_EOPBADSTATE);
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    cr_assert_eq(pair.active.reset(), -FI_EOPBADSTATE);
    cr_assert_eq(passive.reset(), -FI_EOPBADSTATE);
    const Bytes out(100);
    Op& send = pair.active.send_confirmed(out.data(), out.size());
    DAT_MUST(pair.active.disconnect(FI_DAT_GRACEFUL));
    require_state(pair.active, FI_DAT_DISCONNECT_PENDING);
    cr_assert_eq(pair.active.reset(), -FI_EOPBADSTATE);
    Bytes in(100);
    passive.recv(in.data(), in.size());
    wait_shutdown(pair.active);
    wait_shutdown(passive);
    cr_assert(send.ok());
}

// RST-2.
TRANSPORT_TEST(reset_unconnected, with_receives_posted__is_a_no_op_that_keeps_them) {
    only_dat();
    Pair pair(transport);
    Bytes in(10);
    Op& receive = pair.active.recv(in.data(), in.size());
    DAT_MUST(pair.active.reset());
    settle(20);
    cr_assert(!receive.done());
    pair.connect();
    wait_op(pair.passive().send("0123456789", 10));
    wait_op(receive);
    cr_assert(receive.ok() && std::memcmp(in.data(), "0123456789", 10) == 0);
}

// FLS-1, FLS-2, EP-23, EP-25: accepted, and completed at once as flushed.
TRANSPORT_TEST(reset_disconnected, every_kind_of_post__is_flushed_at_once) {
    only_dat();
    auto pair = Pair::connected(transport);
    end_connection(pair->active, pair->passive(), FI_DAT_ABRUPT);
    Bytes memory(10);
    std::vector<Op*> ops{&pair->active.recv(memory.data(), 10)};
    ops.push_back(&pair->active.send(memory.data(), 10));
    ops.push_back(&pair->active.send_confirmed(memory.data(), 10));
    ops.push_back(&pair->active.write(memory.data(), 10, {0, 1}));
    ops.push_back(&pair->active.read(memory.data(), 10, {0, 1}));
    pair->near.pump_cq();
    require_once(ops);
    for (const Op* op : ops) {
        cr_assert(op->flushed(), "error %d", op->err);
        cr_assert_eq(op->prov_errno, 1);
    }
    require_state(pair->active, FI_DAT_DISCONNECTED);
    cr_assert(pair->active.status().recv_idle && pair->active.status().request_idle);
    settle(20);
    cr_assert(pair->near.events().empty());
}

// An inject has no context to complete with, so it completes with nothing.
TRANSPORT_TEST(reset_disconnected, inject__makes_no_completion) {
    only_dat();
    auto pair = Pair::connected(transport);
    end_connection(pair->active, pair->passive(), FI_DAT_ABRUPT);
    const std::size_t before = pair->near.completions();
    fi_inject(pair->active.get(), "x", 1, FI_ADDR_UNSPEC);
    settle(20);
    cr_assert_eq(pair->near.completions(), before);
}

// RST-3: what was posted before the marker completes before it.
TRANSPORT_TEST(reset_marker, posted_after_the_end__completes_last) {
    only_dat();
    auto pair = Pair::connected(transport);
    std::vector<Bytes> in(20, Bytes(10));
    std::vector<Op*> ops;
    for (Bytes& buffer : in)
        ops.push_back(&pair->active.recv(buffer.data(), buffer.size()));
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    pair->near.asleep = true; // nothing is read here before the marker is posted
    cr_assert(wait_until([&] {
        std::uint32_t type = 0;
        alignas(fi_eq_cm_entry) std::uint8_t room[256];
        return fi_eq_read(pair->near.eq(), &type, room, sizeof room, FI_PEEK) > 0;
    }));
    Bytes marker_buffer(1);
    ops.push_back(&pair->active.recv(marker_buffer.data(), 1));
    pair->near.asleep = false;
    wait_op(*ops.back());
    require_once(ops);
    require_stream_order(ops);
    wait_shutdown(pair->active);
}

// RST-1, the decision: reset takes nothing from a CQ.
TRANSPORT_TEST(reset_completions, not_read_yet__survive) {
    only_dat();
    auto pair = Pair::connected(transport);
    std::vector<Bytes> in(20, Bytes(10));
    std::vector<Op*> ops;
    for (Bytes& buffer : in)
        ops.push_back(&pair->active.recv(buffer.data(), buffer.size()));
    pair->near.asleep = true;
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    cr_assert(wait_until([&] {
        std::uint32_t type = 0;
        alignas(fi_eq_cm_entry) std::uint8_t room[256];
        return fi_eq_read(pair->near.eq(), &type, room, sizeof room, FI_PEEK) > 0;
    }));
    require_state(pair->active, FI_DAT_DISCONNECTED);
    DAT_MUST(pair->active.reset());
    pair->near.asleep = false;
    wait_ops(ops);
    for (const Op* op : ops)
        cr_assert(op->flushed());
    require_stream_order(ops);
    // EP-70: the ending event is not lost either.
    wait_shutdown(pair->active);
}

// EP-42, EP-41, EP-44, EP-52, EP-56: each way for an attempt to end.
TRANSPORT_TEST(reset_after, nobody_listened__connects) {
    only_dat();
    Pair pair(transport);
    Side gone(transport);
    gone.listen();
    const Bytes address = gone.address();
    gone.stop_listening();
    DAT_MUST(fi_connect(pair.active.get(), address.data(), nullptr, 0));
    wait_error(pair.near, FI_ECONNREFUSED);
    require_reusable(pair, FI_DAT_END_NON_PEER_REJECTED);
}

TRANSPORT_TEST(reset_after, rejected__connects) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, "no", 2));
    wait_error(pair.near, FI_ECONNREFUSED);
    require_reusable(pair, FI_DAT_END_PEER_REJECTED);
}

TRANSPORT_TEST(reset_after, timed_out__connects) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.dat()->set_connect_timeout(pair.active.get(), 100'000));
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    wait_error(pair.near, FI_ETIMEDOUT);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, nullptr, 0));
    DAT_MUST(pair.active.dat()->set_connect_timeout(pair.active.get(), FI_DAT_TIMEOUT_INFINITE));
    require_reusable(pair, FI_DAT_END_TIMED_OUT);
}

TRANSPORT_TEST(reset_after, aborted_by_itself__connects) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair.active);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, nullptr, 0));
    require_reusable(pair, FI_DAT_END_DISCONNECTED);
}

TRANSPORT_TEST(reset_after, broken__connects) {
    only_dat();
    Pair pair(transport);
    pair.connect();
    Bytes in(1);
    pair.passive().recv(in.data(), 1);
    pair.active.send("too long", 8);
    wait_shutdown(pair.active);
    wait_shutdown(pair.passive());
    require_reusable(pair, FI_DAT_END_BROKEN);
}

TRANSPORT_TEST(reset_after, accept_completion_error__accepts_the_next_request) {
    only_dat();
    Pair pair(transport);
    Endpoint passive(pair.far);
    {
        Endpoint leaver(pair.near);
        DAT_MUST(leaver.connect(pair.far));
        const Event request = wait_event(pair.far, FI_CONNREQ);
        DAT_MUST(leaver.close());
        DAT_MUST(passive.dat()->take_request(passive.get(), request.info->handle));
        DAT_MUST(passive.accept());
        wait_accept_in_vain(passive, transport);
    }
    DAT_MUST(passive.reset());
    connect_again(pair, pair.active, passive);
    exchange(pair.active, passive, 1);
}

// EP-67: what belongs to an old attempt does not reach the new one.
TRANSPORT_TEST(reset_late, accept_of_an_old_attempt__does_not_touch_the_new_one) {
    only_dat();
    Pair pair(transport);
    Side second(transport);
    second.listen();
    DAT_MUST(pair.active.connect(second));
    const Event old_request = wait_event(second, FI_CONNREQ);
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair.active);
    DAT_MUST(pair.active.reset());
    DAT_MUST(pair.active.connect(pair.far, pattern(5)));
    Endpoint late(second, old_request);
    DAT_MUST(late.accept(pattern(7)));
    wait_accept_in_vain(late, transport);
    const Event request = wait_event(pair.far, FI_CONNREQ);
    cr_assert(request.data == pattern(5));
    require_state(pair.active, FI_DAT_ACTIVE_CONNECTION_PENDING);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept(pattern(9)));
    cr_assert(wait_event(pair.near, FI_CONNECTED).data == pattern(9));
    wait_event(pair.far, FI_CONNECTED);
    exchange(pair.active, passive, 1);
    settle(20);
    cr_assert(pair.near.events().empty());
}

// fi_ext_dat.h, take_request.
TRANSPORT_TEST(reset_take_request, of_a_request_given_elsewhere__is_refused) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint first(pair.far, request);
    Endpoint second(pair.far);
    cr_assert_eq(second.dat()->take_request(second.get(), request.info->handle), -FI_EINVAL);
    DAT_MUST(first.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
    cr_assert_neq(second.accept(), 0);
}

TRANSPORT_TEST(reset_take_request, in_connected__is_refused) {
    only_dat();
    Pair pair(transport);
    pair.connect();
    Endpoint other(pair.near);
    DAT_MUST(other.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint& busy = pair.passive();
    cr_assert_eq(busy.dat()->take_request(busy.get(), request.info->handle), -FI_EOPBADSTATE);
    Endpoint passive(pair.far, request);
    DAT_MUST(passive.accept());
    cr_assert_eq(wait_event(pair.near, FI_CONNECTED).fid, other.fid());
    wait_event(pair.far, FI_CONNECTED);
}

TRANSPORT_TEST(reset_take_request, of_a_second_request__rejects_the_first) {
    only_dat();
    Pair pair(transport);
    Endpoint passive(pair.far);
    DAT_MUST(pair.active.connect(pair.far));
    const Event first = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(passive.dat()->take_request(passive.get(), first.info->handle));
    Endpoint other(pair.near);
    DAT_MUST(other.connect(pair.far));
    const Event second = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(passive.dat()->take_request(passive.get(), second.info->handle));
    cr_assert_eq(wait_error(pair.near, FI_ECONNREFUSED).fid, pair.active.fid());
    DAT_MUST(passive.accept());
    cr_assert_eq(wait_event(pair.near, FI_CONNECTED).fid, other.fid());
    wait_event(pair.far, FI_CONNECTED);
}
