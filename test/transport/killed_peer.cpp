// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: `dat` here, `dat` in another process, which is killed at each stage
// of a connection and of a transfer. Each operation completes once, in the order of its
// stream, the attempt ends by one event, and the endpoint is good for another one. To
// stop the peer first (SIGSTOP) makes certain how far it had come.
#include "child.h"
#include "suite.h"

#include <csignal>
#include <cstring>

using namespace dat::test;

namespace {

// More than sockets hold; of a device, its longest message.
std::size_t large_for(const Transport& transport) {
    return transport.device ? std::size_t{8} << 20 : std::size_t{32} << 20;
}

// After the end: reset, and a connection with somebody who lives.
void require_reusable(const Transport& transport, Endpoint& endpoint) {
    DAT_MUST(endpoint.reset());
    Side other(transport);
    other.listen();
    Endpoint passive = establish(endpoint, other);
    std::uint8_t in = 0;
    const std::uint8_t out = 9;
    Op& receive = passive.recv(&in, 1);
    wait_op(endpoint.send(&out, 1));
    wait_op(receive);
    cr_assert(receive.ok() && in == out);
    DAT_MUST(endpoint.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(endpoint);
}

// What every test of a connection that was established ends with.
void require_ended(const Transport& transport, Side& side, Endpoint& endpoint,
                   const std::vector<std::vector<Op*>>& streams) {
    require_one_end(side, endpoint);
    for (const std::vector<Op*>& stream : streams) {
        require_once(stream);
        require_stream_order(stream);
    }
    require_reusable(transport, endpoint);
}

// Of an attempt that was not: this error alone.
void require_failed(const Transport& transport, Side& side, Endpoint& endpoint, int err,
                    fi_dat_end end, const std::vector<Op*>& receives = {}) {
    wait_error(side, err);
    require_end(endpoint, end);
    require_once(receives);
    for (const Op* op : receives)
        cr_assert(op->flushed());
    settle();
    cr_assert(side.events().empty(), "another event");
    require_reusable(transport, endpoint);
}

// A connection that this side made, with receives.
struct Connected : ToChild {
    explicit Connected(const Transport& transport_) : ToChild(transport_), transport(transport_) {
        connect();
        receives = post_receives(endpoint, in);
    }
    void kill() { child.kill(); }
    void kill_and_check() {
        kill();
        require_ended(transport, side, endpoint, {receives, requests});
    }
    const Transport& transport;
    std::vector<Bytes> in = std::vector<Bytes>(5, Bytes(100));
    std::vector<Op*> receives;
    std::vector<Op*> requests;
};

// A place in pattern(size) from which on it differs from zeros, about a quarter in.
bool has_come_a_quarter(const Bytes& sink, const Bytes& sent) {
    std::size_t at = sink.size() / 4;
    while (sent[at] == 0)
        ++at;
    return sink[at] == sent[at];
}

std::string of_size(const char* verb, std::size_t size, Remote remote) {
    return std::string(verb) + ' ' + std::to_string(size) + ' ' + std::to_string(remote.address) +
           ' ' + std::to_string(remote.key);
}

} // namespace

// ---- of a connection that this side asks for -----------------------------

// EP-42, U-1.
TRANSPORT_TEST(killed_peer, before_the_request__is_refused) {
    only_dat();
    ToChild peer(transport);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.kill();
    DAT_MUST(peer.endpoint.connect(peer.address));
    require_failed(transport, peer.side, peer.endpoint, FI_ECONNREFUSED,
                   FI_DAT_END_NON_PEER_REJECTED, receives);
}

// EP-42, U-2: its system has taken the request, nobody has read it.
TRANSPORT_TEST(killed_peer, with_the_request_sent__is_refused) {
    only_dat();
    ToChild peer(transport);
    peer.child.signal(SIGSTOP);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    DAT_MUST(peer.endpoint.connect(peer.address));
    settle();
    require_state(peer.endpoint, FI_DAT_ACTIVE_CONNECTION_PENDING);
    peer.child.kill();
    require_failed(transport, peer.side, peer.endpoint, FI_ECONNREFUSED,
                   FI_DAT_END_NON_PEER_REJECTED, receives);
}

// EP-42, U-2: the listener dies with the request.
TRANSPORT_TEST(killed_peer, while_our_request_is_pending__is_refused) {
    only_dat();
    ToChild peer(transport);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.request();
    peer.child.kill();
    require_failed(transport, peer.side, peer.endpoint, FI_ECONNREFUSED,
                   FI_DAT_END_NON_PEER_REJECTED, receives);
}

// It has accepted; whether its reply was read before its end is all the same.
TRANSPORT_TEST(killed_peer, having_accepted__ends_one_way) {
    only_dat();
    ToChild peer(transport);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.request();
    peer.side.asleep = true;
    peer.child.expect("accept 0", "ok");
    peer.child.kill();
    peer.side.asleep = false;
    cr_assert(wait_until([&] { return !peer.side.events().empty(); }));
    if (peer.side.events().front().type == FI_CONNECTED) {
        wait_event(peer.side, FI_CONNECTED);
        return require_ended(transport, peer.side, peer.endpoint, {receives});
    }
    require_failed(transport, peer.side, peer.endpoint, FI_ECONNREFUSED,
                   FI_DAT_END_NON_PEER_REJECTED, receives);
}

// ---- of a connection that it asks for ------------------------------------

// CR-6, EP-50, EP-52: the requester dies.
TRANSPORT_TEST(killed_peer, while_its_request_is_pending__fails_the_accept) {
    only_dat();
    FromChild peer(transport);
    peer.child.kill();
    settle();
    cr_assert(peer.side.events().empty());
    DAT_MUST(peer.endpoint->accept());
    require_failed(transport, peer.side, *peer.endpoint, FI_ECONNABORTED, FI_DAT_END_ACCEPT_ERROR);
}

// EP-52, U-65: what makes the connection complete will never come.
TRANSPORT_TEST(killed_peer, before_its_ready_to_receive__fails_the_accept) {
    only_dat();
    FromChild peer(transport);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(*peer.endpoint, in);
    peer.child.signal(SIGSTOP);
    DAT_MUST(peer.endpoint->accept());
    settle();
    require_state(*peer.endpoint, FI_DAT_COMPLETION_PENDING);
    peer.child.kill();
    require_failed(transport, peer.side, *peer.endpoint, FI_ECONNABORTED, FI_DAT_END_ACCEPT_ERROR,
                   receives);
}

// At whatever point of the handshake that is.
TRANSPORT_TEST(killed_peer, right_after_accept__ends_one_way) {
    only_dat();
    FromChild peer(transport);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(*peer.endpoint, in);
    DAT_MUST(peer.endpoint->accept());
    peer.child.kill();
    cr_assert(wait_until([&] { return !peer.side.events().empty(); }));
    if (peer.side.events().front().type == FI_CONNECTED) {
        wait_event(peer.side, FI_CONNECTED);
        return require_ended(transport, peer.side, *peer.endpoint, {receives});
    }
    require_failed(transport, peer.side, *peer.endpoint, FI_ECONNABORTED, FI_DAT_END_ACCEPT_ERROR,
                   receives);
}

// ---- connected -----------------------------------------------------------

TRANSPORT_TEST(killed_peer, idle__ends_this_side_once) {
    only_dat();
    Connected peer(transport);
    peer.kill_and_check();
    for (const Op* op : peer.receives)
        cr_assert(op->flushed());
}

// Some have completed; those that it was stopped before are not known to be placed.
TRANSPORT_TEST(killed_peer, amid_our_small_sends__completes_each_once) {
    only_dat();
    Connected peer(transport);
    const Bytes out = pattern(64);
    peer.child.expect("recv 100 64", "ok");
    for (int i = 0; i < 50; ++i)
        peer.requests.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    wait_ops(peer.requests);
    peer.child.signal(SIGSTOP);
    for (int i = 0; i < 50; ++i)
        peer.requests.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    settle();
    peer.kill_and_check();
    cr_assert(peer.requests[49]->ok() && peer.requests[99]->flushed());
}

TRANSPORT_TEST(killed_peer, amid_its_small_sends__completes_each_receive_once) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    std::vector<Bytes> in(128, Bytes(64));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.tell("send 100 64");
    wait_op(*receives.front());
    peer.child.kill();
    require_ended(transport, peer.side, peer.endpoint, {receives});
    cr_assert(receives.front()->ok() && receives.back()->flushed());
    for (std::size_t i = 0; i < in.size(); ++i)
        cr_assert(!receives[i]->ok() || in[i] == pattern(64));
}

