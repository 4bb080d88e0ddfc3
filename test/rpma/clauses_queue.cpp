// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Completion queues, their channels and descriptors, and what a connection is made with.
#include "suite.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/epoll.h>
#include <thread>
#include <unistd.h>

using namespace dat::test;

namespace {

// A configuration with a receive queue of its own, and one channel for both or one each.
void with_rcq(const Config& config, bool shared) {
    NEED(rpma_conn_cfg_set_rcq_size(config, 10));
    NEED(rpma_conn_cfg_set_compl_channel(config, shared));
}

int channel_of(const Conn& conn) {
    int fd = -1;
    NEED(rpma_conn_get_compl_fd(conn, &fd));
    return fd;
}

void send(const Conn& from, const Region& memory, std::uintptr_t context) {
    EXPECT_OK(rpma_send(from, memory.mr, 0, 16, RPMA_F_COMPLETION_ALWAYS, context_of(context)));
}

// Waits on the channel of both queues until that one has a completion, and takes it.
ibv_wc next_through(const Conn& conn, rpma_cq* wanted, bool wanted_is_rcq) {
    for (;;) {
        ibv_wc wc;
        const int got = rpma_cq_get_wc(wanted, 1, &wc, nullptr);
        if (got == 0) {
            return wc;
        }
        need(got == RPMA_E_NO_COMPLETION, rpma_err_2str(got));
        need(readable(channel_of(conn), kSoon), "no completion came");
        rpma_cq* cq = nullptr;
        bool is_rcq = !wanted_is_rcq;
        NEED(rpma_conn_wait(conn, 0, &cq, &is_rcq));
        need((cq == wanted) == (is_rcq == wanted_is_rcq), "cq and is_rcq disagree");
    }
}

} // namespace

// ---- RP-13: what is made when nothing is said -----------------------------------

// RP-13.
RPMA_TEST(rpma_defaults, of_a_configuration__are_those_of_the_manual) {
    Config config;
    int timeout = 0;
    std::uint32_t size = 0;
    bool shared = true;
    rpma_srq* srq = reinterpret_cast<rpma_srq*>(&size);
    EXPECT_OK(rpma_conn_cfg_get_timeout(config, &timeout));
    cr_assert_eq(timeout, 1000);
    EXPECT_OK(rpma_conn_cfg_get_cq_size(config, &size));
    cr_assert_eq(size, 10);
    EXPECT_OK(rpma_conn_cfg_get_sq_size(config, &size));
    cr_assert_eq(size, 10);
    EXPECT_OK(rpma_conn_cfg_get_rq_size(config, &size));
    cr_assert_eq(size, 10);
    EXPECT_OK(rpma_conn_cfg_get_rcq_size(config, &size));
    cr_assert_eq(size, 0);
    EXPECT_OK(rpma_conn_cfg_get_compl_channel(config, &shared));
    cr_assert_not(shared);
    EXPECT_OK(rpma_conn_cfg_get_srq(config, &srq));
    cr_assert_null(srq);
    rpma_srq_cfg* of_srq = nullptr;
    EXPECT_OK(rpma_srq_cfg_new(&of_srq));
    EXPECT_OK(rpma_srq_cfg_get_rq_size(of_srq, &size));
    cr_assert_eq(size, 20);
    EXPECT_OK(rpma_srq_cfg_get_rcq_size(of_srq, &size));
    cr_assert_eq(size, 20);
    EXPECT_OK(rpma_srq_cfg_delete(&of_srq));
}

// RP-13: without a receive queue of its own, receives complete in the main one.
RPMA_TEST(rpma_defaults, without_rcq__receives_land_in_the_main_queue) {
    Pair pair;
    cr_assert_null(pair.b.rcq());
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(5)));
    send(pair.a, pair.mine, 4);
    expect_wc(pair.a.cq(), IBV_WC_SEND, 4);
    expect_wc(pair.b.cq(), IBV_WC_RECV, 5);
}

