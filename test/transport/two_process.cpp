// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Transport suite: `dat` here, `dat` in another process. A peer that works, one
// that says no, and one that falls silent; one that dies is in killed_peer.cpp. May
// include: suite.h, child.h.
#include "child.h"
#include "suite.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

using namespace dat::test;

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
    peer.child.expect("event", takes_requests_back(transport)
                                   ? "error " + std::to_string(FI_ECONNABORTED) + " 0"
                                   : "connected 0");
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