TRANSPORT_TEST(killed_peer, amid_our_large_send__flushes_it) {
    only_dat();
    const std::size_t large = large_for(transport);
    Connected peer(transport);
    const Bytes out = pattern(large);
    peer.child.expect("recv 1 " + std::to_string(large), "ok");
    peer.child.signal(SIGSTOP);
    peer.requests.push_back(&peer.endpoint.send(out.data(), large));
    settle(20);
    peer.kill_and_check();
    cr_assert(peer.requests[0]->flushed());
}

// U-2: the stream may end inside a frame; either way the receive is not a success.
TRANSPORT_TEST(killed_peer, amid_its_large_send__completes_the_receive_once) {
    only_dat();
    const std::size_t large = large_for(transport);
    ToChild peer(transport);
    peer.connect();
    const Bytes sent = pattern(large);
    std::vector<Bytes> in(2, Bytes(large));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.tell("send 2 " + std::to_string(large));
    cr_assert(wait_until([&] { return has_come_a_quarter(in[0], sent); }));
    peer.child.kill();
    require_ended(transport, peer.side, peer.endpoint, {receives});
    cr_assert(!receives[0]->ok() || in[0] == sent);
}

TRANSPORT_TEST(killed_peer, amid_our_write__flushes_it) {
    only_dat();
    const std::size_t large = large_for(transport);
    Connected peer(transport);
    const Bytes out = pattern(large);
    const Remote remote = peer.child.region(large);
    peer.child.signal(SIGSTOP);
    peer.requests.push_back(&peer.endpoint.write(out.data(), large, remote));
    peer.requests.push_back(&peer.endpoint.write_confirmed(out.data(), 64, remote));
    settle(20);
    peer.kill_and_check();
    cr_assert(peer.requests[0]->flushed() && peer.requests[1]->flushed());
}

