// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See plugin.h. The visitor sends where its memory is, the server reads it, writes the answer
// behind it, and says so; then the visitor disconnects gracefully.
#include "plugin.h"

#include "api.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <netinet/in.h>
#include <unistd.h>

namespace {

using namespace dat::test;

constexpr DAT_TIMEOUT kSoon = 60'000'000; // us
constexpr char kQuestion[] = "is anybody there";
constexpr char kAnswer[] = "somebody is here";
constexpr char kHello[] = "hello";
constexpr char kWelcome[] = "welcome";

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return __LINE__;                                                                       \
        }                                                                                          \
    } while (false)

struct Invitation { // on the wire
    std::uint64_t address;
    std::uint64_t context;
};

DAT_DTO_COOKIE cookie_of(std::uint64_t value) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = value;
    return cookie;
}

struct Host {
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL; // all streams
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    alignas(8) std::array<char, 4096> bytes{};
    DAT_LMR_CONTEXT lmr_context = 0;
    DAT_RMR_CONTEXT rmr_context = 0;

    ~Host() {
        if (ia) {
            dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
        }
    }
    int open() {
        char name[] = "lo";
        CHECK(dat_ia_open(name, 8, &async, &ia) == DAT_SUCCESS);
        CHECK(dat_pz_create(ia, &pz) == DAT_SUCCESS);
        CHECK(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd) == DAT_SUCCESS);
        CHECK(dat_ep_create(ia, pz, evd, evd, evd, nullptr, &ep) == DAT_SUCCESS);
        DAT_REGION_DESCRIPTION region{};
        region.for_va = bytes.data();
        DAT_LMR_HANDLE lmr;
        CHECK(lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes.size(), pz, DAT_MEM_PRIV_ALL_FLAG,
                         &lmr, &lmr_context, &rmr_context, nullptr, nullptr) == DAT_SUCCESS);
        return 0;
    }
    std::uintptr_t at(std::size_t offset) {
        return reinterpret_cast<std::uintptr_t>(bytes.data() + offset);
    }
    DAT_LMR_TRIPLET piece(std::size_t offset, std::size_t length) {
        return local_range(at(offset), length, lmr_context);
    }
    int receive(std::size_t offset, std::uint64_t cookie) {
        DAT_LMR_TRIPLET into = piece(offset, 64);
        CHECK(dat_ep_post_recv(ep, 1, &into, cookie_of(cookie), DAT_COMPLETION_DEFAULT_FLAG) ==
              DAT_SUCCESS);
        return 0;
    }
    int send(std::size_t offset, std::size_t length, std::uint64_t cookie) {
        DAT_LMR_TRIPLET from = piece(offset, length);
        CHECK(dat_ep_post_send(ep, 1, &from, cookie_of(cookie), DAT_COMPLETION_DEFAULT_FLAG) ==
              DAT_SUCCESS);
        return done(cookie);
    }
    int next(DAT_EVENT_NUMBER number, DAT_EVENT& event) {
        DAT_COUNT more;
        CHECK(dat_evd_wait(evd, kSoon, 1, &event, &more) == DAT_SUCCESS);
        CHECK(event.event_number == number && event.evd_handle == evd);
        return 0;
    }
    int done(std::uint64_t cookie) {
        DAT_EVENT event;
        CHECK(next(DAT_DTO_COMPLETION_EVENT, event) == 0);
        const auto& dto = event.event_data.dto_completion_event_data;
        CHECK(dto.status == DAT_DTO_SUCCESS && dto.user_cookie.as_64 == cookie);
        CHECK(dto.ep_handle == ep);
        return 0;
    }
};

} // namespace

int version(unsigned* major) {
    Host host;
    CHECK(host.open() == 0);
    DAT_EVD_HANDLE async;
    DAT_PROVIDER_ATTR provider{};
    CHECK(dat_ia_query(host.ia, &async, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &provider) ==
          DAT_SUCCESS);
    *major = provider.dapl_version_major;
    return 0;
}