// RP-13: that many may be posted with the defaults.
RPMA_TEST(rpma_defaults, ten_of_each__can_be_posted) {
    Pair pair;
    for (std::uintptr_t i = 0; i < 10; ++i) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, i * 16, 16, context_of(100 + i)));
    }
    for (std::uintptr_t i = 0; i < 10; ++i) {
        send(pair.a, pair.mine, i);
    }
    for (std::uintptr_t i = 0; i < 10; ++i) {
        expect_wc(pair.a.cq(), IBV_WC_SEND, i);
        expect_wc(pair.b.cq(), IBV_WC_RECV, 100 + i);
    }
    cr_assert(is_empty(pair.a.cq()));
    cr_assert(is_empty(pair.b.cq()));
}

// RP-13.
RPMA_TEST(rpma_defaults, srq_with_rcq_and_a_shared_channel__is_refused) {
    Peer peer;
    Listener listener(peer);
    SharedReceives with_queue(peer);
    SharedReceives without_queue(peer, 20, 0);
    cr_assert_not_null(with_queue.rcq());
    cr_assert_null(without_queue.rcq());
    Config config;
    NEED(rpma_conn_cfg_set_srq(config, with_queue.it));
    NEED(rpma_conn_cfg_set_compl_channel(config, true));
    rpma_conn_req* request = nullptr;
    EXPECT_INVAL(rpma_conn_req_new(peer, place().address, listener.port.c_str(), config, &request));
    cr_assert_null(request);
    NEED(rpma_conn_cfg_set_srq(config, without_queue.it));
    request = request_to(peer, listener.port, config);
    EXPECT_OK(rpma_conn_req_delete(&request));
}

// ---- RP-14: arming --------------------------------------------------------------

// RP-14: armed from the beginning, and again by each wait. None is lost of many, whatever
// the moment that one comes.
RPMA_TEST(rpma_arming, many_completions_by_epoll__none_is_lost) {
    constexpr int kRounds = 1000;
    Pair pair;
    std::thread sender([&] {
        for (std::uintptr_t i = 0; i < kRounds; ++i) {
            NEED(rpma_send(pair.a, pair.mine.mr, 0, 16, RPMA_F_COMPLETION_ALWAYS, context_of(i)));
            const ibv_wc wc = next_of(pair.a.cq());
            need(wc.status == IBV_WC_SUCCESS && wc.wr_id == i, "a send failed");
        }
    });
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    need(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd_of(pair.b.cq()), &event) == 0, "epoll");
    for (std::uintptr_t i = 0; i < 4; ++i) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, i * 16, 16, nullptr));
    }
    int count = 0;
    while (count < kRounds) {
        need(epoll_wait(epoll, &event, 1, kSoon) == 1, "a wake-up was lost");
        EXPECT_OK(rpma_cq_wait(pair.b.cq()));
        ibv_wc wc;
        while (rpma_cq_get_wc(pair.b.cq(), 1, &wc, nullptr) == 0) {
            cr_assert_eq(wc.status, IBV_WC_SUCCESS);
            ++count;
            if (count <= kRounds - 4) {
                EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, nullptr));
            }
        }
    }
    cr_assert_eq(count, kRounds);
    sender.join();
    close(epoll);
}

// RP-14: what comes in the moment in which a wait is about to sleep is there when it returns.
RPMA_TEST(rpma_arming, completions_that_race_with_the_wait__are_there) {
    constexpr int kRounds = 2000;
    Pair pair;
    for (int i = 0; i < kRounds; ++i) {
        EXPECT_OK(rpma_write(pair.a, pair.theirs.remote, 0, pair.mine.mr, 0, 4096,
                             RPMA_F_COMPLETION_ALWAYS, nullptr));
        EXPECT_OK(rpma_cq_wait(pair.a.cq()));
        expect_wc(pair.a.cq(), IBV_WC_RDMA_WRITE, 0);
    }
}

