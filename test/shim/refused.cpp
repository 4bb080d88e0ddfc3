// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls that are refused, for the lines that they write, and some that only find nothing, or no
// room, which write none. For refused_test.sh. Ends with 1 where one answers otherwise.
// Usage: refused12|refused20 INTERFACE OTHER-INTERFACE
#include "adapter.h"
#include "api.h"

#if DAT_TEST_API == 20
#include <dat2/dat_ib_extensions.h>
#endif

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace dat::test {
namespace {

void expect(DAT_RETURN code, DAT_RETURN wanted, const char* what) {
    if (code != wanted) {
        std::printf("%s: 0x%x, not 0x%x\n", what, code, wanted);
        std::exit(1);
    }
}

constexpr DAT_RETURN code_of(DAT_RETURN type, DAT_RETURN subtype) {
    return DAT_CLASS_ERROR | type | subtype;
}

#define MUST(call) expect(call, DAT_SUCCESS, #call)
#define REFUSED(type, subtype, call) expect(call, code_of(type, subtype), #call)

struct Adapter {
    explicit Adapter(std::string name) {
        MUST(dat_ia_open(name.data(), 8, &async, &ia));
        MUST(dat_pz_create(ia, &pz));
    }
    ~Adapter() { dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }
    Adapter(const Adapter&) = delete;
    Adapter& operator=(const Adapter&) = delete;
    DAT_EVD_HANDLE evd(DAT_EVD_FLAGS flags) const {
        DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
        MUST(dat_evd_create(ia, 8, DAT_HANDLE_NULL, flags, &evd));
        return evd;
    }
    DAT_RETURN ep(DAT_EVD_HANDLE dtos, DAT_EVD_HANDLE conn,
                  const DAT_EP_ATTR* attr = nullptr) const {
        DAT_EP_HANDLE ep;
        return dat_ep_create(ia, pz, dtos, dtos, conn, attr, &ep);
    }
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
};

void open_by_conf() {
    const auto open = [](const char* name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe) {
        std::string copy = name;
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
        DAT_IA_HANDLE ia;
        return dat_ia_openv(copy.data(), 8, &async, &ia, major, minor, safe);
    };
    REFUSED(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND, open("listed", kOtherMajor, 0, DAT_FALSE));
    REFUSED(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND,
            open("listed", DAT_VERSION_MAJOR, DAT_VERSION_MINOR + 1, DAT_FALSE));
    REFUSED(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND,
            open("listed", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
}

void make_endpoints(const Adapter& adapter, const Adapter& other) {
    const DAT_EVD_HANDLE conn = adapter.evd(DAT_EVD_CONNECTION_FLAG);
    const DAT_EVD_HANDLE dtos = adapter.evd(DAT_EVD_DTO_FLAG);
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV, adapter.ep(adapter.pz, conn));
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV, adapter.ep(conn, conn));
    // U-68: of the same device it would be right.
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN, other.ep(DAT_HANDLE_NULL, conn));
    DAT_EP_ATTR attr{};
    attr.max_recv_dtos = -1;
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, adapter.ep(dtos, conn, &attr));
    attr.max_recv_dtos = 1;
    attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, adapter.ep(dtos, conn, &attr));
}

void make_others(const Adapter& adapter) {
    DAT_HANDLE made;
    const auto evd = [&](DAT_COUNT length, unsigned flags) {
        return dat_evd_create(adapter.ia, length, DAT_HANDLE_NULL,
                              static_cast<DAT_EVD_FLAGS>(flags), &made);
    };
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, evd(0, DAT_EVD_DTO_FLAG));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, evd(8, 0));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, evd(8, 0x1000));
    std::array<char, 64> memory{};
    DAT_REGION_DESCRIPTION region{};
    region.for_va = memory.data();
    const auto lmr = [&](DAT_PZ_HANDLE pz, DAT_VLEN length, unsigned privileges) {
        return lmr_create(adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz,
                          static_cast<DAT_MEM_PRIV_FLAGS>(privileges), &made, nullptr, nullptr,
                          nullptr, nullptr);
    };
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ, lmr(adapter.async, 64, 0));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, lmr(adapter.pz, 64, 0x1000));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, lmr(adapter.pz, 0, 0));
    const auto psp = [&](DAT_EVD_HANDLE requests, DAT_CONN_QUAL qualifier, unsigned flags) {
        return dat_psp_create(adapter.ia, qualifier, requests, static_cast<DAT_PSP_FLAGS>(flags),
                              &made);
    };
    const DAT_EVD_HANDLE good = adapter.evd(DAT_EVD_CR_FLAG);
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, psp(good, 0x10000, DAT_PSP_CONSUMER_FLAG));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4, psp(good, 20000, 7));
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
            psp(adapter.evd(DAT_EVD_DTO_FLAG), 20000, DAT_PSP_CONSUMER_FLAG));
}

