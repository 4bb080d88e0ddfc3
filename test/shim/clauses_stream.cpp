// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Event streams: what feeds a dispatcher, who takes from it, and threads.
#include "pair.h"

#include "dat-shim/room.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

using namespace dat::test;

namespace {

void post_software(DAT_EVD_HANDLE evd, std::uintptr_t number) {
    DAT_EVENT event{};
    event.event_number = DAT_SOFTWARE_EVENT;
    event.event_data.software_event_data.pointer = reinterpret_cast<DAT_PVOID>(number);
    EXPECT_OK(dat_evd_post_se(evd, &event));
}

DAT_CNO_HANDLE make_cno(const Adapter& adapter) {
    const DAT_OS_WAIT_PROXY_AGENT none{nullptr, nullptr};
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    EXPECT_OK(dat_cno_create(adapter.ia, none, &cno));
    return cno;
}

} // namespace

// EVD-6
Test(shim_stream, overlapping_dequeuers__take_each_event_once) {
    constexpr std::uintptr_t kEvents = 20'000;
    constexpr int kThreads = 3;
    Adapter adapter;
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG, kEvents);
    std::vector<std::uintptr_t> taken[kThreads];
    std::atomic<std::uintptr_t> left{kEvents};
    std::vector<std::thread> threads;
    for (auto& mine : taken) {
        threads.emplace_back([&] {
            DAT_EVENT event;
            while (left.load() > 0) {
                if (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
                    mine.push_back(reinterpret_cast<std::uintptr_t>(
                        event.event_data.software_event_data.pointer));
                    --left;
                }
            }
        });
    }
    for (std::uintptr_t i = 0; i < kEvents; ++i) {
        post_software(evd, i);
    }
    std::vector<std::uintptr_t> all;
    for (int i = 0; i < kThreads; ++i) {
        threads[static_cast<std::size_t>(i)].join();
        cr_assert(std::ranges::is_sorted(taken[i]), "EVD-5 for each of them");
        all.insert(all.end(), taken[i].begin(), taken[i].end());
    }
    std::ranges::sort(all);
    cr_assert_eq(all.size(), kEvents);
    for (std::uintptr_t i = 0; i < kEvents; ++i) {
        cr_assert_eq(all[i], i);
    }
}

// MT-1: whoever else dequeues does so between any two looks at what they have dequeued.
Test(shim_stream, room__is_counted_by_one_look_at_who_dequeues) {
    constexpr std::uint32_t kLimit = 8;
    for (const std::uint32_t posted : {0u, 5u, 8u, 0xffff'fffeu}) {
        for (std::uint32_t outstanding = 0; outstanding <= kLimit; ++outstanding) {
            std::uint32_t looks = 0;
            const auto dequeued = [&] { return posted - outstanding + looks++; };
            cr_assert_eq(dat::shim::room(posted, kLimit, dequeued), kLimit - outstanding);
            cr_assert_eq(looks, 1u);
        }
    }
}

// EVD-6, MT-1: in a queue that is kept full a slot is posted with again as soon as its event was
// taken, and not before.
Test(shim_stream, overlapping_dequeuers_of_writes_and_binds__take_each_once) {
    constexpr std::uint64_t kRequests = 50'000;
    constexpr int kThreads = 3;
    DAT_EP_ATTR attr{};
    attr.max_request_dtos = 8;
    attr.max_request_iov = attr.max_recv_dtos = attr.max_recv_iov = 1;
    attr.max_rdma_size = attr.max_message_size = 64;
    attr.max_rdma_write_iov = 1;
    Pair pair(&attr);
    DAT_RMR_HANDLE rmr;
    EXPECT_OK(dat_rmr_create(pair.adapter.pz, &rmr));
    std::vector<std::uint64_t> taken[kThreads];
    std::atomic<std::uint64_t> left{kRequests};
    std::vector<std::thread> threads;
    for (auto& mine : taken) {
        threads.emplace_back([&] {
            DAT_EVENT event;
            while (left.load() > 0) {
                if (dat_evd_dequeue(pair.a.request, &event) != DAT_SUCCESS) {
                    std::this_thread::yield();
                    continue;
                }
                const bool bound = event.event_number == DAT_RMR_BIND_COMPLETION_EVENT;
                mine.push_back(bound
                                   ? event.event_data.rmr_completion_event_data.user_cookie.as_64
                                   : event.event_data.dto_completion_event_data.user_cookie.as_64);
                cr_assert_eq(bound, mine.back() % 2 == 1, "event %#x of request %llu",
                             static_cast<unsigned>(event.event_number),
                             static_cast<unsigned long long>(mine.back()));
                --left;
            }
        });
    }
    DAT_LMR_TRIPLET piece = pair.memory.at(0, 8);
    const DAT_RMR_TRIPLET there = pair.memory.remote(64, 8);
    for (std::uint64_t i = 0; i < kRequests; ++i) {
        DAT_RETURN rc;
        do {
            if (i % 2 == 1) {
                DAT_RMR_COOKIE cookie;
                cookie.as_64 = i;
                DAT_RMR_CONTEXT context;
                rc = rmr_bind(rmr, pair.memory.lmr, piece, DAT_MEM_PRIV_REMOTE_READ_FLAG, pair.a.ep,
                              cookie, &context);
            } else {
                rc = dat_ep_post_rdma_write(pair.a.ep, 1, &piece, cookie_of(i), &there,
                                            DAT_COMPLETION_DEFAULT_FLAG);
            }
        } while (DAT_GET_TYPE(rc) == DAT_INSUFFICIENT_RESOURCES);
        EXPECT_OK(rc);
    }
    std::vector<std::uint64_t> all;
    for (int i = 0; i < kThreads; ++i) {
        threads[static_cast<std::size_t>(i)].join();
        all.insert(all.end(), taken[i].begin(), taken[i].end());
    }
    std::ranges::sort(all);
    cr_assert_eq(all.size(), kRequests);
    for (std::uint64_t i = 0; i < kRequests; ++i) {
        cr_assert_eq(all[i], i);
    }
}

// EVD-18, EVD-30
Test(shim_stream, who_waits__comes_before_the_cno_and_is_woken_while_disabled) {
    Adapter adapter;
    const DAT_CNO_HANDLE cno = make_cno(adapter);
    const DAT_EVD_HANDLE evd = adapter.evd(DAT_EVD_SOFTWARE_FLAG, 8, cno);
    for (const bool disabled : {false, true}) {
        if (disabled) {
            EXPECT_OK(dat_evd_disable(evd));
        }
        std::thread waiter([evd] {
            DAT_EVENT event;
            DAT_COUNT more;
            EXPECT_OK(dat_evd_wait(evd, kSoon, 2, &event, &more));
            cr_assert_eq(more, 1);
        });
        DAT_EVENT event;
        while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE) { // EVD-17
            std::this_thread::yield();
        }
        post_software(evd, 1); // one is not enough for the waiter
        DAT_EVD_HANDLE triggered = evd;
        EXPECT_TYPE(dat_cno_wait(cno, kBriefly, &triggered), DAT_QUEUE_EMPTY);
        post_software(evd, 2);
        waiter.join();
        if (!disabled) { // what the waiter left is the CNO's again
            EXPECT_OK(dat_cno_wait(cno, kSoon, &triggered));
            cr_assert_eq(triggered, evd);
        }
        EXPECT_OK(dat_evd_dequeue(evd, &event));
    }
}

