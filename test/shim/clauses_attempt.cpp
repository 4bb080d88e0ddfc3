// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What comes of one attempt at a connection, and of what is late for it.
#include "pair.h"

using namespace dat::test;

namespace {

// One that asks and one that may answer.
struct Attempt {
    Adapter adapter;
    Memory memory{adapter};
    Side asks{adapter};
    Side answers{adapter};
    Listener listener{adapter};

    void nothing_more() const {
        DAT_EVENT event;
        DAT_COUNT more = 0;
        EXPECT_TYPE(dat_evd_wait(asks.conn, kBriefly, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
    }
};

} // namespace

// EP-30: one event tells what became of an attempt, and no other follows.
Test(shim_attempt, each_attempt__ends_in_one_event) {
    Attempt it;
    EXPECT_OK(it.asks.connect(it.listener.qualifier));
    EXPECT_OK(cr_reject(it.listener.request()));
    expect(it.asks.conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
    it.nothing_more();
    EXPECT_OK(dat_ep_reset(it.asks.ep));

    EXPECT_OK(it.asks.connect(it.listener.qualifier, kBriefly));
    const DAT_CR_HANDLE late = it.listener.request();
    expect(it.asks.conn, DAT_CONNECTION_EVENT_TIMED_OUT);
    it.nothing_more();
    EXPECT_OK(cr_reject(late));
    it.nothing_more();
    EXPECT_OK(dat_ep_reset(it.asks.ep));

    EXPECT_OK(it.asks.connect(it.listener.qualifier));
    EXPECT_OK(dat_cr_accept(it.listener.request(), it.answers.ep, 0, nullptr));
    expect(it.asks.conn, DAT_CONNECTION_EVENT_ESTABLISHED);
    it.nothing_more();
}

// EP-43, U-1: the kernel has no route to a broadcast address for a stream.
Test(shim_attempt, no_way_to_the_host__is_unreachable) {
    Attempt it;
    EXPECT_OK(it.asks.receive(it.memory.at(0, 8), 7));
    sockaddr_in address = address_of(place().unreachable);
    EXPECT_OK(dat_ep_connect(it.asks.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address),
                             it.listener.qualifier, kSoon, 0, nullptr, DAT_QOS_BEST_EFFORT,
                             DAT_CONNECT_DEFAULT_FLAG));
    expect(it.asks.conn, DAT_CONNECTION_EVENT_UNREACHABLE);
    expect_dto(it.asks.recv, 7, DAT_DTO_ERR_FLUSHED);
    cr_assert_eq(it.asks.state(), DAT_EP_STATE_DISCONNECTED);
}

// EP-46, FREE-3, CR-6
Test(shim_attempt, an_endpoint_that_is_freed__raises_nothing) {
    Attempt it;
    EXPECT_OK(it.asks.connect(it.listener.qualifier));
    const DAT_CR_HANDLE cr = it.listener.request();
    EXPECT_OK(dat_ep_free(it.asks.ep));
    EXPECT_OK(dat_cr_accept(cr, it.answers.ep, 0, nullptr));
    expect_accept_in_vain(it.answers.conn);
    it.nothing_more();
}

// EP-66: the answers to attempts that are over, in DISCONNECTED and in UNCONNECTED.
Test(shim_attempt, what_comes_late__changes_nothing) {
    for (const bool reset : {false, true}) {
        Attempt it;
        EXPECT_OK(it.asks.connect(it.listener.qualifier));
        const DAT_CR_HANDLE cr = it.listener.request();
        EXPECT_OK(dat_ep_disconnect(it.asks.ep, DAT_CLOSE_ABRUPT_FLAG));
        expect(it.asks.conn, DAT_CONNECTION_EVENT_DISCONNECTED);
        if (reset) {
            EXPECT_OK(dat_ep_reset(it.asks.ep));
        }
        EXPECT_OK(dat_cr_accept(cr, it.answers.ep, 0, nullptr));
        expect_accept_in_vain(it.answers.conn);
        it.nothing_more();
        cr_assert_eq(it.asks.state(), reset ? DAT_EP_STATE_UNCONNECTED : DAT_EP_STATE_DISCONNECTED);
    }
}
