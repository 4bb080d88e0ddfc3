// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: how a connection ends. Graceful and abrupt disconnect, from
// one side and from both, fi_shutdown() and fi_close() in every state. That
// every operation has completed when the ending event can be read is checked
// by the fixture, in each test.
#include "suite.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace dat::test;

namespace {

constexpr std::size_t kSize = 50'000;

struct Posted {
    std::vector<Bytes> buffers;
    std::vector<Op*> ops;
};

Posted post_receives(Endpoint& to, std::size_t count, std::size_t size = kSize) {
    Posted posted;
    posted.buffers.assign(count, Bytes(size));
    for (Bytes& buffer : posted.buffers)
        posted.ops.push_back(&to.recv(buffer.data(), size));
    return posted;
}

Posted post_sends(Endpoint& from, std::size_t count, std::size_t size = kSize) {
    Posted posted;
    for (std::size_t i = 0; i < count; ++i)
        posted.buffers.push_back(pattern(size, static_cast<unsigned>(i)));
    for (const Bytes& buffer : posted.buffers)
        posted.ops.push_back(&from.send_confirmed(buffer.data(), size));
    return posted;
}

void require_all_ok(const Posted& posted) {
    for (const Op* op : posted.ops)
        cr_assert(op->ok(), "error %d", op->err);
}

void require_all_flushed(const Posted& posted) {
    for (const Op* op : posted.ops) {
        cr_assert(op->flushed(), "%d completions, error %d", op->completions, op->err);
        cr_assert_eq(op->prov_errno, 1);
    }
}

// EP-70: each side has had its one ending event, and nothing comes after it.
void require_silence(Pair& pair) {
    settle();
    cr_assert(pair.near.events().empty(), "another event on the active side");
    cr_assert(pair.far.events().empty(), "another event on the passive side");
}

void require_both_disconnected(Pair& pair) {
    wait_shutdown(pair.active);
    wait_shutdown(pair.passive());
    require_end(pair.active, FI_DAT_END_DISCONNECTED);
    require_end(pair.passive(), FI_DAT_END_DISCONNECTED);
    require_silence(pair);
}

// FI_DAT_UNEXPECTED=0: a message without a receive has no place at the peer, which
// stops reading.
void no_staging() { setenv("FI_DAT_UNEXPECTED", "0", 1); }

// U-9 (a): how long a graceful end may wait for receives.
void receiver_limit_of_1_s() { setenv("FI_DAT_RNR_TIMEOUT", "1", 1); }

// The active side has disconnected while messages of its wait for receives that
// the passive side never posts: that is told once, as either end (U-67).
void require_active_then_passive_end(Pair& pair) {
    wait_shutdown(pair.active);
    require_end(pair.active, FI_DAT_END_DISCONNECTED);
    wait_shutdown(pair.passive());
    require_state(pair.passive(), FI_DAT_DISCONNECTED);
    require_silence(pair);
}

// The peer has closed behind messages for which there is no receive, as many as are staged and
// more. Behind the grace, and not before, they are dropped, and the end is the peer's; the other
// limit does not count.
void require_end_behind(std::chrono::milliseconds grace, const Transport& transport) {
    using Clock = std::chrono::steady_clock;
    only_dat();
    setenv("FI_DAT_RNR_TIMEOUT", "600", 1);
    setenv("FI_DAT_END_GRACE", std::to_string(grace.count()).c_str(), 1);
    for (const std::size_t size : {std::size_t{1}, std::size_t{1000}}) {
        auto pair = Pair::connected(transport);
        const Bytes out = pattern(size);
        const auto begin = Clock::now();
        for (int i = 0; i < 100; ++i)
            wait_op(pair->active.send(out.data(), out.size()));
        DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
        wait_shutdown(pair->active);
        wait_shutdown(pair->passive());
        const auto lasted = Clock::now() - begin;
        cr_assert_geq(lasted, grace);
        cr_assert_lt(lasted, grace + std::chrono::seconds(5)); // the default is 10 s
        require_end(pair->passive(), FI_DAT_END_DISCONNECTED);
        cr_assert_eq(pair->passive().status().reason, FI_DAT_REASON_PEER_CLOSED);
        require_silence(*pair);
    }
}

} // namespace

