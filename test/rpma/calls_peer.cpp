// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls between two processes: connections, their ends, and all that goes over them.
#include "calls.h"

#include <poll.h>

#include <cstddef>
#include <cstring>
#include <memory>

namespace dat::test::calls {
namespace {

constexpr int kAlways = RPMA_F_COMPLETION_ALWAYS;
constexpr int kOnError = RPMA_F_COMPLETION_ON_ERROR;

// Within which the genuine library tells a second time that a connection has ended.
constexpr int kLongAfter = 6000;

void* context_of(std::uintptr_t number) {
    return reinterpret_cast<void*>(number); // NOLINT(performance-no-int-to-ptr)
}

// What both sides have for all scenarios.
struct World {
    explicit World(const Role& role_) : role(role_) {
        const std::vector<char> mine = region.descriptor();
        const std::string theirs = meet(role, std::string(mine.data(), mine.size()));
        NEED(rpma_mr_remote_from_descriptor(theirs.data(), theirs.size(), &there));
        if (role.serves) {
            listener = std::make_unique<Listener>(peer);
        }
        port = meet(role, role.serves ? listener->port : "-");
    }
    ~World() { NEED(rpma_mr_remote_delete(&there)); }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Role role;
    Peer peer;
    Region region{peer, 65536};
    rpma_mr_remote* there = nullptr;
    std::unique_ptr<Listener> listener;
    std::string port;
};

std::string text_of(const rpma_conn_private_data& data) {
    if (!data.ptr) {
        return "none";
    }
    const char* const bytes = static_cast<const char*>(data.ptr);
    std::size_t last = data.len;
    while (last > 0 && bytes[last - 1] == 0) {
        --last;
    }
    return std::string(bytes, last) + ", " + std::to_string(data.len) + " bytes";
}

void say_data(const Conn& conn, const char* what) {
    rpma_conn_private_data data{};
    CALL(rpma_conn_get_private_data(conn, &data));
    say(what, text_of(data));
}

// A connection of both, without a word of how it is made.
void connect(const World& world, Conn& conn, const rpma_conn_cfg* config = nullptr) {
    if (world.role.serves) {
        answer(conn, world.listener->request(config));
    } else {
        ask(conn, world.peer, world.port, config);
    }
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    meet(world.role);
}

// The client goes, then the server.
void disconnect(const World& world, Conn& conn) {
    if (!world.role.serves) {
        NEED(rpma_conn_disconnect(conn));
    }
    expect_event(conn, RPMA_CONN_CLOSED);
    if (world.role.serves) {
        NEED(rpma_conn_disconnect(conn));
    }
    meet(world.role);
    NEED(rpma_conn_delete(&conn.it));
}

// ---- how connections begin -------------------------------------------------

void private_data(const World& world, std::size_t request_size, std::size_t reply_size) {
    Conn conn;
    std::string mine(world.role.serves ? reply_size : request_size, 'd');
    rpma_conn_private_data data{mine.data(), static_cast<std::uint8_t>(mine.size())};
    rpma_conn_req* req = nullptr;
    if (world.role.serves) {
        req = world.listener->request();
        rpma_conn_private_data got{};
        CALL(rpma_conn_req_get_private_data(req, &got));
        say("data of the request", text_of(got));
    } else {
        CALL(rpma_conn_req_new(world.peer, place().address, world.port.c_str(), nullptr, &req));
    }
    CALL(rpma_conn_req_connect(&req, mine.empty() ? nullptr : &data, &conn.it));
    say_event(conn, "first event");
    say_data(conn, "data of the connection");
    meet(world.role);
    disconnect(world, conn);
}

void too_much_private_data(const World& world) {
    if (!world.role.serves) {
        std::string mine(57, 'd');
        rpma_conn_private_data data{mine.data(), 57};
        rpma_conn* conn = nullptr;
        rpma_conn_req* req = request_to(world.peer, world.port);
        CALL(rpma_conn_req_connect(&req, &data, &conn));
        say("the request", req ? "is there" : "is gone");
    }
}

void nobody_listens(const World& world) {
    Conn conn;
    ask(conn, world.peer, free_port());
    say_event(conn, "event");
    CALL(rpma_conn_disconnect(conn));
    say_event(conn, "another event", kBriefly);
    CALL(rpma_conn_delete(&conn.it));
}

void request_deleted(const World& world) {
    if (world.role.serves) {
        rpma_conn_req* req = world.listener->request();
        CALL(rpma_conn_req_delete(&req));
    } else {
        Conn conn;
        ask(conn, world.peer, world.port, nullptr, "a question");
        say_event(conn, "event");
        say_data(conn, "data of the reject");
        CALL(rpma_conn_disconnect(conn));
    }
}

// ---- how they end ------------------------------------------------------------

void ends(const World& world, bool server_first, bool with_delete) {
    Conn conn;
    connect(world, conn);
    if (world.role.serves == server_first) {
        CALL(rpma_conn_disconnect(conn));
        meet(world.role);
        say_event(conn, "before the peer answered", kBriefly);
        meet(world.role);
        say_event(conn, "when the peer answered", 20'000);
        CALL(rpma_conn_disconnect(conn));
        say_event(conn, "later", kLongAfter);
        meet(world.role);
    } else {
        say_event(conn, "event");
        meet(world.role);
        meet(world.role);
        if (with_delete) {
            CALL(rpma_conn_delete(&conn.it));
        } else {
            CALL(rpma_conn_disconnect(conn));
            CALL(rpma_conn_disconnect(conn));
            say_event(conn, "later", kLongAfter);
        }
        meet(world.role);
    }
}

void deleted(const World& world) {
    Conn conn;
    connect(world, conn);
    if (world.role.serves) {
        CALL(rpma_conn_delete(&conn.it));
    } else {
        say_event(conn, "event");
        CALL(rpma_conn_disconnect(conn));
    }
    meet(world.role);
}

void flushed(const World& world) {
    Conn conn;
    connect(world, conn);
    CALL(rpma_recv(conn, world.region.mr, 0, 64, context_of(1)));
    meet(world.role);
    if (world.role.serves) {
        say_event(conn, "event");
        say("flushed by the event", is_empty(conn.cq()) ? "no" : "yes");
        CALL(rpma_write(conn, world.there, 0, world.region.mr, 0, 8, kAlways, context_of(2)));
        CALL(rpma_conn_disconnect(conn));
        say_completion(conn, conn.cq(), "first");
        say_completion(conn, conn.cq(), "second");
    } else {
        CALL(rpma_conn_disconnect(conn));
        say_completion(conn, conn.cq(), "flushed by the own disconnect");
    }
    meet(world.role);
}

// ---- what goes over them ---------------------------------------------------------

void transfers(const World& world) {
    Conn conn;
    connect(world, conn);
    rpma_mr_local* const mr = world.region.mr;
    if (!world.role.serves) {
        const char word[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        std::memset(world.region.bytes, 'c', 4096);
        CALL(rpma_write(conn, world.there, 100, mr, 0, 4000, kAlways, context_of(1)));
        say_completion(conn, conn.cq(), "write");
        CALL(rpma_read(conn, mr, 8192, world.there, 100, 4000, kAlways, context_of(2)));
        say_completion(conn, conn.cq(), "read");
        say("what was read", std::memcmp(world.region.bytes, world.region.bytes + 8192, 4000) == 0
                                 ? "was written"
                                 : "is another");
        CALL(rpma_flush(conn, world.there, 100, 4000, RPMA_FLUSH_TYPE_VISIBILITY, kAlways,
                        context_of(3)));
        say_completion(conn, conn.cq(), "flush");
        CALL(
            rpma_flush(conn, world.there, 100, 4000, RPMA_FLUSH_TYPE_PERSISTENT, kAlways, nullptr));
        CALL(rpma_atomic_write(conn, world.there, 4, word, kAlways, nullptr));
        CALL(rpma_atomic_write(conn, world.there, 8, word, kAlways, context_of(4)));
        say_completion(conn, conn.cq(), "atomic write");
        CALL(rpma_write(conn, world.there, 0, mr, 0, 8, 0, nullptr));
        CALL(rpma_read(conn, mr, 0, world.there, 0, 8, 0, nullptr));
        CALL(rpma_flush(conn, world.there, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, nullptr));
        CALL(rpma_atomic_write(conn, world.there, 0, word, 0, nullptr));
        CALL(rpma_send(conn, mr, 0, 8, 0, nullptr));
        CALL(rpma_write(conn, nullptr, 0, nullptr, 0, 0, kAlways, context_of(5)));
        say_completion(conn, conn.cq(), "write of nothing");
        CALL(rpma_read(conn, nullptr, 0, nullptr, 0, 0, kAlways, context_of(6)));
        say_completion(conn, conn.cq(), "read of nothing");
        CALL(rpma_write(conn, nullptr, 1, nullptr, 0, 0, kAlways, nullptr));
        CALL(rpma_write(conn, world.there, 0, nullptr, 0, 0, kAlways, nullptr));
        CALL(rpma_read(conn, nullptr, 0, world.there, 0, 0, kAlways, nullptr));
        CALL(rpma_send(conn, nullptr, 0, 1, kAlways, nullptr));
        CALL(rpma_recv(conn, nullptr, 0, 1, nullptr));
    }
    meet(world.role);
    disconnect(world, conn);
}

void messages(const World& world) {
    Conn conn;
    connect(world, conn);
    rpma_mr_local* const mr = world.region.mr;
    if (world.role.serves) {
        CALL(rpma_recv(conn, mr, 0, 64, context_of(1)));
        CALL(rpma_recv(conn, mr, 64, 64, context_of(2)));
        CALL(rpma_recv(conn, nullptr, 0, 0, context_of(3)));
        CALL(rpma_recv(conn, mr, 128, 64, context_of(4)));
    }
    meet(world.role);
    if (world.role.serves) {
        for (const char* what : {"first", "second", "third", "fourth"}) {
            say_completion(conn, conn.cq(), what);
        }
        meet(world.role);
        CALL(rpma_recv(conn, mr, 192, 64, context_of(5)));
        say_completion(conn, conn.cq(), "of the one that waited");
    } else {
        CALL(rpma_send(conn, mr, 0, 40, kAlways, context_of(1)));
        say_completion(conn, conn.cq(), "first");
        CALL(rpma_send_with_imm(conn, mr, 0, 50, kAlways, 77, context_of(2)));
        say_completion(conn, conn.cq(), "second");
        CALL(rpma_send(conn, nullptr, 0, 0, kAlways, context_of(3)));
        say_completion(conn, conn.cq(), "third");
        CALL(rpma_write_with_imm(conn, world.there, 4096, mr, 0, 60, kAlways, 88, context_of(4)));
        say_completion(conn, conn.cq(), "fourth");
        CALL(rpma_send(conn, mr, 0, 8, kAlways, context_of(5)));
        poll(nullptr, 0, kBriefly);
        say("before there is a receive", is_empty(conn.cq()) ? "waits" : "done");
        meet(world.role);
        say_completion(conn, conn.cq(), "when there was one");
    }
    meet(world.role);
    disconnect(world, conn);
}

void unsignalled(const World& world) {
    Conn conn;
    Config config;
    NEED(rpma_conn_cfg_set_sq_size(config, 8));
    connect(world, conn, config);
    if (!world.role.serves) {
        int good = 0;
        for (std::size_t i = 0; i < 1000; ++i) {
            good +=
                rpma_write(conn, world.there, i * 8, world.region.mr, 0, 8, kOnError, nullptr) == 0;
        }
        say("writes that were taken", std::to_string(good));
        CALL(rpma_read(conn, world.region.mr, 0, world.there, 0, 8, kAlways, context_of(9)));
        say_completion(conn, conn.cq(), "the first completion");
    }
    meet(world.role);
    disconnect(world, conn);
}

void errors(const World& world) {
    Conn conn;
    connect(world, conn);
    if (!world.role.serves) {
        CALL(rpma_write(conn, world.there, 65536, world.region.mr, 0, 8, kAlways, context_of(1)));
        say_completion(conn, conn.cq(), "out of bounds");
        CALL(rpma_write(conn, world.there, 0, world.region.mr, 0, 8, kAlways, context_of(2)));
        say_completion(conn, conn.cq(), "the next");
        CALL(rpma_send(conn, world.region.mr, 0, 8, kOnError, context_of(3)));
        say_completion(conn, conn.cq(), "unsignalled");
        say_event(conn, "event of the connection", kBriefly);
    }
    meet(world.role);
    disconnect(world, conn);
}

// ---- queues -----------------------------------------------------------------------

void channels(const World& world) {
    Config config;
    NEED(rpma_conn_cfg_set_rcq_size(config, 8));
    NEED(rpma_conn_cfg_set_compl_channel(config, true));
    Conn conn;
    connect(world, conn, config);
    int fd = -1;
    rpma_cq* cq = nullptr;
    bool is_rcq = false;
    ibv_wc wc[2];
    CALL(rpma_conn_get_compl_fd(conn, &fd));
    CALL(rpma_cq_wait(conn.cq()));
    CALL(rpma_cq_wait(conn.rcq()));
    set_nonblocking(fd);
    CALL(rpma_conn_wait(conn, 0, &cq, &is_rcq));
    CALL(rpma_cq_get_wc(conn.cq(), 1, wc, nullptr));
    CALL(rpma_cq_get_wc(conn.cq(), 0, wc, nullptr));
    CALL(rpma_cq_get_wc(conn.cq(), 2, wc, nullptr));
    CALL(rpma_cq_get_fd(conn.cq(), &fd));
    meet(world.role);
    if (world.role.serves) {
        CALL(rpma_recv(conn, world.region.mr, 0, 64, context_of(1)));
        meet(world.role);
        NEED(rpma_conn_get_compl_fd(conn, &fd));
        say("the channel", readable(fd, kSoon) ? "is readable" : "is not");
        CALL(rpma_conn_wait(conn, 0, &cq, &is_rcq));
        say("the queue", is_rcq && cq == conn.rcq() ? "of receives" : "another");
        say_completion(conn, cq, "received");
    } else {
        meet(world.role);
        CALL(rpma_send(conn, world.region.mr, 0, 8, kAlways, context_of(2)));
        NEED(rpma_conn_get_compl_fd(conn, &fd));
        say("the channel", readable(fd, kSoon) ? "is readable" : "is not");
        CALL(rpma_conn_wait(conn, 0, &cq, &is_rcq));
        say("the queue", !is_rcq && cq == conn.cq() ? "the main one" : "another");
        say_completion(conn, cq, "sent");
    }
    meet(world.role);
    disconnect(world, conn);
}

void own_channels(const World& world) {
    Conn conn;
    connect(world, conn);
    int fd = -1;
    rpma_cq* cq = nullptr;
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    std::uint32_t qp = 0;
    CALL(rpma_conn_get_compl_fd(conn, &fd));
    CALL(rpma_conn_wait(conn, 0, &cq, nullptr));
    CALL(rpma_conn_get_rcq(conn, &cq));
    say("receives", cq ? "have a queue" : "have none");
    CALL(rpma_conn_get_cq(conn, &cq));
    CALL(rpma_conn_get_qp_num(conn, &qp));
    CALL(rpma_conn_get_event_fd(conn, &fd));
    set_nonblocking(fd);
    CALL(rpma_conn_next_event(conn, &event));
    set_nonblocking(fd_of(conn.cq()));
    CALL(rpma_cq_wait(conn.cq()));
    meet(world.role);
    disconnect(world, conn);
}

void shared_receives(const World& world) {
    SharedReceives shared(world.peer);
    Config config;
    Conn conn;
    if (world.role.serves) {
        NEED(rpma_conn_cfg_set_srq(config, shared.it));
    }
    connect(world, conn, config);
    if (world.role.serves) {
        CALL(rpma_srq_recv(shared.it, world.region.mr, 0, 64, context_of(1)));
        meet(world.role);
        say_completion(conn, shared.rcq(), "received");
    } else {
        meet(world.role);
        CALL(rpma_send(conn, world.region.mr, 0, 8, kAlways, context_of(2)));
        say_completion(conn, conn.cq(), "sent");
    }
    meet(world.role);
    disconnect(world, conn);
}

void peer_configuration(const World& world) {
    Conn conn;
    connect(world, conn);
    rpma_peer_cfg* cfg = nullptr;
    NEED(rpma_peer_cfg_new(&cfg));
    NEED(rpma_peer_cfg_set_direct_write_to_pmem(cfg, true));
    CALL(rpma_conn_apply_remote_peer_cfg(conn, nullptr));
    CALL(rpma_conn_apply_remote_peer_cfg(conn, cfg));
    NEED(rpma_peer_cfg_delete(&cfg));
    // The region of the other side has no bit for it.
    CALL(rpma_flush(conn, world.there, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, kAlways, nullptr));
    meet(world.role);
    disconnect(world, conn);
}

void endpoint(const World& world) {
    if (world.role.serves) {
        rpma_conn_req* req = nullptr;
        set_nonblocking(world.listener->fd());
        CALL(rpma_ep_next_conn_req(world.listener->it, nullptr, &req));
    }
}

} // namespace

void with_peer(const Role& role) {
    begin(role, "world");
    const World world(role);
    begin(role, "private data, 1 and 2 bytes");
    private_data(world, 1, 2);
    begin(role, "private data, 56 and 196 bytes");
    private_data(world, 56, 196);
    begin(role, "no private data");
    private_data(world, 0, 0);
    begin(role, "57 bytes of private data");
    too_much_private_data(world);
    begin(role, "nobody listens");
    nobody_listens(world);
    begin(role, "request deleted");
    request_deleted(world);
    begin(role, "the client disconnects");
    ends(world, false, false);
    begin(role, "the server disconnects");
    ends(world, true, false);
    begin(role, "the client disconnects, the server deletes");
    ends(world, false, true);
    begin(role, "the server deletes");
    deleted(world);
    begin(role, "flushed");
    flushed(world);
    begin(role, "transfers");
    transfers(world);
    begin(role, "messages");
    messages(world);
    begin(role, "a thousand unsignalled writes");
    unsignalled(world);
    begin(role, "errors");
    errors(world);
    begin(role, "a shared channel");
    channels(world);
    begin(role, "channels of their own");
    own_channels(world);
    begin(role, "shared receives");
    shared_receives(world);
    begin(role, "peer configuration");
    peer_configuration(world);
    begin(role, "endpoint");
    endpoint(world);
}

} // namespace dat::test::calls
