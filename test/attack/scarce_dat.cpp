// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The uDAPL libraries where memory and descriptors are scarce (scarce.h): two adapters in one
// process connect, send, read, write, bind, disconnect and close, over TCP and over shared
// memory, waiting and polling. Whatever fails: each call answers, nothing ends the process, hangs
// or leaks, and the next run succeeds. A plain program that allocates nothing by itself; compiled
// for each version of the API.
#include "../shim/api.h"
#include "scarce.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace dat::test {

namespace {

constexpr std::size_t kSmall = 64;
constexpr std::size_t kLarge = 96 * 1024; // goes in pieces, or is fetched by the peer
constexpr std::size_t kBytes = 4 * kLarge;

bool g_waits = false;

bool answered(DAT_RETURN rc, const char* what) {
    const bool just = has_just_failed();
    const bool said = DAT_GET_TYPE(rc) == DAT_INSUFFICIENT_RESOURCES;
    if (rc != DAT_SUCCESS && (!has_failed() || (just && !said))) {
        const char* major = "";
        const char* minor = "";
        dat_strerror(rc, &major, &minor);
        violation("%s: %s %s", what, major, minor);
    }
    return rc == DAT_SUCCESS;
}

// A step that a run may fail at only once something has failed.
#define STEP(call)                                                                                 \
    do {                                                                                           \
        if (!answered(call, #call)) {                                                              \
            return false;                                                                          \
        }                                                                                          \
    } while (false)

template <class Handle, class Free> void free_it(Handle& handle, const char* what, Free&& free) {
    if (handle != DAT_HANDLE_NULL) {
        if (const DAT_RETURN rc = free(std::exchange(handle, DAT_HANDLE_NULL))) {
            violation("freeing %s: 0x%x", what, rc);
        }
    }
}

struct Side {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE dto = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE conn = DAT_HANDLE_NULL; // connections, and requests
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CR_HANDLE cr = DAT_HANDLE_NULL;
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    DAT_CONN_QUAL port = 0;
    DAT_LMR_CONTEXT lmr_context = 0;
    DAT_RMR_CONTEXT rmr_context = 0;
    char* bytes = nullptr;
    // What came.
    int connected = 0;
    int ended = 0;
    int completed = 0;
    bool wrong = false;

    void close_all(bool abruptly) {
        if (!abruptly) {
            free_it(ep, "an endpoint", dat_ep_free);
            free_it(psp, "a service point", dat_psp_free);
            if (cr != DAT_HANDLE_NULL) {
                cr_reject(cr);
            }
            free_it(lmr, "a region", dat_lmr_free);
            free_it(dto, "an EVD", dat_evd_free);
            free_it(conn, "an EVD", dat_evd_free);
            free_it(cno, "a CNO", dat_cno_free);
            free_it(pz, "a zone", dat_pz_free);
        }
        free_it(ia, "an IA", [&](DAT_IA_HANDLE each) {
            return dat_ia_close(each, abruptly ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG);
        });
    }
    DAT_LMR_TRIPLET piece(std::size_t at, std::size_t length) const {
        return local_range(reinterpret_cast<std::uintptr_t>(bytes + at), length, lmr_context);
    }
    DAT_RMR_TRIPLET remote(std::size_t at, std::size_t length) const {
        return remote_range(reinterpret_cast<std::uintptr_t>(bytes + at), length, rmr_context);
    }
};

std::array<char, kBytes> g_bytes[2];
Side g_sides[2];

DAT_DTO_COOKIE cookie() {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = 0;
    return cookie;
}

// That of one side has a descriptor, where the API knows that.
DAT_RETURN create_cno(Side& side) {
#if DAT_TEST_API == 20
    if (&side == &g_sides[0]) {
        DAT_FD fd = -1;
        return dat_cno_fd_create(side.ia, &fd, &side.cno);
    }
#endif
    DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
    return dat_cno_create(side.ia, none, &side.cno);
}

bool open(Side& side) {
    char name[] = "lo";
    STEP(dat_ia_open(name, 8, &side.async, &side.ia));
    DAT_IA_ATTR attributes;
    STEP(dat_ia_query(side.ia, nullptr, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, 0, nullptr));
    if (reinterpret_cast<const sockaddr*>(attributes.ia_address_ptr)->sa_family != AF_INET) {
        violation("the adapter is on another address");
    }
    STEP(dat_pz_create(side.ia, &side.pz));
    if (g_waits) {
        STEP(create_cno(side));
    }
    STEP(dat_evd_create(side.ia, 16, side.cno,
                        static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG),
                        &side.dto));
    STEP(dat_evd_create(side.ia, 16, side.cno,
                        static_cast<DAT_EVD_FLAGS>(DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG),
                        &side.conn));
    DAT_REGION_DESCRIPTION region{};
    region.for_va = side.bytes;
    STEP(lmr_create(side.ia, DAT_MEM_TYPE_VIRTUAL, region, kBytes, side.pz, DAT_MEM_PRIV_ALL_FLAG,
                    &side.lmr, &side.lmr_context, &side.rmr_context, nullptr, nullptr));
    STEP(dat_ep_create(side.ia, side.pz, side.dto, side.dto, side.conn, nullptr, &side.ep));
    return true;
}

void note(Side& side, const DAT_EVENT& event) {
    switch (event.event_number) {
    case DAT_CONNECTION_REQUEST_EVENT:
        side.cr = event.event_data.cr_arrival_event_data.cr_handle;
        break;
    case DAT_CONNECTION_EVENT_ESTABLISHED:
        ++side.connected;
        break;
    case DAT_CONNECTION_EVENT_DISCONNECTED:
        ++side.ended;
        break;
    case DAT_DTO_COMPLETION_EVENT:
        ++side.completed;
        side.wrong =
            side.wrong || event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS;
        break;
    default:
        side.wrong = true;
    }
}

// The next event of it, if any. `pause_us`: for how long to sleep.
void look(Side& side, DAT_EVD_HANDLE evd, DAT_TIMEOUT pause_us) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    const DAT_RETURN rc =
        pause_us > 0 ? dat_evd_wait(evd, pause_us, 1, &event, &more) : dat_evd_dequeue(evd, &event);
    switch (DAT_GET_TYPE(rc)) {
    case DAT_SUCCESS:
        return note(side, event);
    case DAT_QUEUE_EMPTY:
    case DAT_TIMEOUT_EXPIRED:
    case DAT_INTERRUPTED_CALL:
        return;
    default:
        answered(rc, "an EVD");
        side.wrong = true;
    }
}