// DISC-4, DISC-16, EP-58: all requests, and on the other side all messages.
TRANSPORT_TEST(end_graceful, with_requests_outstanding__carries_them_out_first) {
    only_dat();
    constexpr std::size_t kCount = 60;
    auto pair = Pair::connected(transport);
    const Posted receives = post_receives(pair->passive(), kCount);
    const Posted unused = post_receives(pair->active, 5);
    Region memory(pair->far, kSize, FI_REMOTE_WRITE | FI_REMOTE_READ);
    const Posted sends = post_sends(pair->active, kCount);
    const Bytes written(kSize, 7);
    Bytes read_back(kSize);
    Op& write = pair->active.write_confirmed(written.data(), kSize, memory.at(0));
    Op& read = pair->active.read(read_back.data(), kSize, memory.at(0));
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    require_both_disconnected(*pair);
    require_all_ok(sends);
    require_all_ok(receives);
    cr_assert(write.ok() && read.ok());
    cr_assert(memory.all(7) && read_back == written);
    require_all_flushed(unused);
    for (std::size_t i = 0; i < kCount; ++i)
        cr_assert(receives.buffers[i] == sends.buffers[i], "message %zu", i);
    cr_assert_eq(pair->active.status().reason, FI_DAT_REASON_LOCAL);
    cr_assert_eq(pair->passive().status().reason, FI_DAT_REASON_PEER_CLOSED);
}

TRANSPORT_TEST(end_graceful, by_the_passive_side__carries_its_requests_out_first) {
    only_dat();
    auto pair = Pair::connected(transport);
    const Posted receives = post_receives(pair->active, 20);
    const Posted sends = post_sends(pair->passive(), 20);
    DAT_MUST(pair->passive().disconnect(FI_DAT_GRACEFUL));
    require_both_disconnected(*pair);
    require_all_ok(sends);
    require_all_ok(receives);
}

TRANSPORT_TEST(end_graceful, with_nothing_outstanding__ends_both_sides) {
    only_dat();
    auto pair = Pair::connected(transport);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    require_both_disconnected(*pair);
}

// DISC-4, DISC-5, U-42: while it drains.
TRANSPORT_TEST(end_graceful, while_the_peer_has_no_receives__waits_and_refuses_requests) {
    only_dat();
    no_staging();
    auto pair = Pair::connected(transport);
    Posted sends = post_sends(pair->active, 4);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    require_state(pair->active, FI_DAT_DISCONNECT_PENDING);
    settle();
    require_state(pair->active, FI_DAT_DISCONNECT_PENDING);
    cr_assert(!pair->active.status().request_idle);
    Op& refused = new_op();
    cr_assert_eq(fi_send(pair->active.get(), "x", 1, nullptr, FI_ADDR_UNSPEC, &refused),
                 -FI_EOPBADSTATE);
    const Posted late = post_receives(pair->active, 1);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL)); // U-39: no effect
    cr_assert(pair->near.events().empty() && pair->far.events().empty());
    const Posted receives = post_receives(pair->passive(), 4);
    require_both_disconnected(*pair);
    require_all_ok(sends);
    require_all_ok(receives);
    require_all_flushed(late);
    cr_assert(!refused.done());
}

// DISC-5.
TRANSPORT_TEST(end_graceful, then_abrupt__stops_waiting) {
    only_dat();
    no_staging();
    receiver_limit_of_1_s();
    auto pair = Pair::connected(transport);
    const Posted sends = post_sends(pair->active, 4);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    require_state(pair->active, FI_DAT_DISCONNECT_PENDING);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    require_active_then_passive_end(*pair);
    require_once(sends.ops);
    require_stream_order(sends.ops);
}

// EP-55: the peer's end while this side still drains.
TRANSPORT_TEST(end_graceful, while_the_peer_disconnects__ends_once) {
    only_dat();
    no_staging();
    auto pair = Pair::connected(transport);
    const Posted sends = post_sends(pair->active, 4);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    require_both_disconnected(*pair);
    require_once(sends.ops);
    require_stream_order(sends.ops);
}

// EP-54, U-2: the peer's own requests are not drained.
TRANSPORT_TEST(end_graceful, while_the_peer_has_requests__flushes_the_peers) {
    only_dat();
    no_staging();
    auto pair = Pair::connected(transport);
    const Posted stuck = post_sends(pair->passive(), 3);
    settle(20);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    require_both_disconnected(*pair);
    require_all_flushed(stuck);
}