// PD-1
void connect_with_private_data(const Adapter& adapter) {
    const DAT_EVD_HANDLE conn = adapter.evd(DAT_EVD_CONNECTION_FLAG);
    const DAT_EVD_HANDLE dtos = adapter.evd(DAT_EVD_DTO_FLAG);
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    MUST(dat_ep_create(adapter.ia, adapter.pz, dtos, dtos, conn, nullptr, &ep));
    sockaddr_in there = address_of(INADDR_LOOPBACK);
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
            dat_ep_connect(ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&there), 20000, 1, -1, &there,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
            dat_ep_dup_connect(ep, ep, 1, 4, nullptr, DAT_QOS_BEST_EFFORT));
}

// Two endpoints of one adapter, connected, and memory that they send from.
struct Connected {
    explicit Connected(const Adapter& of) : adapter(of) {
        DAT_REGION_DESCRIPTION region{};
        region.for_va = memory.data();
        MUST(lmr_create(of.ia, DAT_MEM_TYPE_VIRTUAL, region, memory.size(), of.pz,
                        DAT_MEM_PRIV_ALL_FLAG, &lmr, &local.lmr_context, &remote.rmr_context,
                        nullptr, nullptr));
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        local = local_range(address, memory.size(), local.lmr_context);
        remote = remote_range(address, memory.size(), remote.rmr_context);
        const DAT_EVD_HANDLE requests = of.evd(DAT_EVD_CR_FLAG);
        DAT_PSP_HANDLE psp;
        DAT_CONN_QUAL qualifier = 0;
        MUST(dat_psp_create_any(of.ia, &qualifier, requests, DAT_PSP_CONSUMER_FLAG, &psp));
        DAT_EVD_HANDLE active_conn;
        DAT_EVD_HANDLE passive_conn;
        ep = make(active_conn);
        const DAT_EP_HANDLE passive = make(passive_conn);
        sockaddr_in there = address_of(INADDR_LOOPBACK);
        MUST(dat_ep_connect(ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&there), qualifier, kSoon, 0,
                            nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
        const DAT_EVENT request = next(requests, DAT_CONNECTION_REQUEST_EVENT);
        MUST(
            dat_cr_accept(request.event_data.cr_arrival_event_data.cr_handle, passive, 0, nullptr));
        next(active_conn, DAT_CONNECTION_EVENT_ESTABLISHED);
        next(passive_conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    }
    DAT_EP_HANDLE make(DAT_EVD_HANDLE& conn) const {
        const DAT_EVD_HANDLE dtos =
            adapter.evd(static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
        conn = adapter.evd(DAT_EVD_CONNECTION_FLAG);
        DAT_EP_HANDLE made = DAT_HANDLE_NULL;
        MUST(dat_ep_create(adapter.ia, adapter.pz, dtos, dtos, conn, nullptr, &made));
        return made;
    }
    static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
        DAT_EVENT event{};
        DAT_COUNT more = 0;
        MUST(dat_evd_wait(evd, kSoon, 1, &event, &more));
        expect(event.event_number, number, "the event");
        return event;
    }
    static constexpr DAT_TIMEOUT kSoon = 60'000'000; // us

    const Adapter& adapter;
    inline static std::array<char, 64> memory{}; // until the adapter is closed
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_TRIPLET local{};
    DAT_RMR_TRIPLET remote{};
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
};

// Posts until the queue is full, and then goes on.
template <class Post> void fill(DAT_RETURN full, const char* what, Post&& post) {
    DAT_RETURN code = DAT_SUCCESS;
    for (int i = 0; i < 100'000 && code == DAT_SUCCESS; ++i) {
        code = post();
    }
    for (int i = 0; i < 1000; ++i) {
        expect(code, full, what);
        code = post();
    }
}

// A full queue is no fault: no line tells it, while one does of a wrong argument, of the same
// call on the same queue.
void fill_queues(const Adapter& adapter) {
    constexpr DAT_RETURN kFull = code_of(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    const auto flags = [](unsigned value) { return static_cast<DAT_COMPLETION_FLAGS>(value); };
    constexpr unsigned kWrong = 0x100;
    Connected c(adapter);
    DAT_LMR_TRIPLET* const local = &c.local;
    const DAT_RMR_TRIPLET* const remote = &c.remote;
    DAT_DTO_COOKIE cookie{};
    const auto recv = [&](unsigned value) {
        return dat_ep_post_recv(c.ep, 1, local, cookie, flags(value));
    };
    const auto send = [&](unsigned value) {
        return dat_ep_post_send(c.ep, 1, local, cookie, flags(value));
    };
    const auto write = [&](unsigned value) {
        return dat_ep_post_rdma_write(c.ep, 1, local, cookie, remote, flags(value));
    };
    const auto read = [&](unsigned value) {
        return dat_ep_post_rdma_read(c.ep, 1, local, cookie, remote, flags(value));
    };
    fill(kFull, "dat_ep_post_recv", [&] { return recv(0); });
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, recv(kWrong));
    fill(kFull, "dat_ep_post_send", [&] { return send(0); });
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, send(kWrong));
    fill(kFull, "dat_ep_post_rdma_write", [&] { return write(0); });
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, write(kWrong));
    fill(kFull, "dat_ep_post_rdma_read", [&] { return read(0); });
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, read(kWrong));

    DAT_RMR_HANDLE window;
    DAT_RMR_CONTEXT context;
    DAT_RMR_COOKIE bind_cookie{};
    MUST(dat_rmr_create(adapter.pz, &window));
    const auto bind = [&](DAT_RMR_HANDLE rmr) {
        return rmr_bind(rmr, c.lmr, *local, DAT_MEM_PRIV_ALL_FLAG, c.ep, bind_cookie, &context);
    };
    fill(kFull, "dat_rmr_bind", [&] { return bind(window); });
    REFUSED(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR, bind(c.lmr));

    DAT_SRQ_HANDLE srq;
    DAT_SRQ_ATTR srq_attr{};
    srq_attr.max_recv_dtos = 4;
    srq_attr.max_recv_iov = 1;
    MUST(dat_srq_create(adapter.ia, adapter.pz, &srq_attr, &srq));
    fill(code_of(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ), "dat_srq_post_recv",
         [&] { return dat_srq_post_recv(srq, 1, local, cookie); });
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_srq_post_recv(srq, 1, nullptr, cookie));
    // No post: the code alone makes no refusal one of a full queue.
    REFUSED(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ, dat_srq_resize(srq, 8));

    const DAT_EVD_HANDLE software = adapter.evd(DAT_EVD_SOFTWARE_FLAG);
    DAT_EVENT event{};
    event.event_number = DAT_SOFTWARE_EVENT;
    fill(code_of(DAT_QUEUE_FULL, DAT_NO_SUBTYPE), "dat_evd_post_se",
         [&] { return dat_evd_post_se(software, &event); });
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_evd_post_se(software, nullptr));
#if DAT_TEST_API == 20
    const auto add = [&](unsigned value) {
        return dat_ib_post_fetch_and_add(c.ep, 1, local, cookie, remote, flags(value));
    };
    fill(kFull, "dat_extension_op", [&] { return add(0); });
    REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, add(kWrong));
#endif
}

// What programs ask again and again is not written at all, and a fault that they repeat once.
void ask_often(const Adapter& adapter) {
    DAT_EVENT event;
    DAT_COUNT more = 0;
    expect(dat_evd_dequeue(adapter.async, &event), DAT_QUEUE_EMPTY, "dat_evd_dequeue");
    expect(dat_evd_wait(adapter.async, 0, 1, &event, &more), DAT_TIMEOUT_EXPIRED, "dat_evd_wait");
    for (int i = 0; i < 1000; ++i) {
        REFUSED(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_evd_dequeue(adapter.async, nullptr));
    }
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    if (argc != 3) {
        return 2;
    }
    open_by_conf();
    const Adapter adapter(argv[1]);
    const Adapter other(argv[2]);
    make_endpoints(adapter, other);
    make_others(adapter);
    connect_with_private_data(adapter);
    fill_queues(adapter);
    ask_often(adapter);
    return 0;
}
