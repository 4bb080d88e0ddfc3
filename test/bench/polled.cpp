// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How long a write takes into a program that calls nothing and looks at its memory, between two
// IAs of one process. Nothing here decides whether a test passes.
//
//   polled POLLS PAUSE ROUNDS   before each write the target asks its EVD POLLS times, computes
//                               for PAUSE microseconds, and looks at its memory from then on; the
//                               write comes within the next millisecond
//
// May include: dat headers, std.
#include <dat2/udat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <netinet/in.h>
#include <random>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr DAT_TIMEOUT kSoon = 60'000'000; // us; nothing here takes that long

void check(DAT_RETURN code, const char* call) {
    if (code != DAT_SUCCESS) {
        const char* major = "no code at all";
        const char* minor = "";
        dat_strerror(code, &major, &minor);
        std::fprintf(stderr, "polled: %s: %s %s\n", call, major, minor);
        std::exit(1);
    }
}
#define CHECK(function, ...) check(function(__VA_ARGS__), #function)

// One end, with a word of memory.
struct End {
    DAT_IA_HANDLE ia;
    DAT_PZ_HANDLE pz;
    DAT_EVD_HANDLE transfers, connections, requests;
    DAT_EP_HANDLE ep;
    alignas(64) std::atomic<std::int64_t> word{0};
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT at_peer;

    End() {
        char name[] = "lo";
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
        CHECK(dat_ia_open, name, 8, &async, &ia);
        CHECK(dat_pz_create, ia, &pz);
        CHECK(dat_evd_create, ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &transfers);
        CHECK(dat_evd_create, ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections);
        CHECK(dat_evd_create, ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests);
        CHECK(dat_ep_create, ia, pz, transfers, transfers, connections, nullptr, &ep);
        DAT_REGION_DESCRIPTION region{};
        region.for_va = &word;
        CHECK(dat_lmr_create, ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof word, pz,
              DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &context, &at_peer, nullptr, nullptr);
    }
    ~End() { dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG); }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    DAT_EVENT wait(DAT_EVD_HANDLE evd) const {
        DAT_EVENT event;
        DAT_COUNT more;
        CHECK(dat_evd_wait, evd, kSoon, 1, &event, &more);
        return event;
    }
    void write_to(const End& target) {
        DAT_LMR_TRIPLET from{reinterpret_cast<std::uintptr_t>(&word), sizeof word, context};
        const DAT_RMR_TRIPLET to{reinterpret_cast<std::uintptr_t>(&target.word), sizeof word,
                                 target.at_peer};
        CHECK(dat_ep_post_rdma_write, ep, 1, &from, DAT_DTO_COOKIE{}, &to,
              DAT_COMPLETION_DEFAULT_FLAG);
        wait(transfers);
    }
};

void connect(End& source, End& target) {
    DAT_CONN_QUAL qualifier = 0;
    DAT_PSP_HANDLE listener;
    CHECK(dat_psp_create_any, target.ia, &qualifier, target.requests, DAT_PSP_CONSUMER_FLAG,
          &listener);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(dat_ep_connect, source.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address), qualifier,
          kSoon, 0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
    const DAT_EVENT request = target.wait(target.requests);
    CHECK(dat_cr_accept, request.event_data.cr_arrival_event_data.cr_handle, target.ep, 0, nullptr);
    source.wait(source.connections);
    target.wait(target.connections);
}

std::int64_t now() { return Clock::now().time_since_epoch().count(); }

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fputs("usage: polled POLLS PAUSE ROUNDS\n", stderr);
        return 2;
    }
    const long polls = std::atol(argv[1]);
    const auto pause = std::chrono::microseconds(std::atol(argv[2]));
    const long rounds = std::max(1L, std::atol(argv[3]));
    End source;
    End target;
    connect(source, target);
    std::atomic<long> begun{0};
    std::thread writer([&] {
        std::minstd_rand dice(1);
        for (long round = 1; round <= rounds; ++round) {
            while (begun != round) {
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            }
            std::this_thread::sleep_for(std::chrono::microseconds(dice() % 1000));
            source.word = now();
            source.write_to(target);
        }
    });
    std::vector<double> took;
    for (long round = 1; round <= rounds; ++round) {
        DAT_EVENT event;
        for (long i = 0; i < polls; ++i) {
            dat_evd_dequeue(target.transfers, &event);
        }
        for (const auto end = Clock::now() + pause; Clock::now() < end;) {
        }
        const std::int64_t before = target.word;
        begun = round;
        while (target.word == before) {
        }
        took.push_back(Microseconds(Clock::duration(now() - target.word)).count());
    }
    writer.join();
    std::sort(took.begin(), took.end());
    const auto at = [&](double part) {
        return took[static_cast<std::size_t>(part * static_cast<double>(took.size() - 1))];
    };
    std::printf("us until a write was seen: median %.1f, 90%% %.1f, most %.1f\n", at(0.5), at(0.9),
                at(1));
    return 0;
}