// EP-69.
TRANSPORT_TEST(end_graceful, by_both_sides_at_once__ends_once_on_each) {
    only_dat();
    auto pair = Pair::connected(transport);
    const Posted to_passive = post_receives(pair->passive(), 10);
    const Posted to_active = post_receives(pair->active, 10);
    const Posted from_active = post_sends(pair->active, 10);
    const Posted from_passive = post_sends(pair->passive(), 10);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    DAT_MUST(pair->passive().disconnect(FI_DAT_GRACEFUL));
    require_both_disconnected(*pair);
    for (const Posted* posted : {&to_passive, &to_active, &from_active, &from_passive}) {
        require_once(posted->ops);
        require_stream_order(posted->ops);
    }
}

// U-9 (a), U-42, U-4: the drain is bounded by the receiver-not-ready limit.
TRANSPORT_TEST(end_graceful, peer_never_posts_a_receive__ends_with_receiver_not_ready) {
    only_dat();
    no_staging();
    receiver_limit_of_1_s();
    auto pair = Pair::connected(transport);
    const Posted sends = post_sends(pair->active, 3);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    wait_shutdown(pair->active);
    wait_shutdown(pair->passive());
    require_end(pair->active, FI_DAT_END_DISCONNECTED);
    require_once(sends.ops);
    require_stream_order(sends.ops);
    cr_assert_eq(sends.ops[0]->err, FI_ENORX, "got %d", sends.ops[0]->err);
    cr_assert_eq(sends.ops[0]->prov_errno, 9);
    require_silence(*pair);
}

// U-9: no limit while both are connected.
TRANSPORT_TEST(end_never, no_receive_while_connected__stays_connected_past_the_limit) {
    only_dat();
    no_staging();
    receiver_limit_of_1_s();
    auto pair = Pair::connected(transport);
    const Posted sends = post_sends(pair->active, 3);
    settle(1400);
    require_state(pair->active, FI_DAT_CONNECTED);
    require_state(pair->passive(), FI_DAT_CONNECTED);
    const Posted receives = post_receives(pair->passive(), 3);
    wait_ops(sends.ops);
    wait_ops(receives.ops);
    require_all_ok(sends);
    require_all_ok(receives);
}

// U-67: without a grace. The variables are read once, so there is a test for each.
TRANSPORT_TEST(end_peer_closed, behind_data_without_a_receive__ends_at_once) {
    require_end_behind(std::chrono::milliseconds(0), transport);
}

// U-67: with one.
TRANSPORT_TEST(end_peer_closed, behind_data_without_a_receive__ends_behind_the_grace) {
    require_end_behind(std::chrono::milliseconds(2000), transport);
}

// The same, and receives come within the grace: nothing is dropped.
TRANSPORT_TEST(end_peer_closed, behind_data_that_is_received_within_the_grace__loses_nothing) {
    only_dat();
    setenv("FI_DAT_RNR_TIMEOUT", "1", 1);
    setenv("FI_DAT_END_GRACE", "600000", 1);
    auto pair = Pair::connected(transport);
    const Bytes out = pattern(1000);
    for (int i = 0; i < 20; ++i)
        wait_op(pair->active.send(out.data(), out.size()));
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair->active);
    settle(1400); // longer than the other limit
    require_state(pair->passive(), FI_DAT_CONNECTED);
    const Posted receives = post_receives(pair->passive(), 20);
    wait_ops(receives.ops);
    require_all_ok(receives);
    wait_shutdown(pair->passive());
    require_end(pair->passive(), FI_DAT_END_DISCONNECTED);
    require_silence(*pair);
}

// DISC-3, DISC-8, DISC-11.
TRANSPORT_TEST(end_abrupt, with_operations_outstanding__flushes_them_in_order) {
    only_dat();
    no_staging();
    receiver_limit_of_1_s();
    auto pair = Pair::connected(transport);
    const Posted receives = post_receives(pair->active, 10);
    const Posted sends = post_sends(pair->active, 10);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    require_active_then_passive_end(*pair);
    require_all_flushed(receives);
    require_all_flushed(sends);
    require_stream_order(receives.ops);
    require_stream_order(sends.ops);
    cr_assert_eq(pair->active.status().reason, FI_DAT_REASON_LOCAL);
    cr_assert(pair->active.status().recv_idle && pair->active.status().request_idle);
}