// RP-14: what came before anybody asked for the descriptor can be seen by it.
RPMA_TEST(rpma_arming, of_a_new_queue__is_there) {
    Pair pair;
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(1)));
    send(pair.a, pair.mine, 2);
    cr_assert(readable(fd_of(pair.b.cq()), kSoon));
    cr_assert(readable(fd_of(pair.a.cq()), kSoon));
    EXPECT_OK(rpma_cq_wait(pair.b.cq()));
    expect_wc(pair.b.cq(), IBV_WC_RECV, 1);
}

// RP-14: the descriptor told of a completion that was taken without a wait. Whoever sees it
// readable and waits then is not to sleep for the next one, which may never come.
RPMA_TEST(rpma_arming, of_what_was_taken_unwaited__does_not_make_the_wait_sleep) {
    Pair pair;
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(1)));
    send(pair.a, pair.mine, 2);
    cr_assert(readable(fd_of(pair.b.cq()), kSoon));
    ibv_wc wc{};
    EXPECT_OK(rpma_cq_get_wc(pair.b.cq(), 1, &wc, nullptr));
    if (readable(fd_of(pair.b.cq()), 0)) {
        EXPECT_OK(rpma_cq_wait(pair.b.cq()));
    }
    cr_assert_eq(rpma_cq_get_wc(pair.b.cq(), 1, &wc, nullptr), RPMA_E_NO_COMPLETION);
    cr_assert_not(readable(fd_of(pair.b.cq()), 0));
}

// RP-16: who waits and takes the one that came need not ask for another: nothing is left to be
// seen by poll(2), and what the other queue of the channel has is.
RPMA_TEST(rpma_arming, of_the_last_that_is_taken__is_over) {
    Config config;
    with_rcq(config, true);
    Pair pair(config, config);
    const int fd = channel_of(pair.b);
    ibv_wc wc{};
    bool is_rcq = false;
    rpma_cq* cq = nullptr;
    for (int i = 0; i < 3; ++i) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(1)));
        send(pair.a, pair.mine, 2);
        EXPECT_OK(rpma_conn_wait(pair.b, 0, &cq, &is_rcq));
        cr_assert(is_rcq);
        if (i == 1) { // the main queue is empty, and is asked first
            cr_assert_eq(rpma_cq_get_wc(pair.b.cq(), 1, &wc, nullptr), RPMA_E_NO_COMPLETION);
            cr_assert(readable(fd, 0));
        }
        EXPECT_OK(rpma_cq_get_wc(cq, 1, &wc, nullptr));
        cr_assert_not(readable(fd, 0));
        EXPECT_OK(rpma_write(pair.b, pair.mine.remote, 0, pair.theirs.mr, 0, 16,
                             RPMA_F_COMPLETION_ALWAYS, nullptr));
        EXPECT_OK(rpma_conn_wait(pair.b, 0, &cq, &is_rcq));
        cr_assert_not(is_rcq);
        EXPECT_OK(rpma_cq_get_wc(cq, 1, &wc, nullptr));
        cr_assert_not(readable(fd, 0));
    }
}

// ---- RP-15: whose channel it is ---------------------------------------------------

// RP-15.
RPMA_TEST(rpma_channel, waits_of_the_wrong_kind__are_refused) {
    Config config;
    with_rcq(config, true);
    Pair pair(config);
    int fd = -7;
    rpma_cq* cq = nullptr;
    bool is_rcq = false;
    EXPECT_RESULT(rpma_cq_wait(pair.a.cq()), RPMA_E_SHARED_CHANNEL);
    EXPECT_RESULT(rpma_cq_wait(pair.a.rcq()), RPMA_E_SHARED_CHANNEL);
    EXPECT_RESULT(rpma_conn_wait(pair.b, 0, &cq, &is_rcq), RPMA_E_NOT_SHARED_CHNL);
    EXPECT_RESULT(rpma_conn_get_compl_fd(pair.b, &fd), RPMA_E_NOT_SHARED_CHNL);
    cr_assert_eq(fd, -7);
    cr_assert_null(cq);
}

