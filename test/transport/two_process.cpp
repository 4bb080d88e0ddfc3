// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: `dat` here, `dat` in another process. A peer that works, one
// that says no, one that falls silent, and one that dies at every stage. May
// include: suite.h, child.h.
#include "child.h"
#include "suite.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace dat::test;

namespace {

// The child listens, this side connects.
struct ToChild {
    explicit ToChild(const Transport& transport)
        : side(transport), child(transport), address(child.listen()), endpoint(side) {}
    void connect() {
        request();
        child.expect("accept 0", "ok");
        wait_event(side, FI_CONNECTED);
        child.expect("event", "connected 0");
    }
    // Up to where the child has the request.
    void request() {
        DAT_MUST(endpoint.connect(address));
        child.expect("event", "connreq 0");
    }
    Side side;
    Child child;
    Bytes address;
    Endpoint endpoint;
};

// This side listens, the child connects.
struct FromChild {
    explicit FromChild(const Transport& transport) : side(transport), child(transport) {
        side.listen();
        child.expect("connect " + std::string(transport.address) + ' ' +
                         std::to_string(side.port()) + " 0",
                     "ok");
        request.emplace(wait_event(side, FI_CONNREQ));
        endpoint.emplace(side, *request);
    }
    Side side;
    Child child;
    std::optional<Event> request;
    std::optional<Endpoint> endpoint;
};

std::vector<Op*> post_receives(Endpoint& endpoint, std::vector<Bytes>& buffers) {
    std::vector<Op*> ops;
    for (Bytes& buffer : buffers)
        ops.push_back(&endpoint.recv(buffer.data(), buffer.size()));
    return ops;
}

// DISC-16: of a peer's death either end may be reported, but one, and once.
void require_one_end(Side& side, const Endpoint& endpoint) {
    wait_shutdown(endpoint);
    const fi_dat_ep_status status = endpoint.status();
    cr_assert_eq(status.state, FI_DAT_DISCONNECTED);
    cr_assert(status.end == FI_DAT_END_DISCONNECTED || status.end == FI_DAT_END_BROKEN);
    settle();
    cr_assert(side.events().empty(), "another event");
}

} // namespace

// ---- a peer that works ---------------------------------------------------

TRANSPORT_TEST(process_messages, both_ways_and_of_many_sizes__arrive) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    for (const std::size_t size : {std::size_t{1}, std::size_t{64}, std::size_t{4096},
                                   std::size_t{65537}, std::size_t{4} << 20}) {
        const std::string ten = " 10 " + std::to_string(size);
        peer.child.expect("recv" + ten, "ok");
        const Bytes out = pattern(size);
        std::vector<Op*> sends;
        for (int i = 0; i < 10; ++i)
            sends.push_back(&peer.endpoint.send(out.data(), out.size()));
        wait_ops(sends);
        peer.child.expect("finish", "results 10 0 0");

        std::vector<Bytes> in(10, Bytes(size));
        const std::vector<Op*> receives = post_receives(peer.endpoint, in);
        peer.child.expect("send" + ten, "ok");
        wait_ops(receives);
        peer.child.expect("finish", "results 10 0 0");
        for (const Bytes& buffer : in)
            cr_assert(buffer == out, "size %zu", size);
    }
}

TRANSPORT_TEST(process_rma, of_the_peers_memory__is_exact) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    constexpr std::size_t kSize = 1 << 20;
    std::istringstream answer(peer.child.ask("region " + std::to_string(kSize)));
    std::string ok;
    Remote remote{};
    answer >> ok >> remote.address >> remote.key;
    const Bytes out = pattern(kSize);
    Bytes in(kSize);
    Op& written = peer.endpoint.write_confirmed(out.data(), kSize, remote);
    wait_op(written);
    Op& read = peer.endpoint.read(in.data(), kSize, remote);
    wait_op(read);
    cr_assert(written.ok() && read.ok() && in == out);
}

// DISC-4, DISC-16 across processes.
TRANSPORT_TEST(process_graceful, with_sends_outstanding__delivers_them_all) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    peer.child.expect("recv 50 100000", "ok");
    const Bytes out = pattern(100'000);
    std::vector<Op*> sends;
    for (int i = 0; i < 50; ++i)
        sends.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    DAT_MUST(peer.endpoint.disconnect(FI_DAT_GRACEFUL));
    wait_shutdown(peer.endpoint);
    for (const Op* op : sends)
        cr_assert(op->ok());
    peer.child.expect("event", "shutdown " + std::to_string(FI_DAT_END_DISCONNECTED) + ' ' +
                                   std::to_string(FI_DAT_REASON_PEER_CLOSED));
    peer.child.expect("finish", "results 50 0 0");
    peer.child.expect("quiet", "ok");
}