TRANSPORT_TEST(killed_peer, amid_its_write__ends_this_side_once) {
    only_dat();
    const std::size_t large = large_for(transport);
    Connected peer(transport);
    const Bytes sent = pattern(large);
    Region region(peer.side, large, FI_REMOTE_WRITE);
    peer.child.tell(of_size("write", large, region.at(0)));
    std::size_t at = large / 4;
    while (sent[at] == 0)
        ++at;
    cr_assert(wait_until([&] { return region.data()[at] == sent[at]; }));
    peer.kill_and_check();
    cr_assert(region.guards_whole());
}

TRANSPORT_TEST(killed_peer, amid_our_read__flushes_it_once) {
    only_dat();
    const std::size_t large = large_for(transport);
    Connected peer(transport);
    const Remote remote = peer.child.region(large);
    Bytes sinks[2] = {Bytes(large, 1), Bytes(large, 1)};
    for (Bytes& sink : sinks)
        peer.requests.push_back(&peer.endpoint.read(sink.data(), large, remote));
    cr_assert(wait_until([&] { return sinks[0][large / 4] == 0; }));
    peer.kill_and_check();
}

TRANSPORT_TEST(killed_peer, amid_its_read__ends_this_side_once) {
    only_dat();
    const std::size_t large = large_for(transport);
    Connected peer(transport);
    Region region(peer.side, large, FI_REMOTE_READ);
    peer.side.asleep = true;
    peer.child.expect(of_size("read", large, region.at(0)), "ok");
    peer.child.signal(SIGSTOP);
    peer.side.asleep = false;
    settle(20); // the answer fills the socket, and is not read
    peer.kill_and_check();
    cr_assert(region.guards_whole());
}