// RP-15.
RPMA_TEST(rpma_channel, nothing_there_and_no_blocking__says_so) {
    Config config;
    with_rcq(config, true);
    Pair pair(config);
    rpma_cq* cq = nullptr;
    set_nonblocking(channel_of(pair.a));
    EXPECT_RESULT(rpma_conn_wait(pair.a, 0, &cq, nullptr), RPMA_E_NO_COMPLETION);
    set_nonblocking(fd_of(pair.b.cq()));
    EXPECT_RESULT(rpma_cq_wait(pair.b.cq()), RPMA_E_NO_COMPLETION);
    ibv_wc wc;
    EXPECT_RESULT(rpma_cq_get_wc(pair.b.cq(), 1, &wc, nullptr), RPMA_E_NO_COMPLETION);
}

// RP-15: the wait says which of both queues it was.
RPMA_TEST(rpma_channel, shared_by_both_queues__tells_them_apart) {
    Config config;
    with_rcq(config, true);
    Pair pair(config, config);
    cr_assert_neq(pair.a.rcq(), pair.a.cq());
    for (std::uintptr_t i = 0; i < 20; ++i) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(i)));
        send(pair.a, pair.mine, 50 + i);
        const ibv_wc sent = next_through(pair.a, pair.a.cq(), false);
        cr_assert_eq(sent.status, IBV_WC_SUCCESS);
        cr_assert_eq(sent.wr_id, 50 + i);
        const ibv_wc received = next_through(pair.b, pair.b.rcq(), true);
        cr_assert_eq(received.opcode, IBV_WC_RECV);
        cr_assert_eq(received.wr_id, i);
    }
    cr_assert(is_empty(pair.a.rcq()));
    cr_assert(is_empty(pair.b.cq()));
}

// RP-15: each queue has its own channel where none is shared.
RPMA_TEST(rpma_channel, of_a_queue_alone__says_nothing_of_the_other) {
    Config config;
    with_rcq(config, false);
    Pair pair(config, config);
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(1)));
    send(pair.a, pair.mine, 2);
    expect_wc(pair.b.rcq(), IBV_WC_RECV, 1);
    expect_wc(pair.a.cq(), IBV_WC_SEND, 2);
    cr_assert_not(readable(fd_of(pair.b.cq()), kBriefly));
    cr_assert_not(readable(fd_of(pair.a.rcq()), kBriefly));
}

// ---- RP-16: descriptors ------------------------------------------------------------

// RP-16.
RPMA_TEST(rpma_descriptor, of_a_queue__is_readable_when_there_is_something) {
    Pair pair;
    const int here = fd_of(pair.a.cq());
    const int there = fd_of(pair.b.cq());
    for (std::uintptr_t i = 0; i < 10; ++i) {
        cr_assert_not(readable(here, 0));
        cr_assert_not(readable(there, 0));
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(i)));
        send(pair.a, pair.mine, i);
        cr_assert(readable(here, kSoon));
        cr_assert(readable(there, kSoon));
        EXPECT_OK(rpma_cq_wait(pair.a.cq()));
        EXPECT_OK(rpma_cq_wait(pair.b.cq()));
        expect_wc(pair.a.cq(), IBV_WC_SEND, i);
        expect_wc(pair.b.cq(), IBV_WC_RECV, i);
        cr_assert(is_empty(pair.a.cq()));
        cr_assert(is_empty(pair.b.cq()));
    }
}

// RP-16: of events and requests as well.
RPMA_TEST(rpma_descriptor, of_events__is_readable_when_there_is_one) {
    Peer peer;
    Listener listener(peer);
    Conn a;
    Conn b;
    cr_assert_not(readable(listener.fd(), 0));
    ask(a, peer, listener.port);
    cr_assert(readable(listener.fd(), kSoon));
    rpma_conn_req* request = listener.request();
    cr_assert_not(readable(listener.fd(), 0));
    answer(b, request);
    cr_assert(readable(a.event_fd(), kSoon));
    expect_event(a, RPMA_CONN_ESTABLISHED);
    cr_assert_not(readable(a.event_fd(), 0));
    expect_event(b, RPMA_CONN_ESTABLISHED);
    cr_assert_not(readable(b.event_fd(), 0));
    EXPECT_OK(rpma_conn_disconnect(a));
    cr_assert(readable(b.event_fd(), kSoon));
    expect_event(b, RPMA_CONN_CLOSED);
    cr_assert_not(readable(b.event_fd(), 0));
}