// EVD-35, OBJ-5
Test(shim_stream, a_dispatcher__is_freed_with_its_events_once_nothing_feeds_it) {
    Adapter adapter;
    const DAT_EVD_HANDLE software = adapter.evd(DAT_EVD_SOFTWARE_FLAG);
    post_software(software, 1);
    EXPECT_OK(dat_evd_free(software)); // the event is lost

    Side side(adapter);
    for (const DAT_EVD_HANDLE evd : {side.recv, side.request, side.conn}) {
        EXPECT_TYPE(dat_evd_free(evd), DAT_INVALID_STATE);
    }
    EXPECT_OK(dat_ep_free(side.ep));
    for (const DAT_EVD_HANDLE evd : {side.recv, side.request, side.conn}) {
        EXPECT_OK(dat_evd_free(evd));
    }

    const Listener listener(adapter);
    EXPECT_TYPE(dat_evd_free(listener.evd), DAT_INVALID_STATE);
    EXPECT_OK(dat_psp_free(listener.psp));
    EXPECT_OK(dat_evd_free(listener.evd));

    EXPECT_TYPE(dat_evd_free(adapter.async), DAT_INVALID_STATE); // until the IA is closed
}

// EVD-35: the asynchronous dispatcher that the IA made goes with it.
Test(shim_stream, the_asynchronous_dispatcher__ends_with_the_ia) {
    std::string name = place().adapter;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    EXPECT_OK(dat_ia_open(name.data(), 8, &async, &ia));
    EXPECT_OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    DAT_EVENT event;
    EXPECT_TYPE(dat_evd_dequeue(async, &event), DAT_INVALID_HANDLE);
}

// EVD-41: the values of the header; watermarks and EP_BROKEN are raised by other tests.
Test(shim_stream, reasons_of_asynchronous_events__have_their_values) {
    cr_assert_eq(DAT_IA_CATASTROPHIC_ERROR, 0);
    cr_assert_eq(DAT_IA_OTHER_ERROR, 1);
    cr_assert_eq(DAT_EP_TRANSFER_TO_ERROR, 0);
    cr_assert_eq(DAT_EP_OTHER_ERROR, 1);
    cr_assert_eq(DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT, 2);
    cr_assert_eq(DAT_EVD_OVERFLOW_ERROR, 0);
    cr_assert_eq(DAT_EVD_OTHER_ERROR, 1);
    cr_assert_eq(DAT_SRQ_TRANSFER_TO_ERROR, 0);
    cr_assert_eq(DAT_SRQ_OTHER_ERROR, 1);
    cr_assert_eq(DAT_SRQ_LOW_WATERMARK_EVENT, 2);
    cr_assert_eq(DAT_LMR_OTHER_ERROR, 0);
    cr_assert_eq(DAT_RMR_OTHER_ERROR, 0);
    cr_assert_eq(DAT_PZ_OTHER_ERROR, 0);
}

// MT-4: threads that share nothing but the adapter, against each other and the progress
// thread.
Test(shim_stream, threads__may_each_use_objects_of_their_own) {
    constexpr std::uint64_t kRounds = 10;
    Adapter adapter;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            const Listener listener(adapter);
            Memory memory(adapter);
            for (std::uint64_t round = 0; round < kRounds; ++round) {
                const Side a(adapter);
                const Side b(adapter);
                EXPECT_OK(b.receive(memory.at(64, 64), round));
                EXPECT_OK(a.connect(listener.qualifier));
                EXPECT_OK(dat_cr_accept(listener.request(), b.ep, 0, nullptr));
                expect(a.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
                EXPECT_OK(a.send(memory.at(0, 8), round));
                expect_dto(a.request, round);
                expect_dto(b.recv, round);
                EXPECT_OK(dat_ep_disconnect(a.ep, DAT_CLOSE_GRACEFUL_FLAG));
                expect(a.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
                EXPECT_OK(dat_ep_free(a.ep));
                EXPECT_OK(dat_ep_free(b.ep));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}