// Sends that it takes no more, receives half filled, reads half answered.
TRANSPORT_TEST(killed_peer, amid_everything_at_once__completes_each_once) {
    only_dat();
    constexpr std::size_t kSize = 4 << 20;
    ToChild peer(transport);
    peer.connect();
    const Remote remote = peer.child.region(kSize);
    const Bytes out = pattern(kSize);
    std::vector<Bytes> in(4, Bytes(kSize));
    std::vector<Bytes> sinks(4, Bytes(kSize));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    std::vector<Op*> requests;
    peer.child.expect("recv 4 " + std::to_string(kSize), "ok");
    for (Bytes& sink : sinks) {
        requests.push_back(&peer.endpoint.send_confirmed(out.data(), kSize));
        requests.push_back(&peer.endpoint.read(sink.data(), kSize, remote));
        requests.push_back(&peer.endpoint.write_confirmed(out.data(), kSize, remote));
    }
    peer.child.tell("send 4 " + std::to_string(kSize));
    wait_op(*requests.front());
    peer.child.kill();
    require_ended(transport, peer.side, peer.endpoint, {receives, requests});
}

// ---- ending --------------------------------------------------------------

// DISC-4, U-4: a drain that cannot finish.
TRANSPORT_TEST(killed_peer, while_we_drain__ends_once) {
    only_dat();
    Connected peer(transport);
    const Bytes out = pattern(1 << 20);
    for (int i = 0; i < 20; ++i) // more than buffers hold, and no receives there
        peer.requests.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    DAT_MUST(peer.endpoint.disconnect(FI_DAT_GRACEFUL));
    require_state(peer.endpoint, FI_DAT_DISCONNECT_PENDING);
    peer.kill();
    wait_shutdown(peer.endpoint);
    require_once(peer.requests);
    require_stream_order(peer.requests);
    require_once(peer.receives);
    require_end(peer.endpoint, FI_DAT_END_DISCONNECTED);
    settle();
    cr_assert(peer.side.events().empty());
    require_reusable(transport, peer.endpoint);
}

// DISC-4: what it had sent is received first, then its end comes.
TRANSPORT_TEST(killed_peer, while_it_drains__ends_this_side_once) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    peer.child.expect("send 10 10000", "ok"); // more than are staged without a receive
    peer.child.expect("disconnect graceful", "ok");
    Bytes in(10'000);
    Op& first = peer.endpoint.recv(in.data(), in.size());
    wait_op(first);
    cr_assert(first.ok() && in == pattern(10'000));
    peer.child.kill();
    settle();
    std::vector<Bytes> more(20, Bytes(10'000));
    const std::vector<Op*> receives = post_receives(peer.endpoint, more);
    require_ended(transport, peer.side, peer.endpoint, {receives});
    cr_assert(receives.front()->ok() && receives.back()->flushed());
}

// RST-4: it is a matter of the connection that is over.
TRANSPORT_TEST(killed_peer, after_a_reset__is_not_noticed) {
    only_dat();
    Connected peer(transport);
    DAT_MUST(peer.endpoint.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(peer.endpoint);
    DAT_MUST(peer.endpoint.reset());
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.kill();
    settle();
    cr_assert(peer.side.events().empty());
    require_state(peer.endpoint, FI_DAT_UNCONNECTED);
    for (const Op* op : receives)
        cr_assert(!op->done());
    require_reusable(transport, peer.endpoint);
}

// The same where it is the one that has ended the connection, and was reset.
TRANSPORT_TEST(killed_peer, having_reset_its_endpoint__ends_this_side_once) {
    only_dat();
    FromChild peer(transport);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(*peer.endpoint, in);
    DAT_MUST(peer.endpoint->accept());
    wait_event(peer.side, FI_CONNECTED);
    peer.child.expect("event", "connected 0");
    peer.child.expect("disconnect abrupt", "ok");
    peer.child.ask("event");
    peer.child.expect("reset", "ok");
    peer.child.kill();
    require_ended(transport, peer.side, *peer.endpoint, {receives});
}
