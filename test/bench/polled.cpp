// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How long a write takes into a program that calls nothing and looks at its memory, between two
// IAs of one process. Nothing here decides whether a test passes.
//
//   polled POLLS PAUSE ROUNDS   before each write the target asks its EVD POLLS times, computes
//                               for PAUSE microseconds, and looks at its memory from then on; the
//                               write comes within the next millisecond
#include "dat_ends.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

// One end, with a word of memory.
struct End : bench::Ia {
    DAT_EVD_HANDLE transfers, connections;
    DAT_EP_HANDLE ep;
    alignas(64) std::atomic<std::int64_t> word{0};
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT context;
    DAT_RMR_CONTEXT at_peer;

    End() : transfers(evd(64, DAT_EVD_DTO_FLAG)), connections(evd(8, DAT_EVD_CONNECTION_FLAG)) {
        CHECK(dat_ep_create, ia, pz, transfers, transfers, connections, nullptr, &ep);
        DAT_REGION_DESCRIPTION region{};
        region.for_va = &word;
        CHECK(dat_lmr_create, ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof word, pz,
              DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &context, &at_peer, nullptr, nullptr);
    }

    void write_to(const End& target) {
        DAT_LMR_TRIPLET from{reinterpret_cast<std::uintptr_t>(&word), sizeof word, context};
        const DAT_RMR_TRIPLET to{reinterpret_cast<std::uintptr_t>(&target.word), sizeof word,
                                 target.at_peer};
        CHECK(dat_ep_post_rdma_write, ep, 1, &from, DAT_DTO_COOKIE{}, &to,
              DAT_COMPLETION_DEFAULT_FLAG);
        bench::wait_for(transfers);
    }
};

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
    bench::connect(source.ep, target, target.ep);
    bench::wait_for(source.connections);
    bench::wait_for(target.connections);
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