// EP-54.
TRANSPORT_TEST(end_abrupt, by_the_peer__flushes_here_too) {
    only_dat();
    auto pair = Pair::connected(transport);
    const Posted receives = post_receives(pair->passive(), 10);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    require_both_disconnected(*pair);
    require_all_flushed(receives);
}

// In the middle of large transfers both ways: what is done is done, the rest flushed.
TRANSPORT_TEST(end_abrupt, amid_large_transfers__completes_each_operation_once) {
    only_dat();
    constexpr std::size_t kLarge = 4 << 20;
    auto pair = Pair::connected(transport);
    Region memory(pair->far, kLarge, FI_REMOTE_READ | FI_REMOTE_WRITE);
    const Posted to_passive = post_receives(pair->passive(), 4, kLarge);
    const Posted to_active = post_receives(pair->active, 4, kLarge);
    const Posted from_active = post_sends(pair->active, 4, kLarge);
    const Posted from_passive = post_sends(pair->passive(), 4, kLarge);
    Bytes sink(kLarge);
    std::vector<Op*> more{&pair->active.read(sink.data(), kLarge, memory.at(0))};
    wait_op(*to_passive.ops[0]);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair->active);
    wait_shutdown(pair->passive());
    require_end(pair->active, FI_DAT_END_DISCONNECTED);
    require_once(more);
    for (const Posted* posted : {&to_passive, &to_active, &from_active, &from_passive}) {
        require_once(posted->ops);
        require_stream_order(posted->ops);
    }
    require_silence(*pair);
}

// EP-59, EP-54 crossing.
TRANSPORT_TEST(end_abrupt, by_both_sides_at_once__ends_once_on_each) {
    only_dat();
    auto pair = Pair::connected(transport);
    const Posted near = post_receives(pair->active, 3);
    const Posted far = post_receives(pair->passive(), 3);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    require_both_disconnected(*pair);
    require_all_flushed(near);
    require_all_flushed(far);
}

// DISC-13, EP-18, EP-19.
TRANSPORT_TEST(end_twice, any_way__is_a_no_op_without_event) {
    only_dat();
    auto pair = Pair::connected(transport);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    require_both_disconnected(*pair);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    DAT_MUST(pair->passive().disconnect(FI_DAT_GRACEFUL));
    DAT_MUST(fi_shutdown(pair->active.get(), 0));
    require_end(pair->active, FI_DAT_END_DISCONNECTED);
    require_silence(*pair);
}

// DISC-14, EP-18: nothing to disconnect.
TRANSPORT_TEST(end_without_connection, any_way__is_refused) {
    only_dat();
    Pair pair(transport);
    cr_assert_eq(pair.active.disconnect(FI_DAT_ABRUPT), -FI_EOPBADSTATE);
    cr_assert_eq(pair.active.disconnect(FI_DAT_GRACEFUL), -FI_EOPBADSTATE);
    cr_assert_eq(fi_shutdown(pair.active.get(), 0), -FI_EOPBADSTATE);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    cr_assert_eq(passive.disconnect(FI_DAT_ABRUPT), -FI_EOPBADSTATE);
    DAT_MUST(passive.accept());
    wait_event(pair.near, FI_CONNECTED);
    wait_event(pair.far, FI_CONNECTED);
}

// EP-20.
TRANSPORT_TEST(end_unknown_way, in_any_state__is_refused) {
    only_dat();
    Pair pair(transport);
    cr_assert_eq(pair.active.dat()->disconnect(pair.active.get(), 7), -FI_EINVAL);
    pair.connect();
    cr_assert_eq(pair.active.dat()->disconnect(pair.active.get(), 7), -FI_EINVAL);
    require_state(pair.active, FI_DAT_CONNECTED);
}

