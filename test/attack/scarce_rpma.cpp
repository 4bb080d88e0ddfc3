// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// librpma where memory and descriptors are scarce (scarce.h): two peers in one process connect,
// send, read, write, flush, disconnect and are deleted, one with a shared receive queue, over TCP
// and over shared memory, waiting and polling. Whatever fails: each call answers, nothing ends the
// process, hangs or leaks, and the next run succeeds. A plain program that allocates nothing by
// itself.
#include "scarce.h"

#include <librpma.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

namespace dat::test {

namespace {

constexpr char kAddress[] = "127.0.0.1";
constexpr std::size_t kSmall = 64;
constexpr std::size_t kLarge = 96 * 1024; // goes in pieces, or is fetched by the peer
constexpr std::size_t kBytes = 3 * kLarge;
constexpr int kUsage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
                       RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                       RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV;

bool g_waits = false;

bool answered(int rc, const char* what) {
    if (rc != 0 && !has_failed()) {
        violation("%s: %s", what, rpma_err_2str(rc));
    }
    return rc == 0;
}

// A step that a run may fail at only once something has failed.
#define STEP(call)                                                                                 \
    do {                                                                                           \
        if (!answered(call, #call)) {                                                              \
            return false;                                                                          \
        }                                                                                          \
    } while (false)

template <class Object> void free_it(Object*& object, const char* what, int (*free)(Object**)) {
    const int rc = free(&object);
    if (rc != 0 || object) {
        violation("freeing %s: %s", what, rpma_err_2str(rc));
    }
}

struct Side {
    rpma_peer* peer = nullptr;
    rpma_mr_local* mr = nullptr;
    rpma_mr_remote* remote = nullptr; // of its own memory, for the other side
    rpma_conn_cfg* config = nullptr;
    rpma_srq* srq = nullptr;
    rpma_ep* ep = nullptr;
    rpma_conn_req* request = nullptr;
    rpma_conn* conn = nullptr;
    char* bytes = nullptr;
    // What came.
    int connected = 0;
    int ended = 0;
    int completed = 0;
    bool wrong = false;

    void close_all() {
        free_it(conn, "a connection", rpma_conn_delete);
        free_it(request, "a request", rpma_conn_req_delete);
        free_it(ep, "an endpoint", rpma_ep_shutdown);
        free_it(config, "a configuration", rpma_conn_cfg_delete);
        free_it(srq, "a shared receive queue", rpma_srq_delete);
        free_it(mr, "a region", rpma_mr_dereg);
        free_it(remote, "a remote region", rpma_mr_remote_delete);
        free_it(peer, "a peer", rpma_peer_delete);
    }
};

std::array<char, kBytes> g_bytes[2];
Side g_sides[2];

bool open(Side& side, bool shares) {
    ibv_context* context = nullptr;
    STEP(rpma_utils_get_ibv_context(kAddress, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    STEP(rpma_peer_new(context, &side.peer));
    STEP(rpma_mr_reg(side.peer, side.bytes, kBytes, kUsage, &side.mr));
    std::array<char, 64> descriptor{};
    std::size_t size = 0;
    STEP(rpma_mr_get_descriptor_size(side.mr, &size));
    STEP(rpma_mr_get_descriptor(side.mr, descriptor.data()));
    STEP(rpma_mr_remote_from_descriptor(descriptor.data(), size, &side.remote));
    STEP(rpma_conn_cfg_new(&side.config));
    if (shares) {
        STEP(rpma_srq_new(side.peer, nullptr, &side.srq));
        STEP(rpma_conn_cfg_set_srq(side.config, side.srq));
    } else {
        STEP(rpma_conn_cfg_set_rcq_size(side.config, 8));
        STEP(rpma_conn_cfg_set_compl_channel(side.config, g_waits));
    }
    return true;
}

bool is_readable(int fd, int timeout_ms) {
    pollfd polled{fd, POLLIN, 0};
    return poll(&polled, 1, timeout_ms) == 1;
}

void look_for_request(Side& side) {
    int fd = -1;
    if (!side.ep || side.request || rpma_ep_get_fd(side.ep, &fd) != 0 || !is_readable(fd, 0)) {
        return;
    }
    side.wrong |=
        !answered(rpma_ep_next_conn_req(side.ep, side.config, &side.request), "the next request");
}

void look_for_event(Side& side) {
    int fd = -1;
    if (!side.conn || rpma_conn_get_event_fd(side.conn, &fd) != 0 || !is_readable(fd, 0)) {
        return;
    }
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    if (!answered(rpma_conn_next_event(side.conn, &event), "the next event")) {
        side.wrong = true;
    } else if (event == RPMA_CONN_ESTABLISHED) {
        ++side.connected;
    } else if (event == RPMA_CONN_CLOSED) {
        ++side.ended;
    } else {
        side.wrong = true;
    }
}

// `own`: its channel is its own, so that it is waited at.
void look_at(Side& side, rpma_cq* cq, bool own, bool pauses) {
    int fd = -1;
    if (pauses && own && rpma_cq_get_fd(cq, &fd) == 0 && is_readable(fd, 1)) {
        const int rc = rpma_cq_wait(cq);
        side.wrong |= rc != RPMA_E_NO_COMPLETION && !answered(rc, "waiting");
    }
    ibv_wc wc{};
    const int rc = rpma_cq_get_wc(cq, 1, &wc, nullptr);
    if (rc == 0) {
        ++side.completed;
        side.wrong |= wc.status != IBV_WC_SUCCESS;
    } else if (rc != RPMA_E_NO_COMPLETION) {
        answered(rc, "a completion queue");
        side.wrong = true;
    }
}

void look(Side& side, bool pauses) {
    look_for_request(side);
    look_for_event(side);
    if (!side.conn) {
        return;
    }
    const bool own = !g_waits || side.srq;
    rpma_cq* cq = nullptr;
    rpma_conn_get_cq(side.conn, &cq);
    look_at(side, cq, own, pauses);
    if (side.srq) {
        rpma_srq_get_rcq(side.srq, &cq);
    } else {
        rpma_conn_get_rcq(side.conn, &cq);
    }
    look_at(side, cq, own, pauses);
    int fd = -1;
    if (!own && pauses && rpma_conn_get_compl_fd(side.conn, &fd) == 0 && is_readable(fd, 1)) {
        const int rc = rpma_conn_wait(side.conn, 0, &cq, nullptr);
        side.wrong |= rc != RPMA_E_NO_COMPLETION && !answered(rc, "waiting");
    }
}

// Looks until `done`, or until something has gone wrong on one side. `ends`: that is awaited.
template <class Done> bool await(const char* what, Done&& done, bool ends = false) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (long round = 0; !done(); ++round) {
        for (Side& side : g_sides) {
            look(side, g_waits && round % 16 == 15);
            if (side.wrong || (side.ended > 0 && !ends)) {
                answered(RPMA_E_UNKNOWN, what);
                return false;
            }
        }
        const auto since = Clock::now() - begin;
        if (waited_enough(what, since)) {
            return false;
        }
        if (since > std::chrono::milliseconds(20) && round % 64 == 63) {
            poll(nullptr, 0, 1);
        }
    }
    return true;
}

// Another process may take the port in between.
bool listen(Side& side, std::array<char, 8>& port) {
    int rc = -1;
    for (int tries = 0; tries < 20 && rc != 0 && !has_failed(); ++tries) {
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof name;
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bind(fd, reinterpret_cast<sockaddr*>(&name), size);
        getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
        close(fd);
        std::snprintf(port.data(), port.size(), "%u", ntohs(name.sin_port));
        rc = rpma_ep_listen(side.peer, kAddress, port.data(), &side.ep);
    }
    return answered(rc, "listening");
}

bool connect(Side& a, Side& b) {
    std::array<char, 8> port{};
    if (!listen(b, port)) {
        return false;
    }
    char hello[] = "hello";
    rpma_conn_private_data data{hello, sizeof hello};
    STEP(rpma_conn_req_new(a.peer, kAddress, port.data(), a.config, &a.request));
    STEP(rpma_conn_req_recv(a.request, a.mr, 0, kSmall, nullptr));
    STEP(rpma_conn_req_connect(&a.request, &data, &a.conn));
    if (!await("a request", [&] { return b.request != nullptr; })) {
        return false;
    }
    STEP(rpma_conn_req_connect(&b.request, &data, &b.conn));
    return await("connected", [&] { return a.connected + b.connected == 2; });
}

bool talk(Side& a, Side& b) {
    constexpr int kAlways = RPMA_F_COMPLETION_ALWAYS;
    alignas(8) const char word[8] = {};
    STEP(rpma_srq_recv(b.srq, b.mr, 0, kSmall, nullptr));
    STEP(rpma_srq_recv(b.srq, b.mr, 0, kLarge, nullptr));
    STEP(rpma_send(a.conn, a.mr, 0, kSmall, kAlways, nullptr));
    STEP(rpma_send(a.conn, a.mr, 0, kLarge, kAlways, nullptr));
    STEP(rpma_write(a.conn, b.remote, kLarge, a.mr, kLarge, kLarge, RPMA_F_COMPLETION_ON_ERROR,
                    nullptr));
    STEP(rpma_read(a.conn, a.mr, 2 * kLarge, b.remote, kLarge, kLarge, kAlways, nullptr));
    STEP(rpma_atomic_write(a.conn, b.remote, kLarge, word, kAlways, nullptr));
    STEP(rpma_flush(a.conn, b.remote, kLarge, 8, RPMA_FLUSH_TYPE_VISIBILITY, kAlways, nullptr));
    STEP(rpma_send(b.conn, b.mr, 0, kSmall, kAlways, nullptr));
    return await("completions", [&] { return a.completed == 6 && b.completed == 3; });
}

bool end(Side& a, Side& b) {
    STEP(rpma_conn_disconnect(a.conn));
    if (!await(
            "the end", [&] { return b.ended == 1; }, true)) {
        return false;
    }
    STEP(rpma_conn_disconnect(b.conn));
    return await(
        "the other end", [&] { return a.ended == 1; }, true);
}

bool everything(Side& a, Side& b) {
    return open(a, false) && open(b, true) && connect(a, b) && talk(a, b) && end(a, b);
}

bool run() {
    for (int i = 0; i < 2; ++i) {
        g_sides[i] = Side();
        g_sides[i].bytes = g_bytes[i].data();
    }
    const bool done = everything(g_sides[0], g_sides[1]);
    g_sides[0].close_all();
    g_sides[1].close_all();
    return done;
}

bool load() {
    ibv_context* context = nullptr;
    rpma_peer* peer = nullptr;
    STEP(rpma_utils_get_ibv_context(kAddress, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    STEP(rpma_peer_new(context, &peer));
    STEP(rpma_peer_delete(&peer));
    return true;
}

} // namespace

int sweep_all() {
    // What is refused would be in the syslog, a thousand times.
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
    return sweep_links(g_waits, load, run);
}

} // namespace dat::test

int main() { return dat::test::sweep_all() == 0 ? 0 : 1; }