// Reads until `done`, or until something has gone wrong on one side. `ends`: that is awaited.
template <class Done> bool await(const char* what, Done&& done, bool ends = false) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (long round = 0; !done(); ++round) {
        for (Side& side : g_sides) {
            const bool pauses = g_waits && round % 16 == 15;
            look(side, side.conn, pauses ? 500 : 0);
            look(side, side.dto, pauses ? 500 : 0);
            if (pauses && round % 32 == 31) {
                DAT_EVD_HANDLE triggered = DAT_HANDLE_NULL;
                dat_cno_wait(side.cno, 500, &triggered);
            }
            if (side.wrong || (side.ended > 0 && !ends)) {
                if (!has_failed()) {
                    violation("%s: an error", what);
                }
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

bool receive(Side& side, std::size_t at, std::size_t size) {
    DAT_LMR_TRIPLET into = side.piece(at, size);
    STEP(dat_ep_post_recv(side.ep, 1, &into, cookie(), DAT_COMPLETION_DEFAULT_FLAG));
    return true;
}

bool send(Side& side, std::size_t size) {
    DAT_LMR_TRIPLET from = side.piece(0, size);
    STEP(dat_ep_post_send(side.ep, 1, &from, cookie(), DAT_COMPLETION_DEFAULT_FLAG));
    return true;
}

bool connect(Side& a, Side& b) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char hello[] = "hello";
    if (!receive(a, 0, kSmall)) {
        return false;
    }
    STEP(dat_ep_connect(a.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), b.port,
                        DAT_TIMEOUT_INFINITE, sizeof hello, hello, DAT_QOS_BEST_EFFORT,
                        DAT_CONNECT_DEFAULT_FLAG));
    if (!await("a request", [&] { return b.cr != DAT_HANDLE_NULL; })) {
        return false;
    }
    char welcome[] = "welcome";
    STEP(dat_cr_accept(b.cr, b.ep, sizeof welcome, welcome));
    b.cr = DAT_HANDLE_NULL;
    return await("connected", [&] { return a.connected + b.connected == 2; });
}

bool talk(Side& a, Side& b) {
    if (!send(a, kSmall) || !send(a, kLarge)) {
        return false;
    }
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(200)) {
        look(a, a.dto, 0);
        look(b, b.dto, 0);
    }
    if (!receive(b, 0, kSmall) || !receive(b, 0, kLarge)) {
        return false;
    }
    if (!await("what was sent", [&] { return a.completed == 2 && b.completed == 2; })) {
        return false;
    }
    DAT_LMR_TRIPLET local = a.piece(0, kLarge);
    DAT_RMR_TRIPLET remote = b.remote(kLarge, kLarge);
    STEP(dat_ep_post_rdma_write(a.ep, 1, &local, cookie(), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    STEP(dat_ep_post_rdma_read(a.ep, 1, &local, cookie(), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    if (!send(b, kSmall)) {
        return false;
    }
    return await("what was read and written", [&] { return a.completed == 5 && b.completed == 3; });
}

bool end(Side& a, Side& b) {
    STEP(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
    return await(
        "the end", [&] { return a.ended == 1 && b.ended == 1; }, true);
}

bool everything(Side& a, Side& b) {
    if (!open(a) || !open(b)) {
        return false;
    }
    STEP(dat_psp_create_any(b.ia, &b.port, b.conn, DAT_PSP_CONSUMER_FLAG, &b.psp));
    return connect(a, b) && talk(a, b) && end(a, b);
}

bool run() {
    for (int i = 0; i < 2; ++i) {
        g_sides[i] = Side();
        g_sides[i].bytes = g_bytes[i].data();
    }
    const bool done = everything(g_sides[0], g_sides[1]);
    g_sides[0].close_all(false);
    g_sides[1].close_all(true);
    return done;
}

bool load() {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    char name[] = "lo";
    STEP(dat_ia_open(name, 8, &async, &ia));
    STEP(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    return true;
}

} // namespace

int sweep_all() { return sweep_links(g_waits, load, run); }

} // namespace dat::test

int main() { return dat::test::sweep_all() == 0 ? 0 : 1; }