int serve(int to) {
    Host host;
    CHECK(host.open() == 0);
    DAT_CONN_QUAL port = 0;
    DAT_PSP_HANDLE psp;
    CHECK(dat_psp_create_any(host.ia, &port, host.evd, DAT_PSP_CONSUMER_FLAG, &psp) == DAT_SUCCESS);
    CHECK(write(to, &port, sizeof port) == sizeof port);
    DAT_EVENT event;
    CHECK(host.next(DAT_CONNECTION_REQUEST_EVENT, event) == 0);
    const auto& arrival = event.event_data.cr_arrival_event_data;
    CHECK(arrival.conn_qual == port && arrival.sp_handle.psp_handle == psp);
    const DAT_CR_HANDLE cr = arrival.cr_handle;
    DAT_CR_PARAM request;
    CHECK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request) == DAT_SUCCESS);
    CHECK(request.private_data_size == sizeof kHello &&
          std::memcmp(request.private_data, kHello, sizeof kHello) == 0);
    CHECK(host.receive(0, 1) == 0);
    char welcome[] = "welcome";
    CHECK(dat_cr_accept(cr, host.ep, sizeof welcome, welcome) == DAT_SUCCESS);
    CHECK(host.next(DAT_CONNECTION_EVENT_ESTABLISHED, event) == 0);
    CHECK(host.done(1) == 0);
    Invitation there;
    std::memcpy(&there, host.bytes.data(), sizeof there);
    const auto context = static_cast<DAT_RMR_CONTEXT>(there.context);
    DAT_LMR_TRIPLET local = host.piece(512, sizeof kQuestion);
    DAT_RMR_TRIPLET remote = remote_range(there.address, sizeof kQuestion, context);
    CHECK(dat_ep_post_rdma_read(host.ep, 1, &local, cookie_of(2), &remote,
                                DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS);
    CHECK(host.done(2) == 0);
    CHECK(std::memcmp(host.bytes.data() + 512, kQuestion, sizeof kQuestion) == 0);
    std::memcpy(host.bytes.data() + 1024, kAnswer, sizeof kAnswer);
    local = host.piece(1024, sizeof kAnswer);
    remote = remote_range(there.address + 64, sizeof kAnswer, context);
    CHECK(dat_ep_post_rdma_write(host.ep, 1, &local, cookie_of(3), &remote,
                                 DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS);
    CHECK(host.done(3) == 0);
    CHECK(host.send(0, 8, 4) == 0);
    CHECK(host.next(DAT_CONNECTION_EVENT_DISCONNECTED, event) == 0);
    return 0;
}

int visit(int from) {
    Host host;
    CHECK(host.open() == 0);
    DAT_CONN_QUAL port = 0;
    CHECK(read(from, &port, sizeof port) == sizeof port);
    CHECK(host.receive(2048, 1) == 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char hello[] = "hello";
    CHECK(dat_ep_connect(host.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), port, kSoon,
                         sizeof hello, hello, DAT_QOS_BEST_EFFORT,
                         DAT_CONNECT_DEFAULT_FLAG) == DAT_SUCCESS);
    DAT_EVENT event;
    CHECK(host.next(DAT_CONNECTION_EVENT_ESTABLISHED, event) == 0);
    const auto& established = event.event_data.connect_event_data;
    CHECK(established.private_data_size == sizeof kWelcome &&
          std::memcmp(established.private_data, kWelcome, sizeof kWelcome) == 0);
    std::memcpy(host.bytes.data() + 256, kQuestion, sizeof kQuestion);
    const Invitation here{host.at(256), host.rmr_context};
    std::memcpy(host.bytes.data(), &here, sizeof here);
    CHECK(host.send(0, sizeof here, 2) == 0);
    CHECK(host.done(1) == 0); // the answer is there
    CHECK(std::memcmp(host.bytes.data() + 256 + 64, kAnswer, sizeof kAnswer) == 0);
    CHECK(dat_ep_disconnect(host.ep, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS);
    CHECK(host.next(DAT_CONNECTION_EVENT_DISCONNECTED, event) == 0);
    return 0;
}