// RST-4 across processes.
TRANSPORT_TEST(process_reset, after_each_connection__connects_again) {
    only_dat();
    ToChild peer(transport);
    for (int round = 0; round < 5; ++round) {
        peer.connect();
        peer.child.expect("recv 1 100", "ok");
        wait_op(peer.endpoint.send(pattern(100).data(), 100));
        peer.child.expect("finish", "results 1 0 0");
        peer.child.expect(round & 1 ? "disconnect abrupt" : "close", "ok");
        wait_shutdown(peer.endpoint);
        DAT_MUST(peer.endpoint.reset());
        if (round & 1)
            peer.child.ask("event");
    }
}

// ---- a peer that says no, or nothing -------------------------------------

TRANSPORT_TEST(process_rejects, with_data__is_refused_with_it) {
    only_dat();
    ToChild peer(transport);
    peer.request();
    peer.child.expect("reject 33", "ok");
    cr_assert(wait_error(peer.side, FI_ECONNREFUSED).data == pattern(33));
    require_end(peer.endpoint, FI_DAT_END_PEER_REJECTED);
}

TRANSPORT_TEST(process_never_answers, with_a_connect_timeout__times_out) {
    only_dat();
    ToChild peer(transport);
    DAT_MUST(peer.endpoint.dat()->set_connect_timeout(peer.endpoint.get(), 300'000));
    peer.request();
    wait_error(peer.side, FI_ETIMEDOUT);
    require_end(peer.endpoint, FI_DAT_END_TIMED_OUT);
    // CR-6 on the other side.
    peer.child.expect("accept 0", "ok");
    peer.child.expect("event", "error " + std::to_string(FI_ECONNABORTED) + " 0");
}

TRANSPORT_TEST(process_closes, while_connected__ends_this_side_once) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.expect("close", "ok");
    require_one_end(peer.side, peer.endpoint);
    require_once(receives);
    for (const Op* op : receives)
        cr_assert(op->flushed());
}

TRANSPORT_TEST(process_exits, while_connected__ends_this_side_once) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.tell("quit");
    require_one_end(peer.side, peer.endpoint);
    require_once(receives);
}

// ---- a peer that is killed -----------------------------------------------

TRANSPORT_TEST(process_killed, while_connected__ends_this_side_once) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.kill();
    require_one_end(peer.side, peer.endpoint);
    require_once(receives);
    require_stream_order(receives);
    // And the endpoint is good for another connection.
    DAT_MUST(peer.endpoint.reset());
    Side other(transport);
    other.listen();
    establish(peer.endpoint, other);
}

// Sends that it takes no more, receives half filled, reads half answered.
TRANSPORT_TEST(process_killed, amid_a_transfer__completes_each_operation_once) {
    only_dat();
    constexpr std::size_t kLarge = 4 << 20;
    ToChild peer(transport);
    peer.connect();
    std::istringstream answer(peer.child.ask("region " + std::to_string(kLarge)));
    std::string ok;
    Remote remote{};
    answer >> ok >> remote.address >> remote.key;
    const Bytes out = pattern(kLarge);
    std::vector<Bytes> in(4, Bytes(kLarge));
    std::vector<Bytes> sinks(4, Bytes(kLarge));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    std::vector<Op*> requests;
    peer.child.expect("recv 4 " + std::to_string(kLarge), "ok");
    for (Bytes& sink : sinks) {
        requests.push_back(&peer.endpoint.send_confirmed(out.data(), kLarge));
        requests.push_back(&peer.endpoint.read(sink.data(), kLarge, remote));
        requests.push_back(&peer.endpoint.write_confirmed(out.data(), kLarge, remote));
    }
    peer.child.tell("send 4 " + std::to_string(kLarge));
    wait_op(*requests.front());
    peer.child.kill();
    require_one_end(peer.side, peer.endpoint);
    require_once(requests);
    require_once(receives);
    require_stream_order(requests);
    require_stream_order(receives);
}

// EP-42, U-2: the listener dies with the request.
TRANSPORT_TEST(process_killed, while_our_request_is_pending__is_refused) {
    only_dat();
    ToChild peer(transport);
    peer.request();
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(peer.endpoint, in);
    peer.child.kill();
    wait_error(peer.side, FI_ECONNREFUSED);
    require_once(receives);
    require_end(peer.endpoint, FI_DAT_END_NON_PEER_REJECTED);
    settle();
    cr_assert(peer.side.events().empty());
}

