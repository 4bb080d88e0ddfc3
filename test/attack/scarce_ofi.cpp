// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The provider where memory and descriptors are scarce (scarce.h): two sides in one process
// connect, send, read, write, end and close, over TCP and over shared memory; moved by
// the program alone, or with the progress thread and waits. Whatever fails: each call answers,
// nothing ends the process, hangs or leaks, and the next run succeeds. A plain program that
// allocates nothing by itself.
#include "scarce_fi.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

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

constexpr std::uint32_t kApi = FI_VERSION(1, 17);
constexpr std::size_t kSmall = 64;
constexpr std::size_t kLarge = 96 * 1024; // goes in pieces, or is fetched by the peer
constexpr std::size_t kBytes = 4 * kLarge;

bool g_waits = false; // with the progress thread, and sleeping

struct Side {
    fi_info* info = nullptr;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_eq* eq = nullptr;
    fid_cq* cq = nullptr;
    fid_pep* pep = nullptr;
    fid_ep* ep = nullptr;
    fid_mr* mr = nullptr;
    std::array<char, kBytes>* bytes = nullptr;
    // What came.
    int connected = 0;
    int ended = 0;
    int completed = 0;
    int requested = 0;
    bool wrong = false; // an error, in the event queue or the completion queue
    fi_info* request = nullptr;

    void close_all() {
        close(mr, "a memory region");
        close(ep, "an endpoint");
        if (request && pep) {
            fi_reject(pep, request->handle, nullptr, 0);
        }
        fi_freeinfo(std::exchange(request, nullptr));
        close(pep, "a passive endpoint");
        close(cq, "a completion queue");
        close(eq, "an event queue");
        close(domain, "a domain");
        close(fabric, "a fabric");
        fi_freeinfo(std::exchange(info, nullptr));
    }
};

std::array<char, kBytes> g_bytes[2];
Side g_sides[2];

bool find(Side& side) {
    fi_info* const hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_RMA;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->ep_attr->type = FI_EP_MSG;
    hints->fabric_attr->prov_name = strdup("dat");
    const fi_progress progress = g_waits ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
    hints->domain_attr->control_progress = hints->domain_attr->data_progress = progress;
    const int rc = fi_getinfo(kApi, "127.0.0.1", "0", FI_SOURCE, hints, &side.info);
    fi_freeinfo(hints);
    if (rc) {
        side.info = nullptr;
    }
    if (rc == -FI_ENODATA && has_just_failed()) {
        return false; // libfabric leaves out who cannot answer
    }
    STEP(rc);
    return true;
}

bool open(Side& side) {
    if (!find(side)) {
        return false;
    }
    STEP(fi_fabric(side.info->fabric_attr, &side.fabric, nullptr));
    STEP(fi_domain(side.fabric, side.info, &side.domain, nullptr));
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = g_waits ? FI_WAIT_FD : FI_WAIT_NONE;
    STEP(fi_eq_open(side.fabric, &eq_attr, &side.eq, nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_DATA;
    cq_attr.wait_obj = g_waits ? FI_WAIT_FD : FI_WAIT_NONE;
    STEP(fi_cq_open(side.domain, &cq_attr, &side.cq, nullptr));
    STEP(fi_mr_reg(side.domain, side.bytes->data(), kBytes,
                   FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0,
                   0, &side.mr, nullptr));
    return true;
}

bool open_endpoint(Side& side, fi_info* info) {
    STEP(fi_endpoint(side.domain, info, &side.ep, nullptr));
    STEP(fi_ep_bind(side.ep, &side.eq->fid, 0));
    STEP(fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV));
    STEP(fi_enable(side.ep));
    return true;
}

bool receive(Side& side, std::size_t at, std::size_t size) {
    STEP(fi_recv(side.ep, side.bytes->data() + at, size, nullptr, 0, nullptr));
    return true;
}

// --- what comes ---

void read_events(Side& side, int timeout_ms) {
    std::array<char, sizeof(fi_eq_cm_entry) + 64> room;
    std::uint32_t type = 0;
    const ssize_t n = timeout_ms >= 0 && g_waits
                          ? fi_eq_sread(side.eq, &type, room.data(), room.size(), timeout_ms, 0)
                          : fi_eq_read(side.eq, &type, room.data(), room.size(), 0);
    if (n == -FI_EAVAIL) {
        fi_eq_err_entry error{};
        fi_eq_readerr(side.eq, &error, 0);
        side.wrong = true;
    } else if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR) {
        answered(n, "fi_eq_read()");
        side.wrong = true;
    } else if (n >= 0) {
        const auto& entry = *reinterpret_cast<const fi_eq_cm_entry*>(room.data());
        side.connected += type == FI_CONNECTED ? 1 : 0;
        side.ended += type == FI_SHUTDOWN ? 1 : 0;
        if (type == FI_CONNREQ) {
            ++side.requested;
            fi_freeinfo(std::exchange(side.request, entry.info));
        }
    }
}

void read_completions(Side& side, int timeout_ms) {
    std::array<fi_cq_data_entry, 8> entries;
    const ssize_t n =
        timeout_ms >= 0 && g_waits
            ? fi_cq_sread(side.cq, entries.data(), entries.size(), nullptr, timeout_ms)
            : fi_cq_read(side.cq, entries.data(), entries.size());
    if (n == -FI_EAVAIL) {
        fi_cq_err_entry error{};
        fi_cq_readerr(side.cq, &error, 0);
        side.wrong = true;
    } else if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR) {
        answered(n, "fi_cq_read()");
        side.wrong = true;
    } else if (n > 0) {
        side.completed += static_cast<int>(n);
    }
}

