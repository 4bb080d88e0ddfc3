// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Many event dispatchers on one adapter, and what sleeping costs.
#include "pair.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

using namespace dat::test;

namespace {

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

void connect(const Side& a, const Side& b, const Listener& listener) {
    EXPECT_OK(a.connect(listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    expect(b.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void wait_in_vain(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout) {
    DAT_EVENT event;
    DAT_COUNT more = 1;
    EXPECT_TYPE(dat_evd_wait(evd, timeout, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    cr_assert_eq(more, 0);
}

// A message from `a` wakes who sleeps on `b`'s EVD.
void wake(const Side& a, const Side& b, Memory& memory) {
    EXPECT_OK(b.receive(memory.at(64, 64), 1));
    std::thread sleeper([&] { expect_dto(b.recv, 1); });
    EXPECT_OK(a.send(memory.at(0, 8), 2));
    expect_dto(a.request, 2);
    sleeper.join();
}

double cpu_seconds_of_thread() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// How often threads of this process went to sleep.
long switches_of_all_threads() {
    long sum = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(thread.path() / "status");
        for (std::string word; status >> word;) {
            if (long count = 0; word == "voluntary_ctxt_switches:" && status >> count) {
                sum += count;
            }
        }
    }
    return sum;
}

} // namespace

// EVD-1, EVD-10, EVD-14: 1,002 of them, each of which somebody has slept on, cost no
// descriptor each, and wake who sleeps.
Test(shim_evd, a_thousand_and_two_of_one_adapter__all_can_be_waited_for) {
    Adapter adapter;
    Memory memory(adapter);
    const Listener listener(adapter);
    std::vector<std::unique_ptr<Side>> sides;
    sides.push_back(std::make_unique<Side>(adapter));
    wait_in_vain(sides.front()->recv, 1);
    const auto before = open_descriptors();
    while (sides.size() < 334) {
        sides.push_back(std::make_unique<Side>(adapter));
    }
    for (const auto& side : sides) {
        wait_in_vain(side->recv, 1);
        wait_in_vain(side->request, 1);
        wait_in_vain(side->conn, 1);
    }
    const auto grown = open_descriptors() - before;
    cr_assert_lt(grown, 20, "%td descriptors", grown);
    for (const std::size_t first : {std::size_t{0}, sides.size() / 2, sides.size() - 2}) {
        connect(*sides[first], *sides[first + 1], listener);
        wake(*sides[first], *sides[first + 1], memory);
    }
}

// EVD-10: and so do the library's own threads, which do not wake by the clock for long.
Test(shim_evd, who_waits__has_no_thread_that_wakes) {
    const Pair pair;
    const auto before = switches_of_all_threads();
    wait_in_vain(pair.a.recv, 1'000'000);
    const auto made = switches_of_all_threads() - before;
    cr_assert_lt(made, 120, "%ld times", made);
}

// EVD-10: who is blocked takes no processor time, also while there is a connection.
Test(shim_evd, who_waits__sleeps) {
    Pair pair;
    constexpr DAT_TIMEOUT kWhile = 400'000; // us
    const double before = cpu_seconds_of_thread();
    for (const DAT_EVD_HANDLE evd : {pair.a.recv, pair.a.conn, pair.b.request}) {
        wait_in_vain(evd, kWhile);
    }
    const double used = cpu_seconds_of_thread() - before;
    cr_assert_lt(used, 3 * kWhile / 1e6 / 10, "%f s", used);
}

// EVD-10, EVD-33: an EVD that has a queue more than when its waiter went to sleep.
Test(shim_evd, a_stream_that_comes_while_somebody_sleeps__wakes) {
    Adapter adapter;
    Memory memory(adapter);
    const Listener listener(adapter);
    const DAT_EVD_HANDLE evd =
        adapter.evd(static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG));
    std::thread sleeper([&] { expect(evd, DAT_CONNECTION_EVENT_ESTABLISHED); });
    DAT_EVENT event;
    while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE) { // EVD-17
        std::this_thread::yield();
    }
    Side b(adapter);
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    EXPECT_OK(dat_ep_create(adapter.ia, adapter.pz, evd, evd, evd, nullptr, &ep));
    EXPECT_OK(connect_to(ep, listener.qualifier));
    EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
    sleeper.join();
}

// EVD-10: who sleeps is woken by what comes on a connection that another thread has polled, and
// polls no more.
Test(shim_evd, another_thread_polls_and_stops__who_sleeps_is_woken) {
    Adapter near;
    Adapter far;
    Memory here(near);
    Memory there(far);
    const Side a(near);
    const Side b(far);
    connect(a, b, Listener(far));
    for (std::uint64_t round = 0; round < 20; ++round) {
        EXPECT_OK(a.receive(here.at(64, 64), round));
        std::thread sleeper([&] { expect_dto(a.recv, round); });
        DAT_EVENT event;
        while (DAT_GET_TYPE(dat_evd_dequeue(a.recv, &event)) != DAT_INVALID_STATE) { // EVD-17
            std::this_thread::yield();
        }
        DAT_LMR_TRIPLET into = here.at(128, 8);
        DAT_RMR_TRIPLET from = there.remote(0, 8);
        EXPECT_OK(dat_ep_post_rdma_read(a.ep, 1, &into, cookie_of(round), &from,
                                        DAT_COMPLETION_DEFAULT_FLAG));
        while (is_empty(a.request)) {
        }
        EXPECT_OK(b.send(there.at(0, 8), round));
        expect_dto(b.request, round);
        sleeper.join();
    }
}

// CNO-3, CNO-5: threads that sleep on one CNO each come back for an event of their own.
Test(shim_cno, two_threads_asleep__two_events_wake_both) {
    Pair pair;
    DAT_OS_WAIT_PROXY_AGENT none{nullptr, nullptr};
    DAT_CNO_HANDLE cno;
    EXPECT_OK(dat_cno_create(pair.adapter.ia, none, &cno));
    EXPECT_OK(dat_evd_modify_cno(pair.b.recv, cno));
    EXPECT_OK(dat_evd_modify_cno(pair.a.recv, cno));
    for (const Side* side : {&pair.a, &pair.b}) {
        EXPECT_OK(side->receive(pair.memory.at(64, 64), 1));
    }
    const auto sleep = [cno] {
        DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
        EXPECT_OK(dat_cno_wait(cno, kSoon, &evd));
    };
    std::thread one(sleep);
    std::thread two(sleep);
    EXPECT_OK(pair.a.send(pair.memory.at(0, 8), 2));
    EXPECT_OK(pair.b.send(pair.memory.at(0, 8), 2));
    one.join();
    two.join();
}