// EP-45, DISC-6, U-3; the passive side: CR-6.
TRANSPORT_TEST(end_of_attempt, while_the_request_is_pending__ends_once_and_accept_fails) {
    only_dat();
    for (const fi_dat_disconnect how : {FI_DAT_ABRUPT, FI_DAT_GRACEFUL}) {
        Pair pair(transport);
        const Posted receives = post_receives(pair.active, 3);
        DAT_MUST(pair.active.connect(pair.far));
        const Event request = wait_event(pair.far, FI_CONNREQ);
        DAT_MUST(pair.active.disconnect(how));
        wait_shutdown(pair.active);
        require_end(pair.active, FI_DAT_END_DISCONNECTED);
        require_all_flushed(receives);
        Endpoint passive(pair.far, request);
        DAT_MUST(passive.accept());
        wait_accept_in_vain(passive, transport);
        require_silence(pair);
    }
}

// At once after fi_connect(), before anything can have been answered.
TRANSPORT_TEST(end_of_attempt, at_once__ends_once) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    DAT_MUST(pair.active.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(pair.active);
    require_end(pair.active, FI_DAT_END_DISCONNECTED);
    settle();
    cr_assert(pair.near.events().empty());
}

// EP-72, EP-41.
TRANSPORT_TEST(end_of_attempt, by_rejection__flushes_the_receives) {
    only_dat();
    Pair pair(transport);
    const Posted receives = post_receives(pair.active, 3);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, nullptr, 0));
    wait_error(pair.near, FI_ECONNREFUSED);
    require_all_flushed(receives);
}

// fi_shutdown() is abrupt, unless FI_DAT_CLOSE says otherwise.
TRANSPORT_TEST(end_shutdown, by_default__is_abrupt) {
    only_dat();
    no_staging();
    receiver_limit_of_1_s();
    auto pair = Pair::connected(transport);
    const Posted sends = post_sends(pair->active, 3);
    DAT_MUST(fi_shutdown(pair->active.get(), 0));
    require_active_then_passive_end(*pair);
    require_all_flushed(sends);
}

TRANSPORT_TEST(end_shutdown, with_close_graceful__drains) {
    only_dat();
    no_staging();
    setenv("FI_DAT_CLOSE", "graceful", 1);
    auto pair = Pair::connected(transport);
    const Posted sends = post_sends(pair->active, 3);
    DAT_MUST(fi_shutdown(pair->active.get(), 0));
    require_state(pair->active, FI_DAT_DISCONNECT_PENDING);
    const Posted receives = post_receives(pair->passive(), 3);
    require_both_disconnected(*pair);
    require_all_ok(sends);
    require_all_ok(receives);
}

// What any libfabric provider has to do.
TRANSPORT_TEST(end_shutdown, on_either_side__is_seen_on_the_other) {
    auto pair = Pair::connected(transport);
    DAT_MUST(fi_shutdown(pair->passive().get(), 0));
    wait_shutdown(pair->active);
}

// FREE-2, FREE-3: the peer of a closed endpoint.
TRANSPORT_TEST(end_close, while_connected__flushes_and_ends_the_peer) {
    only_dat();
    no_staging();
    receiver_limit_of_1_s();
    auto pair = Pair::connected(transport);
    const Posted receives = post_receives(pair->active, 3);
    const Posted sends = post_sends(pair->active, 3);
    const Posted at_peer = post_receives(pair->passive(), 1);
    wait_op(*at_peer.ops[0]);
    DAT_MUST(pair->active.close());
    require_all_flushed(receives);
    require_once(sends.ops);
    wait_shutdown(pair->passive());
    require_silence(*pair);
}

// EP-22: each of the other states.
TRANSPORT_TEST(end_close, while_unconnected__flushes_the_receives) {
    only_dat();
    Side side(transport);
    Endpoint endpoint(side);
    const Posted receives = post_receives(endpoint, 3);
    DAT_MUST(endpoint.close());
    require_all_flushed(receives);
    settle(20);
    cr_assert(side.events().empty());
}

TRANSPORT_TEST(end_close, while_connecting__flushes_and_raises_nothing) {
    only_dat();
    Pair pair(transport);
    const Posted receives = post_receives(pair.active, 3);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    DAT_MUST(pair.active.close());
    require_all_flushed(receives);
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, nullptr, 0));
    require_silence(pair);
}

TRANSPORT_TEST(end_close, with_an_unanswered_request__leaves_the_request) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint first(pair.far, request);
    const Posted receives = post_receives(first, 3);
    DAT_MUST(first.close());
    require_all_flushed(receives);
    settle();
    cr_assert(pair.near.events().empty());
    DAT_MUST(fi_reject(pair.far.pep(), request.info->handle, nullptr, 0));
    wait_error(pair.near, FI_ECONNREFUSED);
}

