// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What programs that use uDAPL for measuring begin with: calls whose failure ends them, and a
// connection over loopback between two endpoints.
#ifndef DAT_TEST_BENCH_DAT_ENDS_H
#define DAT_TEST_BENCH_DAT_ENDS_H

#include <dat2/udat.h>

#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>

namespace bench {

inline constexpr DAT_TIMEOUT kSoon = 60'000'000; // us; nothing here takes that long

inline void check(DAT_RETURN code, const char* call) {
    if (code != DAT_SUCCESS) {
        const char* major = "no code at all";
        const char* minor = "";
        dat_strerror(code, &major, &minor);
        std::fprintf(stderr, "%s: %s %s\n", call, major, minor);
        std::exit(1);
    }
}
#define CHECK(function, ...) ::bench::check(function(__VA_ARGS__), #function)

// The first event of an EVD.
inline DAT_EVENT wait_for(DAT_EVD_HANDLE evd) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    CHECK(dat_evd_wait, evd, kSoon, 1, &event, &more);
    return event;
}

// An IA of the loopback interface, with a protection zone.
struct Ia {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;

    Ia() {
        char name[] = "lo";
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
        CHECK(dat_ia_open, name, 8, &async, &ia);
        CHECK(dat_pz_create, ia, &pz);
    }
    ~Ia() { dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }
    Ia(const Ia&) = delete;
    Ia& operator=(const Ia&) = delete;

    DAT_EVD_HANDLE evd(DAT_COUNT length, DAT_EVD_FLAGS flags) const {
        DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
        CHECK(dat_evd_create, ia, length, DAT_HANDLE_NULL, flags, &evd);
        return evd;
    }
};

// Connects the client to the server, an endpoint of `there`. Their connection EVDs still have the
// events that say so.
inline void connect(DAT_EP_HANDLE client, const Ia& there, DAT_EP_HANDLE server) {
    const DAT_EVD_HANDLE requests = there.evd(8, DAT_EVD_CR_FLAG);
    DAT_CONN_QUAL qualifier = 0;
    DAT_PSP_HANDLE listener = DAT_HANDLE_NULL;
    CHECK(dat_psp_create_any, there.ia, &qualifier, requests, DAT_PSP_CONSUMER_FLAG, &listener);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(dat_ep_connect, client, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), qualifier, kSoon,
          0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
    const DAT_EVENT request = wait_for(requests);
    CHECK(dat_cr_accept, request.event_data.cr_arrival_event_data.cr_handle, server, 0, nullptr);
}

} // namespace bench

#endif
