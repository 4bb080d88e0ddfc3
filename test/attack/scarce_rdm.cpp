// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// As scarce_ofi, which has what loading the provider takes, of FI_EP_RDM: two endpoints that meet
// by their first message, tagged ones of both sizes before and after their receives, RDMA, and
// their end. Whatever allocation or descriptor is refused, each operation completes once, nothing
// is lost of memory, and the next run succeeds. A plain program that allocates nothing by itself.
#include "scarce_fi.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

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
constexpr std::uint64_t kCoreProvidersOnly = 1ULL << 59; // OFI_CORE_PROV_ONLY
constexpr std::size_t kSmall = 64;
constexpr std::size_t kHeld = 1000;       // held outside of the pool of small ones
constexpr std::size_t kLarge = 96 * 1024; // announced
constexpr std::size_t kBytes = 2 * kLarge;
constexpr int kOperations = 16;

bool g_waits = false; // with the progress thread, and sleeping

struct Operation {
    fi_context2 context; // first
    bool posted;
    int completions;
};

struct Side {
    fi_info* info = nullptr;
    fid_fabric* fabric = nullptr;
    fid_domain* domain = nullptr;
    fid_cq* cq = nullptr;
    fid_av* av = nullptr;
    fid_ep* ep = nullptr;
    fid_mr* mr = nullptr;
    fi_addr_t other = FI_ADDR_NOTAVAIL;
    std::array<char, kBytes>* bytes = nullptr;
    std::array<Operation, kOperations>* operations = nullptr;
    int used = 0;
    int completed = 0;
    bool wrong = false;

    void take(void* context);
    void read(int timeout_ms);
    void close_endpoint();
    void close_all();
};

std::array<char, kBytes> g_bytes[2];
std::array<Operation, kOperations> g_operations[2];
Side g_sides[2];

void Side::take(void* context) {
    auto& operation = *static_cast<Operation*>(context);
    if (&operation < operations->data() || &operation >= operations->data() + used ||
        !operation.posted) {
        violation("a completion is of no operation");
    } else if (++operation.completions > 1) {
        violation("an operation has completed twice");
    }
    ++completed;
}

void Side::read(int timeout_ms) {
    std::array<fi_cq_tagged_entry, 8> entries;
    const ssize_t n = timeout_ms >= 0 && g_waits
                          ? fi_cq_sread(cq, entries.data(), entries.size(), nullptr, timeout_ms)
                          : fi_cq_read(cq, entries.data(), entries.size());
    if (n == -FI_EAVAIL) {
        fi_cq_err_entry error{};
        fi_cq_readerr(cq, &error, 0);
        take(error.op_context);
        wrong = true;
    } else if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR) {
        answered(n, "fi_cq_read()");
        wrong = true;
    }
    for (ssize_t i = 0; i < n; ++i) {
        take(entries[static_cast<std::size_t>(i)].op_context);
    }
}

void move_both() {
    for (int i = 0; i < 50; ++i) {
        for (Side& side : g_sides) {
            if (side.cq) {
                side.read(-1);
            }
        }
    }
}

// Leaves the completion of each operation in the queue. Both sides have to hear of its end, or the
// domain would wait for the other.
void Side::close_endpoint() {
    const bool there = ep != nullptr;
    close(ep, "an endpoint");
    move_both();
    if (there) {
        for (int i = 0; i < used; ++i) {
            if ((*operations)[static_cast<std::size_t>(i)].completions != 1) {
                violation("operation %d has completed %d times", i,
                          (*operations)[static_cast<std::size_t>(i)].completions);
            }
        }
    }
}

void Side::close_all() {
    close(mr, "a memory region");
    close(av, "an address vector");
    close(cq, "a completion queue");
    close(domain, "a domain");
    close(fabric, "a fabric");
    fi_freeinfo(std::exchange(info, nullptr));
}

bool find(Side& side) {
    fi_info* const hints = fi_allocinfo();
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_SOURCE_ERR;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->ep_attr->type = FI_EP_RDM;
    // A success without it may be of what is lost with the connection.
    hints->tx_attr->op_flags = FI_TRANSMIT_COMPLETE;
    hints->fabric_attr->prov_name = strdup("dat");
    const fi_progress progress = g_waits ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
    hints->domain_attr->control_progress = hints->domain_attr->data_progress = progress;
    const int rc =
        fi_getinfo(kApi, "127.0.0.1", "0", FI_SOURCE | kCoreProvidersOnly, hints, &side.info);
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
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    cq_attr.wait_obj = g_waits ? FI_WAIT_FD : FI_WAIT_NONE;
    STEP(fi_cq_open(side.domain, &cq_attr, &side.cq, nullptr));
    fi_av_attr av_attr{};
    STEP(fi_av_open(side.domain, &av_attr, &side.av, nullptr));
    STEP(fi_mr_reg(side.domain, side.bytes->data(), kBytes,
                   FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &side.mr,
                   nullptr));
    STEP(fi_endpoint(side.domain, side.info, &side.ep, nullptr));
    STEP(fi_ep_bind(side.ep, &side.av->fid, 0));
    STEP(fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV));
    STEP(fi_enable(side.ep));
    return true;
}