// RP-16: each connection's descriptors are its own.
RPMA_TEST(rpma_descriptor, of_each_connection__are_its_own) {
    Peer peer;
    Listener listener(peer);
    std::array<Conn, 6> ours;
    std::array<Conn, 6> theirs;
    for (std::size_t i = 0; i < ours.size(); ++i) {
        ask(ours[i], peer, listener.port);
        answer(theirs[i], listener.request());
        expect_event(ours[i], RPMA_CONN_ESTABLISHED);
        expect_event(theirs[i], RPMA_CONN_ESTABLISHED);
    }
    EXPECT_OK(rpma_conn_disconnect(ours[3]));
    cr_assert(readable(theirs[3].event_fd(), kSoon));
    for (std::size_t i = 0; i < ours.size(); ++i) {
        cr_assert_eq(readable(theirs[i].event_fd(), 0), i == 3);
        cr_assert_not(readable(fd_of(theirs[i].cq()), 0));
    }
}

// RP-16: who sleeps in a wait is woken.
RPMA_TEST(rpma_descriptor, cq_wait_without_a_poll__waits) {
    Pair pair;
    EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(9)));
    std::thread receiver([&] {
        NEED(rpma_cq_wait(pair.b.cq()));
        ibv_wc wc;
        NEED(rpma_cq_get_wc(pair.b.cq(), 1, &wc, nullptr));
        need(wc.wr_id == 9 && wc.status == IBV_WC_SUCCESS, "another completion");
    });
    send(pair.a, pair.mine, 8);
    expect_wc(pair.a.cq(), IBV_WC_SEND, 8);
    receiver.join();
}

// RP-16: several completions at once.
RPMA_TEST(rpma_descriptor, get_wc_of_several__gives_what_is_there) {
    Pair pair;
    for (std::uintptr_t i = 0; i < 6; ++i) {
        EXPECT_OK(rpma_recv(pair.b, pair.theirs.mr, 0, 16, context_of(i)));
    }
    for (std::uintptr_t i = 0; i < 6; ++i) {
        send(pair.a, pair.mine, i);
    }
    std::uint64_t next = 0;
    while (next < 6) {
        std::array<ibv_wc, 4> wc;
        int got = 0;
        const int result = rpma_cq_get_wc(pair.b.cq(), 4, wc.data(), &got);
        if (result == RPMA_E_NO_COMPLETION) {
            cr_assert(readable(fd_of(pair.b.cq()), kSoon));
            EXPECT_OK(rpma_cq_wait(pair.b.cq()));
            continue;
        }
        cr_assert_eq(result, 0);
        cr_assert(got >= 1 && got <= 4);
        for (int i = 0; i < got; ++i) {
            cr_assert_eq(wc[static_cast<std::size_t>(i)].wr_id, next);
            ++next;
        }
    }
}

// Without this it would be readable for ever, and nothing would ever be there.
RPMA_TEST(rpma_descriptor, that_the_program_replaced__is_an_error_for_who_waits) {
    const Pair pair;
    const int other = open("/dev/null", O_RDWR | O_CLOEXEC);
    need(other >= 0, "/dev/null");
    for (const int fd : {pair.a.event_fd(), fd_of(pair.a.cq()), pair.listener.fd()}) {
        need(dup2(other, fd) == fd, "dup2");
    }
    close(other);
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    rpma_conn_req* request = nullptr;
    EXPECT_RESULT(rpma_conn_next_event(pair.a, &event), RPMA_E_PROVIDER);
    EXPECT_RESULT(rpma_cq_wait(pair.a.cq()), RPMA_E_PROVIDER);
    EXPECT_RESULT(rpma_ep_next_conn_req(pair.listener.it, nullptr, &request), RPMA_E_PROVIDER);
}