TRANSPORT_TEST(end_close, right_after_accept__raises_nothing_here_and_ends_the_peer) {
    only_dat();
    Pair pair(transport);
    DAT_MUST(pair.active.connect(pair.far));
    const Event request = wait_event(pair.far, FI_CONNREQ);
    Endpoint passive(pair.far, request);
    const Posted receives = post_receives(passive, 3);
    DAT_MUST(passive.accept());
    DAT_MUST(passive.close());
    require_all_flushed(receives);
    cr_assert(wait_until([&] { return !pair.near.events().empty(); }));
    // Either it was connected for a moment, or the attempt has failed.
    if (pair.near.events().front().type == FI_CONNECTED) {
        wait_event(pair.near, FI_CONNECTED);
        wait_shutdown(pair.active);
    } else {
        wait_error(pair.near, FI_ECONNREFUSED);
    }
    require_silence(pair);
}

TRANSPORT_TEST(end_close, while_draining__flushes_the_requests) {
    only_dat();
    no_staging();
    receiver_limit_of_1_s();
    auto pair = Pair::connected(transport);
    const Posted sends = post_sends(pair->active, 3);
    const Posted receives = post_receives(pair->active, 3);
    DAT_MUST(pair->active.disconnect(FI_DAT_GRACEFUL));
    DAT_MUST(pair->active.close());
    require_all_flushed(receives);
    require_once(sends.ops);
    wait_shutdown(pair->passive());
    require_silence(*pair);
}

TRANSPORT_TEST(end_close, right_after_disconnect__purges_the_event) {
    only_dat();
    auto pair = Pair::connected(transport);
    DAT_MUST(pair->active.disconnect(FI_DAT_ABRUPT));
    DAT_MUST(pair->active.close());
    wait_shutdown(pair->passive());
    DAT_MUST(pair->passive().close());
    require_silence(*pair);
}

// FREE-2, and what ofi_rxm relies on: an event that was not read yet goes with
// its endpoint.
TRANSPORT_TEST(end_close, with_an_unread_event__purges_it) {
    only_dat();
    auto pair = Pair::connected(transport);
    pair->near.asleep = true;
    DAT_MUST(pair->passive().disconnect(FI_DAT_ABRUPT));
    cr_assert(wait_until([&] {
        pair->near.pump_cq();
        return pair->active.status().state == FI_DAT_DISCONNECTED;
    }));
    DAT_MUST(pair->active.close());
    pair->near.asleep = false;
    settle();
    cr_assert(pair->near.events().empty(), "an event of a closed endpoint");
}

// Only that endpoint's events: the other's stay.
TRANSPORT_TEST(end_close, with_unread_events_of_another__leaves_those) {
    only_dat();
    Pair pair(transport);
    pair.connect();
    Endpoint other(pair.near);
    Endpoint other_end = establish(other, pair.far);
    pair.near.asleep = true;
    DAT_MUST(pair.passive().disconnect(FI_DAT_ABRUPT));
    DAT_MUST(other_end.disconnect(FI_DAT_ABRUPT));
    cr_assert(wait_until([&] {
        pair.near.pump_cq();
        return pair.active.status().state == FI_DAT_DISCONNECTED &&
               other.status().state == FI_DAT_DISCONNECTED;
    }));
    DAT_MUST(pair.active.close());
    pair.near.asleep = false;
    wait_shutdown(other);
}

// What holds an object keeps it from being closed.
TRANSPORT_TEST(end_close, of_objects_in_use__is_busy) {
    only_dat();
    auto pair = Pair::connected(transport);
    cr_assert_eq(fi_close(&pair->near.domain()->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&pair->near.cq()->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&pair->near.eq()->fid), -FI_EBUSY);
    cr_assert_eq(fi_close(&pair->near.fabric()->fid), -FI_EBUSY);
    // And nothing has changed.
    Bytes in(3);
    Op& receive = pair->passive().recv(in.data(), in.size());
    wait_op(pair->active.send("abc", 3));
    wait_op(receive);
    cr_assert(receive.ok());
}