// Reads until `done`, or until something has gone wrong on one side. `ends`: that is awaited.
template <class Done> bool await(const char* what, Done&& done, bool ends = false) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (long round = 0; !done(); ++round) {
        for (Side& side : g_sides) {
            const int pause = round % 64 == 63 ? 1 : -1;
            read_events(side, pause);
            read_completions(side, pause);
            if (side.wrong || (side.ended > 0 && !ends)) {
                stopped(what);
                return false;
            }
        }
        const auto since = Clock::now() - begin;
        if (waited_enough(what, since)) {
            return false;
        }
        if (round % 64 == 63 && !g_waits) {
            poll(nullptr, 0, since > std::chrono::milliseconds(20) ? 1 : 0);
        }
    }
    return true;
}

// --- a run ---

bool ask(Side& a, const Side& b, const char* words) {
    std::array<char, 64> address;
    std::size_t size = address.size();
    STEP(fi_getname(&b.pep->fid, address.data(), &size));
    STEP(fi_connect(a.ep, address.data(), words, std::strlen(words)));
    return true;
}

bool connect(Side& a, Side& b) {
    if (!open_endpoint(a, a.info) || !receive(a, 0, kSmall) || !ask(a, b, "hello")) {
        return false;
    }
    if (!await("a request", [&] { return b.request != nullptr; }) || !open_endpoint(b, b.request)) {
        return false;
    }
    STEP(fi_accept(b.ep, "welcome", 7));
    fi_freeinfo(std::exchange(b.request, nullptr));
    return await("connected", [&] { return a.connected + b.connected == 2; });
}

// Small and large ones come before there is a receive for them, in part.
bool talk(Side& a, Side& b) {
    char* const from = a.bytes->data();
    STEP(fi_inject(a.ep, from, kSmall, 0));
    STEP(fi_send(a.ep, from, kSmall, nullptr, 0, nullptr));
    STEP(fi_send(a.ep, from, kLarge, nullptr, 0, nullptr));
    STEP(fi_writedata(a.ep, from, kSmall, nullptr, 7, 0, 2 * kLarge, fi_mr_key(b.mr), nullptr));
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(200)) {
        read_completions(a, -1);
        read_completions(b, -1);
    }
    if (!receive(b, 0, kSmall) || !receive(b, 0, kSmall) || !receive(b, 0, kLarge)) {
        return false;
    }
    // All but the inject, at both sides.
    if (!await("what was sent", [&] { return a.completed == 3 && b.completed >= 3; })) {
        return false;
    }
    STEP(fi_write(a.ep, from, kLarge, nullptr, 0, kLarge, fi_mr_key(b.mr), nullptr));
    STEP(fi_read(a.ep, from, kLarge, nullptr, 0, 0, fi_mr_key(b.mr), nullptr));
    STEP(fi_send(b.ep, b.bytes->data(), kSmall, nullptr, 0, nullptr));
    return await("what was read and written", [&] { return a.completed == 6 && b.completed == 5; });
}

bool end(Side& a, Side& b) {
    STEP(fi_shutdown(a.ep, 0));
    return await(
        "the end", [&] { return a.ended == 1 && b.ended == 1; }, true);
}

// Once more, by what the first may have left: shared memory, and the way to it.
bool again(Side& a, Side& b) {
    for (Side* side : {&a, &b}) {
        close(side->ep, "an endpoint");
        side->connected = side->ended = side->completed = 0;
    }
    if (!connect(a, b)) {
        return false;
    }
    STEP(fi_send(b.ep, b.bytes->data(), kSmall, nullptr, 0, nullptr));
    return await("a message", [&] { return a.completed == 1 && b.completed == 1; }) && end(a, b);
}

bool everything(Side& a, Side& b) {
    if (!open(a) || !open(b)) {
        return false;
    }
    STEP(fi_passive_ep(b.fabric, b.info, &b.pep, nullptr));
    STEP(fi_pep_bind(b.pep, &b.eq->fid, 0));
    STEP(fi_listen(b.pep));
    return connect(a, b) && talk(a, b) && end(a, b) && again(a, b);
}

bool run() {
    for (int i = 0; i < 2; ++i) {
        g_sides[i] = Side();
        g_sides[i].bytes = &g_bytes[i];
    }
    const bool done = everything(g_sides[0], g_sides[1]);
    for (Side& side : g_sides) {
        side.close_all();
    }
    return done;
}

// Libfabric loads all providers at its first call.
bool load() {
    fi_info* const hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup("nobody");
    fi_info* none = nullptr;
    const int rc = fi_getinfo(kApi, nullptr, nullptr, 0, hints, &none);
    fi_freeinfo(hints);
    return rc == -FI_ENODATA && !has_failed();
}

} // namespace

int sweep_all() { return sweep_links(g_waits, load, run); }

} // namespace dat::test

int main() {
    if (const char* build = std::getenv("DAT_BUILDDIR")) {
        std::array<char, 4096> path;
        std::snprintf(path.data(), path.size(), "%s/.libs", build);
        setenv("FI_PROVIDER_PATH", path.data(), 0);
    }
    setenv("FI_PROVIDER", "dat", 1);
    return dat::test::sweep_all() == 0 ? 0 : 1;
}