bool know(Side& side, const Side& other) {
    std::array<char, 64> address;
    std::size_t size = address.size();
    STEP(fi_getname(&other.ep->fid, address.data(), &size));
    const int inserted = fi_av_insert(side.av, address.data(), 1, &side.other, 0, nullptr);
    STEP(inserted == 1 ? 0 : -FI_ENOMEM);
    return true;
}

// Until it is taken, or can never be. `call` has the context of the operation.
template <class Call> bool post(Side& side, const char* what, Call&& call) {
    Operation& operation = (*side.operations)[static_cast<std::size_t>(side.used)];
    operation = {};
    const auto begin = std::chrono::steady_clock::now();
    ssize_t rc = 0;
    while ((rc = call(&operation)) == -FI_EAGAIN) {
        g_sides[0].read(-1);
        g_sides[1].read(-1);
        if (waited_enough(what, std::chrono::steady_clock::now() - begin)) {
            return false;
        }
    }
    if (rc == 0) {
        operation.posted = true;
        ++side.used;
    }
    return answered(rc, what);
}

bool receive(Side& side, std::uint64_t tag, std::size_t size) {
    return post(side, "fi_trecv()", [&](void* context) {
        return fi_trecv(side.ep, side.bytes->data(), size, nullptr, FI_ADDR_UNSPEC, tag, 0,
                        context);
    });
}

bool send(Side& side, std::uint64_t tag, std::size_t size) {
    return post(side, "fi_tsend()", [&](void* context) {
        return fi_tsend(side.ep, side.bytes->data() + kLarge, size, nullptr, side.other, tag,
                        context);
    });
}

// Reads until all that was posted has completed, or something has gone wrong.
bool await(const char* what) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (long round = 0;; ++round) {
        bool all = true;
        for (Side& side : g_sides) {
            side.read(round % 64 == 63 ? 1 : -1);
            if (side.wrong) {
                stopped(what);
                return false;
            }
            all = all && side.completed == side.used;
        }
        if (all) {
            return true;
        }
        const auto since = Clock::now() - begin;
        if (waited_enough(what, since)) {
            return false;
        }
        if (round % 64 == 63 && !g_waits) {
            poll(nullptr, 0, since > std::chrono::milliseconds(20) ? 1 : 0);
        }
    }
}

// Both begin, so that their attempts may cross; then what is there before its receive.
bool talk(Side& a, Side& b) {
    if (!receive(a, 1, kSmall) || !receive(b, 1, kSmall) || !send(a, 1, kSmall) ||
        !send(b, 1, kSmall) || !await("what both sent first")) {
        return false;
    }
    if (!send(a, 2, kSmall) || !send(a, 3, kHeld) || !send(a, 4, kLarge) || !send(a, 5, 0) ||
        !receive(b, 5, 0)) {
        return false;
    }
    const auto begin = std::chrono::steady_clock::now();
    while (b.completed < 2 && !b.wrong &&
           !waited_enough("the last message", std::chrono::steady_clock::now() - begin)) {
        a.read(-1);
        b.read(-1);
    }
    return receive(b, 4, kLarge) && receive(b, 3, kHeld) && receive(b, 2, kSmall) &&
           await("what was held");
}

bool write(Side& a, const Side& b) {
    const bool written = post(a, "fi_write()", [&](void* context) {
        return fi_write(a.ep, a.bytes->data(), kLarge, nullptr, a.other, 0, fi_mr_key(b.mr),
                        context);
    });
    const bool read = written && post(a, "fi_read()", [&](void* context) {
                          return fi_read(a.ep, a.bytes->data(), kSmall, nullptr, a.other, 0,
                                         fi_mr_key(b.mr), context);
                      });
    return read && await("what was written and read");
}

bool run() {
    for (int i = 0; i < 2; ++i) {
        g_sides[i] = Side();
        g_sides[i].bytes = &g_bytes[i];
        g_sides[i].operations = &g_operations[i];
    }
    Side& a = g_sides[0];
    Side& b = g_sides[1];
    // One more receive, which the end finds.
    const bool done = open(a) && open(b) && know(a, b) && know(b, a) && talk(a, b) && write(a, b) &&
                      receive(b, 9, kSmall);
    for (Side& side : g_sides) {
        side.close_endpoint();
    }
    for (Side& side : g_sides) {
        side.close_all();
    }
    return done;
}

} // namespace

int sweep_all() { return sweep_links(g_waits, nullptr, run); }

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