// CR-6, EP-50, EP-52: the requester dies.
TRANSPORT_TEST(process_killed, while_its_request_is_pending__fails_the_accept) {
    only_dat();
    FromChild peer(transport);
    peer.child.kill();
    settle();
    cr_assert(peer.side.events().empty());
    DAT_MUST(peer.endpoint->accept());
    wait_error(peer.side, FI_ECONNABORTED);
    require_end(*peer.endpoint, FI_DAT_END_ACCEPT_ERROR);
}

// At whatever point of the handshake that is.
TRANSPORT_TEST(process_killed, right_after_accept__ends_one_way) {
    only_dat();
    FromChild peer(transport);
    std::vector<Bytes> in(5, Bytes(100));
    const std::vector<Op*> receives = post_receives(*peer.endpoint, in);
    DAT_MUST(peer.endpoint->accept());
    peer.child.kill();
    cr_assert(wait_until([&] { return !peer.side.events().empty(); }));
    if (peer.side.events().front().type == FI_CONNECTED) {
        wait_event(peer.side, FI_CONNECTED);
        require_one_end(peer.side, *peer.endpoint);
    } else {
        wait_error(peer.side, FI_ECONNABORTED);
    }
    require_once(receives);
    settle();
    cr_assert(peer.side.events().empty());
}

// DISC-4: a drain that cannot finish.
TRANSPORT_TEST(process_killed, while_we_drain__ends_once) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    const Bytes out = pattern(1 << 20);
    std::vector<Op*> sends;
    for (int i = 0; i < 20; ++i) // more than buffers hold, and no receives there
        sends.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    DAT_MUST(peer.endpoint.disconnect(FI_DAT_GRACEFUL));
    require_state(peer.endpoint, FI_DAT_DISCONNECT_PENDING);
    peer.child.kill();
    wait_shutdown(peer.endpoint);
    require_once(sends);
    require_stream_order(sends);
    require_end(peer.endpoint, FI_DAT_END_DISCONNECTED); // U-4
    settle();
    cr_assert(peer.side.events().empty());
}

// ---- a peer that is stopped ----------------------------------------------

// A live peer with a closed window is not a dead one (architecture.md).
TRANSPORT_TEST(process_stopped, past_the_keepalive__is_left_alone) {
    only_dat();
    setenv("FI_DAT_KEEPALIVE", "1", 1);
    ToChild peer(transport);
    peer.connect();
    const Bytes out = pattern(1 << 20);
    peer.child.expect("recv 8 " + std::to_string(out.size()), "ok");
    peer.child.signal(SIGSTOP);
    std::vector<Op*> sends;
    for (int i = 0; i < 8; ++i)
        sends.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    settle(2500);
    require_state(peer.endpoint, FI_DAT_CONNECTED);
    cr_assert(peer.side.events().empty());
    peer.child.signal(SIGCONT);
    wait_ops(sends);
    for (const Op* op : sends)
        cr_assert(op->ok());
    peer.child.expect("finish", "results 8 0 0");
}

TRANSPORT_TEST(process_stopped, and_we_disconnect__ends_here_without_it) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    peer.child.signal(SIGSTOP);
    const Bytes out = pattern(1 << 20);
    std::vector<Op*> sends;
    for (int i = 0; i < 20; ++i)
        sends.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    DAT_MUST(peer.endpoint.disconnect(FI_DAT_ABRUPT));
    wait_shutdown(peer.endpoint);
    require_once(sends);
    require_end(peer.endpoint, FI_DAT_END_DISCONNECTED);
    peer.child.signal(SIGCONT);
}

TRANSPORT_TEST(process_stopped, and_we_close__returns) {
    only_dat();
    ToChild peer(transport);
    peer.connect();
    peer.child.signal(SIGSTOP);
    const Bytes out = pattern(1 << 20);
    std::vector<Op*> sends;
    for (int i = 0; i < 20; ++i)
        sends.push_back(&peer.endpoint.send_confirmed(out.data(), out.size()));
    DAT_MUST(peer.endpoint.close());
    require_once(sends);
    peer.child.signal(SIGCONT);
}

TRANSPORT_TEST(process_stopped, while_it_listens__times_out) {
    only_dat();
    ToChild peer(transport);
    peer.child.signal(SIGSTOP);
    DAT_MUST(peer.endpoint.dat()->set_connect_timeout(peer.endpoint.get(), 300'000));
    DAT_MUST(peer.endpoint.connect(peer.address));
    wait_error(peer.side, FI_ETIMEDOUT);
    require_end(peer.endpoint, FI_DAT_END_TIMED_OUT);
    peer.child.signal(SIGCONT);
}
