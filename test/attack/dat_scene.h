// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Both ends of a connection on one adapter, by dat_* calls alone, for plain programs of either
// version of the API. Included by the program's one source.
#ifndef DAT_TEST_ATTACK_DAT_SCENE_H
#define DAT_TEST_ATTACK_DAT_SCENE_H

#include "../shim/api.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace dat::test {

[[noreturn]] inline void fail_at(const char* file, int line, const std::string& what) {
    std::fprintf(stderr, "FAILED %s:%d: %s\n", file, line, what.c_str());
    std::_Exit(1);
}
#define DAT_REQUIRE(condition, message)                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ::dat::test::fail_at(__FILE__, __LINE__, std::string(#condition ": ") + (message));    \
    } while (false)

inline std::string code_name(DAT_RETURN rc) {
    const char* major = "no code";
    const char* minor = "";
    dat_strerror(rc, &major, &minor);
    return std::string(major) + " " + minor;
}
// `call` must return DAT_SUCCESS.
#define DAT_MUST(call)                                                                             \
    do {                                                                                           \
        const DAT_RETURN must_result_ = (call);                                                    \
        DAT_REQUIRE(must_result_ == DAT_SUCCESS, ::dat::test::code_name(must_result_));            \
    } while (false)

inline DAT_DTO_COOKIE cookie_of(std::uint64_t value) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = value;
    return cookie;
}

inline DAT_EVD_FLAGS streams(unsigned flags) { return static_cast<DAT_EVD_FLAGS>(flags); }

// One adapter, two endpoints that are connected with each other. What goes from the first to the
// second completes in `sent`, which a CNO has, and in `received`.
struct DatScene {
    static constexpr std::size_t kRoom = 40000; // bytes, for each way

    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE sent = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE received = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE events = DAT_HANDLE_NULL; // connections and requests
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT context = 0;
    DAT_RMR_CONTEXT at_peer = 0;
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    DAT_CONN_QUAL port = 0;
    DAT_EP_HANDLE active = DAT_HANDLE_NULL;
    DAT_EP_HANDLE passive = DAT_HANDLE_NULL;
    int connected = 0; // events, so far
    int ended = 0;

    void open();
    DAT_RETURN make_endpoint(DAT_EP_HANDLE* ep) const {
        return dat_ep_create(ia, pz, received, sent, events, nullptr, ep);
    }
    DAT_RETURN begin_connect(DAT_EP_HANDLE ep) const {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return dat_ep_connect(ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), port, 30000000, 0,
                              nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
    }
    // Takes an event of connections, and answers a request; false: there is none.
    bool read_event();
    void connect();
    DAT_RETURN send(std::size_t size) const {
        DAT_LMR_TRIPLET from = piece(0, size);
        return dat_ep_post_send(active, 1, &from, cookie_of(1), DAT_COMPLETION_DEFAULT_FLAG);
    }
    DAT_RETURN receive(std::size_t size) const {
        DAT_LMR_TRIPLET into = piece(kRoom, size);
        return dat_ep_post_recv(passive, 1, &into, cookie_of(2), DAT_COMPLETION_DEFAULT_FLAG);
    }
    DAT_LMR_TRIPLET piece(std::size_t at, std::size_t size) const {
        return local_range(reinterpret_cast<std::uintptr_t>(bytes.data() + at), size, context);
    }

    alignas(64) static inline std::array<char, 2 * kRoom> bytes{};
};

// Until it is so; the program fails after a minute.
template <class Done> void await(const char* what, Done&& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
        DAT_REQUIRE(std::chrono::steady_clock::now() < end, std::string("in vain: ") + what);
    }
}

inline void DatScene::open() {
    char name[] = "lo";
    async = DAT_HANDLE_NULL;
    DAT_MUST(dat_ia_open(name, 8, &async, &ia));
    DAT_MUST(dat_pz_create(ia, &pz));
    DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
    DAT_MUST(dat_cno_create(ia, none, &cno));
    DAT_MUST(dat_evd_create(ia, 256, cno, streams(DAT_EVD_DTO_FLAG), &sent));
    DAT_MUST(dat_evd_create(ia, 256, DAT_HANDLE_NULL, streams(DAT_EVD_DTO_FLAG), &received));
    DAT_MUST(dat_evd_create(ia, 16, DAT_HANDLE_NULL,
                            streams(DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG), &events));
    DAT_REGION_DESCRIPTION region{};
    region.for_va = bytes.data();
    DAT_MUST(lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes.size(), pz, DAT_MEM_PRIV_ALL_FLAG,
                        &lmr, &context, &at_peer, nullptr, nullptr));
    DAT_MUST(dat_psp_create_any(ia, &port, events, DAT_PSP_CONSUMER_FLAG, &psp));
    DAT_MUST(make_endpoint(&active));
}

inline bool DatScene::read_event() {
    DAT_EVENT event{};
    if (dat_evd_dequeue(events, &event) != DAT_SUCCESS) {
        return false;
    }
    switch (event.event_number) {
    case DAT_CONNECTION_REQUEST_EVENT: {
        const DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
        DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
        if (make_endpoint(&ep) != DAT_SUCCESS || dat_cr_accept(cr, ep, 0, nullptr) != DAT_SUCCESS) {
            cr_reject(cr);
            if (ep != DAT_HANDLE_NULL) {
                dat_ep_free(ep);
            }
        } else if (passive == DAT_HANDLE_NULL) {
            passive = ep;
        }
        break;
    }
    case DAT_CONNECTION_EVENT_ESTABLISHED:
        ++connected;
        break;
    default:
        ++ended;
    }
    return true;
}

inline void DatScene::connect() {
    DAT_MUST(begin_connect(active));
    await("a connection", [&] {
        read_event();
        return connected == 2;
    });
}

// Over TCP and over shared memory, each in a process of its own. What a program returns.
inline int run_over_links(void (*run)(const char* link)) {
    setenv("FI_DAT_TRANSPORT", "soft", 1);
    for (const char* link : {"tcp", "shm"}) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("FI_DAT_SHM", std::string(link) == "shm" ? "1" : "0", 1);
            run(link);
            std::exit(0);
        }
        int status = 0;
        DAT_REQUIRE(child > 0 && waitpid(child, &status, 0) == child, "no child process");
        if (status != 0) {
            std::fprintf(stderr, "FAILED over %s: %s %d\n", link,
                         WIFSIGNALED(status) ? "signal" : "exit status",
                         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            return 1;
        }
        std::printf("ok: %s\n", link);
        std::fflush(stdout);
    }
    return 0;
}

} // namespace dat::test

#endif
