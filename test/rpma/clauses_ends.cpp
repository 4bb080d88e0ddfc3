// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The peer is another process, which is killed at each step of a connection. Who is left sees
// the end once, as CLOSED where there was a connection, and all its work completes.
#include "suite.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace dat::test;

namespace {

constexpr std::size_t kSize = 1 << 20;

// What the other process does when it is told to; each word is answered.
void obey(int socket) {
    Peer peer;
    Region region(peer, kSize);
    std::unique_ptr<Listener> listener;
    rpma_conn_req* request = nullptr;
    Conn conn;
    rpma_mr_remote* remote = nullptr;
    for (;;) {
        char text[64];
        const ssize_t length = read(socket, text, sizeof(text));
        if (length <= 0) {
            _exit(0);
        }
        const std::string word(text, static_cast<std::size_t>(length));
        std::string said = "done";
        if (word == "listen") {
            listener = std::make_unique<Listener>(peer);
            said = listener->port;
        } else if (word == "take") {
            request = listener->request();
        } else if (word == "accept") {
            answer(conn, request);
        } else if (word.rfind("ask ", 0) == 0) {
            ask(conn, peer, word.substr(4));
        } else if (word == "event") {
            said = rpma_utils_conn_event_2str(conn.next());
        } else if (word == "region") {
            const std::vector<char> descriptor = region.descriptor();
            said.assign(descriptor.data(), descriptor.size());
        } else if (word.size() == 21) {
            NEED(rpma_mr_remote_from_descriptor(word.data(), word.size(), &remote));
        } else if (word == "write") {
            std::memset(region.bytes, 'c', kSize);
            NEED(rpma_write(conn, remote, 0, region.mr, 0, kSize, RPMA_F_COMPLETION_ALWAYS,
                            nullptr));
        } else if (word == "receive") {
            NEED(rpma_recv(conn, region.mr, 0, 64, nullptr));
        } else if (word == "disconnect") {
            NEED(rpma_conn_disconnect(conn));
        } else if (word == "delete") {
            NEED(rpma_conn_delete(&conn.it));
        } else {
            said = "what is that?";
        }
        tell(socket, said);
    }
}

struct Other : Child {
    Other() : Child(obey) {}
    std::string does(const std::string& word) const {
        tell(socket, word);
        return hear(socket);
    }
};

// The other process, forked before this one uses the library; then this side.
struct Scene {
    Other other;
    Peer peer;
    Region region{peer, kSize};
    Conn conn;

    void ask_other() { ask(conn, peer, other.does("listen")); }
    void be_accepted(const Other& by, Conn& here) const {
        ask(here, peer, by.does("listen"));
        by.does("take");
        by.does("accept");
        expect_event(here, RPMA_CONN_ESTABLISHED);
    }
    void be_connected(const Other& with, Conn& here) const {
        be_accepted(with, here);
        cr_assert_eq(with.does("event"), "Connection established");
    }
    void be_connected() { be_connected(other, conn); }
    // The memory of the other process.
    rpma_mr_remote* there() const {
        const std::string descriptor = other.does("region");
        rpma_mr_remote* remote = nullptr;
        NEED(rpma_mr_remote_from_descriptor(descriptor.data(), descriptor.size(), &remote));
        return remote;
    }
    void post_receives() const {
        for (std::uintptr_t i = 0; i < 4; ++i) {
            EXPECT_OK(rpma_recv(conn, region.mr, i * 64, 64, context_of(100 + i)));
        }
    }
    // Each of the receives comes once, flushed, in their order.
    void expect_receives_flushed() const {
        for (std::uint64_t i = 0; i < 4; ++i) {
            expect_error(conn.cq(), IBV_WC_WR_FLUSH_ERR, 100 + i);
        }
        cr_assert(is_empty(conn.cq()));
    }
    // One CLOSED and nothing behind it, also by a disconnect of one's own.
    void expect_closed_once() const {
        expect_last_event(conn, RPMA_CONN_CLOSED);
        EXPECT_OK(rpma_conn_disconnect(conn));
        cr_assert(conn.quiet());
    }
};

} // namespace

// RP-8, RP-4: before it looked at the request.
RPMA_TEST(rpma_killed, before_it_took_the_request__is_rejected) {
    Scene scene;
    scene.ask_other();
    scene.other.kill_now();
    expect_last_event(scene.conn, RPMA_CONN_REJECTED);
}

// RP-8, RP-4.
RPMA_TEST(rpma_killed, before_it_accepted__is_rejected) {
    Scene scene;
    scene.ask_other();
    scene.other.does("take");
    scene.other.kill_now();
    expect_last_event(scene.conn, RPMA_CONN_REJECTED);
}

// RP-8: it accepted, and has not seen the connection.
RPMA_TEST(rpma_killed, as_it_accepted__closes_once) {
    Scene scene;
    scene.be_accepted(scene.other, scene.conn);
    scene.other.kill_now();
    scene.expect_closed_once();
}

// RP-8, RP-5: the other one asked, and is gone when it is accepted.
RPMA_TEST(rpma_killed, after_it_asked__is_never_lost) {
    Scene scene;
    Listener listener(scene.peer);
    scene.other.does("ask " + listener.port);
    rpma_conn_req* request = listener.request();
    scene.other.kill_now();
    if (rpma_conn_req_connect(&request, nullptr, &scene.conn.it) != 0) {
        cr_assert_null(request);
        return;
    }
    rpma_conn_event event = scene.conn.next();
    if (event == RPMA_CONN_ESTABLISHED) {
        event = scene.conn.next();
    }
    cr_assert(event == RPMA_CONN_CLOSED || event == RPMA_CONN_REJECTED, "%s",
              rpma_utils_conn_event_2str(event));
    cr_assert(scene.conn.quiet());
}

// RP-8: with nothing under way.
RPMA_TEST(rpma_killed, when_established__closes_once) {
    Scene scene;
    scene.be_connected();
    scene.other.kill_now();
    scene.expect_closed_once();
}

// RP-8: the killed one was the client.
RPMA_TEST(rpma_killed, as_the_client__closes_once) {
    Scene scene;
    Listener listener(scene.peer);
    scene.other.does("ask " + listener.port);
    answer(scene.conn, listener.request());
    cr_assert_eq(scene.other.does("event"), "Connection established");
    expect_event(scene.conn, RPMA_CONN_ESTABLISHED);
    scene.other.kill_now();
    scene.expect_closed_once();
}

// RP-8, RP-9: receives are flushed by the own disconnect.
RPMA_TEST(rpma_killed, with_receives_here__flushes_them_once) {
    Scene scene;
    scene.be_connected();
    scene.post_receives();
    scene.other.kill_now();
    scene.expect_closed_once();
    scene.expect_receives_flushed();
}

// RP-8: while it is written to. What the other's death leaves undone comes once, in order.
RPMA_TEST(rpma_killed, while_written_to__completes_all_once) {
    Scene scene;
    scene.be_connected();
    rpma_mr_remote* there = scene.there();
    scene.post_receives();
    for (std::uintptr_t i = 0; i < 6; ++i) {
        EXPECT_OK(rpma_write(scene.conn, there, 0, scene.region.mr, 0, kSize,
                             RPMA_F_COMPLETION_ALWAYS, context_of(i)));
        if (i == 2) {
            scene.other.kill_now();
        }
    }
    expect_event(scene.conn, RPMA_CONN_CLOSED);
    EXPECT_OK(rpma_conn_disconnect(scene.conn));
    std::uint64_t next_write = 0;
    std::uint64_t next_receive = 100;
    bool failed = false;
    for (int i = 0; i < 10; ++i) {
        const ibv_wc wc = next_of(scene.conn.cq());
        if (wc.wr_id < 100) {
            cr_assert_eq(wc.wr_id, next_write);
            ++next_write;
            cr_assert(!failed || wc.status != IBV_WC_SUCCESS, "a success behind a failure");
            failed |= wc.status != IBV_WC_SUCCESS;
        } else {
            cr_assert_eq(wc.wr_id, next_receive);
            cr_assert_neq(wc.status, IBV_WC_SUCCESS);
            ++next_receive;
        }
    }
    cr_assert(is_empty(scene.conn.cq()));
    cr_assert(scene.conn.quiet());
    NEED(rpma_mr_remote_delete(&there));
}

// RP-8: while it writes; afterwards no byte changes any more.
RPMA_TEST(rpma_killed, while_it_writes__leaves_the_memory_alone) {
    Scene scene;
    scene.be_connected();
    const std::vector<char> here = scene.region.descriptor();
    scene.other.does(std::string(here.data(), here.size()));
    scene.other.does("write");
    scene.other.kill_now();
    scene.expect_closed_once();
    std::memset(scene.region.bytes, 'h', kSize);
    cr_assert(scene.conn.quiet());
    for (std::size_t i = 0; i < kSize; ++i) {
        cr_assert_eq(scene.region.bytes[i], 'h');
    }
}

// RP-8: stopped first, so that it has certainly answered nothing.
RPMA_TEST(rpma_killed, when_stopped__closes_once) {
    Scene scene;
    scene.be_connected();
    kill(scene.other.pid, SIGSTOP);
    scene.post_receives();
    EXPECT_OK(rpma_send(scene.conn, scene.region.mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, nullptr));
    scene.other.kill_now();
    expect_event(scene.conn, RPMA_CONN_CLOSED);
    EXPECT_OK(rpma_conn_disconnect(scene.conn));
    cr_assert(scene.conn.quiet());
}

// RP-8, RP-6: it had disconnected.
RPMA_TEST(rpma_killed, after_its_disconnect__closes_once) {
    Scene scene;
    scene.be_connected();
    scene.other.does("disconnect");
    scene.other.kill_now();
    scene.expect_closed_once();
}

// RP-8, RP-6: this side had disconnected, and waits for the other's answer.
RPMA_TEST(rpma_killed, before_it_answered_the_disconnect__closes_once) {
    Scene scene;
    scene.be_connected();
    scene.post_receives();
    EXPECT_OK(rpma_conn_disconnect(scene.conn));
    cr_assert_eq(scene.other.does("event"), "Connection closed");
    scene.other.kill_now();
    scene.expect_closed_once();
    scene.expect_receives_flushed();
}

// RP-8: it deleted the connection, and then died.
RPMA_TEST(rpma_killed, after_its_delete__closes_once) {
    Scene scene;
    scene.be_connected();
    scene.other.does("delete");
    scene.expect_closed_once();
    scene.other.kill_now();
    cr_assert(scene.conn.quiet());
}

// RP-8: who is left can have other connections with what it has.
RPMA_TEST(rpma_killed, one_of_two_peers__leaves_the_other_connection) {
    Other second;
    Scene scene;
    scene.be_connected();
    Conn other;
    scene.be_connected(second, other);
    second.does("receive");
    scene.other.kill_now();
    scene.expect_closed_once();
    EXPECT_OK(rpma_send(other, scene.region.mr, 0, 64, RPMA_F_COMPLETION_ALWAYS, context_of(1)));
    expect_wc(other.cq(), IBV_WC_SEND, 1);
    cr_assert(other.quiet());
    EXPECT_OK(rpma_conn_disconnect(other));
    cr_assert_eq(second.does("event"), "Connection closed");
    second.does("disconnect");
    expect_event(other, RPMA_CONN_CLOSED);
}
