/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A server with more clients than endpoints. It sleeps on one notification object, and uses an
 * endpoint again as soon as its connection has ended: behind what is flushed it posts a
 * marker, and resets the endpoint when that has come back (the marker rule). Requests wait
 * until an endpoint is free.
 */
#include "sample.h"

#include <string.h>

enum {
    ENDPOINTS = 8, /* of the server */
    CLIENTS = 20,  /* endpoints of the client */
    ROUNDS = 4,    /* connections of each */
    RECEIVES = 3,  /* posted for a connection */
    SIZE = 64
};

/* In place of a number of a receive or request. */
static const DAT_UINT64 kMarker = ~(DAT_UINT64)0;

/* An endpoint; its number is its context. */
struct slot {
    DAT_EP_HANDLE ep;
    int markers; /* that have not come back */
    int in_use;
};

/* --- server ------------------------------------------------------------------------ */

static struct {
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE requests;
    DAT_EVD_HANDLE conn;
    DAT_EVD_HANDLE recv;
    DAT_EVD_HANDLE request;
    struct slot slots[ENDPOINTS];
    struct memory memory; /* of each endpoint: receives, then a reply */
    DAT_CR_HANDLE waiting[CLIENTS];
    int waiting_count;
    int served;
} my;

static size_t place_of(size_t slot, size_t number) {
    return (slot * (RECEIVES + 1) + number) * SIZE;
}

static struct slot* slot_of(DAT_EP_HANDLE ep) {
    DAT_CONTEXT context;
    MUST(dat_get_consumer_context(ep, &context));
    return &my.slots[context.as_64];
}

static size_t index_of(const struct slot* slot) { return (size_t)(slot - my.slots); }

/* Gives free endpoints to those that wait. */
static void accept_waiting(void) {
    size_t i;
    for (i = 0; i < ENDPOINTS && my.waiting_count > 0; ++i) {
        struct slot* const slot = &my.slots[i];
        DAT_UINT64 n;
        if (slot->in_use) {
            continue;
        }
        slot->in_use = 1;
        for (n = 0; n < RECEIVES; ++n) {
            post_recv(slot->ep, piece_of(&my.memory, place_of(i, n), SIZE), n);
        }
        MUST(dat_cr_accept(my.waiting[--my.waiting_count], slot->ep, 0, NULL));
    }
}

/* The connection is over: what comes before the markers is all that there is of it. */
static void post_markers(struct slot* slot) {
    CHECK(state_of(slot->ep) == DAT_EP_STATE_DISCONNECTED);
    slot->markers = 2;
    post_recv(slot->ep, piece_of(&my.memory, place_of(index_of(slot), 0), SIZE), kMarker);
    post_send(slot->ep, piece_of(&my.memory, place_of(index_of(slot), 0), 1), kMarker,
              DAT_COMPLETION_DEFAULT_FLAG);
}

static void marker_came_back(struct slot* slot) {
    if (--slot->markers > 0) {
        return;
    }
    MUST(dat_ep_reset(slot->ep));
    CHECK(state_of(slot->ep) == DAT_EP_STATE_UNCONNECTED);
    slot->in_use = 0;
    ++my.served;
    accept_waiting();
}

/* Answers a message with itself. */
static void reply(struct slot* slot, DAT_UINT64 receive, DAT_VLEN length) {
    const size_t from = place_of(index_of(slot), receive);
    const size_t to = place_of(index_of(slot), RECEIVES);
    memcpy(my.memory.bytes + to, my.memory.bytes + from, length);
    post_send(slot->ep, piece_of(&my.memory, to, length), 0, DAT_COMPLETION_DEFAULT_FLAG);
}

static void handle(const DAT_EVENT* event) {
    const DAT_DTO_COMPLETION_EVENT_DATA* const dto = &event->event_data.dto_completion_event_data;
    switch (event->event_number) {
    case DAT_CONNECTION_REQUEST_EVENT:
        CHECK(my.waiting_count < CLIENTS);
        my.waiting[my.waiting_count++] = event->event_data.cr_arrival_event_data.cr_handle;
        accept_waiting();
        break;
    case DAT_CONNECTION_EVENT_ESTABLISHED:
        break;
    case DAT_CONNECTION_EVENT_DISCONNECTED:
        post_markers(slot_of(event->event_data.connect_event_data.ep_handle));
        break;
    case DAT_DTO_COMPLETION_EVENT:
        if (dto->user_cookie.as_64 == kMarker) {
            CHECK(dto->status == DAT_DTO_ERR_FLUSHED);
            marker_came_back(slot_of(dto->ep_handle));
        } else if (event->evd_handle == my.recv && dto->status == DAT_DTO_SUCCESS) {
            if (state_of(dto->ep_handle) == DAT_EP_STATE_CONNECTED) {
                reply(slot_of(dto->ep_handle), dto->user_cookie.as_64, dto->transfered_length);
            }
        }
        break;
    default:
        sample_fail("an event that nobody expects", __FILE__, __LINE__);
    }
}

static void serve(void) {
    while (my.served < CLIENTS * ROUNDS) {
        DAT_EVD_HANDLE evd;
        DAT_EVENT event;
        DAT_RETURN code;
        MUST(dat_cno_wait(my.cno, SOON, &evd));
        while ((code = dat_evd_dequeue(evd, &event)) == DAT_SUCCESS) {
            handle(&event);
        }
        CHECK(DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY);
    }
}

static void server(struct adapter* adapter) {
    DAT_OS_WAIT_PROXY_AGENT none;
    DAT_PSP_HANDLE psp;
    size_t i;
    memset(&none, 0, sizeof none);
    MUST(dat_cno_create(adapter->ia, none, &my.cno));
    my.requests = evd_create(adapter, DAT_EVD_CR_FLAG, CLIENTS, my.cno);
    my.conn = evd_create(adapter, DAT_EVD_CONNECTION_FLAG, 4 * ENDPOINTS, my.cno);
    my.recv = evd_create(adapter, DAT_EVD_DTO_FLAG, ENDPOINTS * (RECEIVES + 1), my.cno);
    my.request = evd_create(adapter, DAT_EVD_DTO_FLAG, ENDPOINTS * (RECEIVES + 1), my.cno);
    memory_create(adapter, ENDPOINTS * (RECEIVES + 1) * SIZE, &my.memory);
    for (i = 0; i < ENDPOINTS; ++i) {
        DAT_CONTEXT context;
        MUST(dat_ep_create(adapter->ia, adapter->pz, my.recv, my.request, my.conn, NULL,
                           &my.slots[i].ep));
        context.as_64 = i;
        MUST(dat_set_consumer_context(my.slots[i].ep, context));
    }
    psp = listen_on(adapter, my.requests);
    serve();
    MUST(dat_psp_free(psp));
    for (i = 0; i < ENDPOINTS; ++i) {
        MUST(dat_ep_free(my.slots[i].ep));
    }
    MUST(dat_evd_free(my.requests));
    MUST(dat_evd_free(my.conn));
    MUST(dat_evd_free(my.recv));
    MUST(dat_evd_free(my.request));
    MUST(dat_cno_free(my.cno));
    memory_free(&my.memory);
}

/* --- client ------------------------------------------------------------------------ */

struct caller {
    DAT_EP_HANDLE ep;
    int round;
};

static struct {
    struct adapter* adapter;
    DAT_EVD_HANDLE evd; /* of all streams */
    struct memory memory;
    struct caller callers[CLIENTS];
    int over;
} them;

static DAT_LMR_TRIPLET letter(size_t caller, size_t number) {
    return piece_of(&them.memory, (caller * 2 + number) * SIZE, SIZE);
}

static size_t caller_of(DAT_EP_HANDLE ep) {
    DAT_CONTEXT context;
    MUST(dat_get_consumer_context(ep, &context));
    return (size_t)context.as_64;
}

static void call(size_t caller) {
    post_recv(them.callers[caller].ep, letter(caller, 0), 0);
    connect_to(them.adapter, them.callers[caller].ep, "");
}

/* Every other connection ends abruptly. */
static void hang_up(size_t caller) {
    const struct caller* const one = &them.callers[caller];
    CHECK(memcmp(them.memory.bytes + caller * 2 * SIZE, them.memory.bytes + (caller * 2 + 1) * SIZE,
                 SIZE) == 0);
    MUST(dat_ep_disconnect(one->ep, ((size_t)one->round + caller) % 2 ? DAT_CLOSE_ABRUPT_FLAG
                                                                      : DAT_CLOSE_GRACEFUL_FLAG));
}

static void hear(const DAT_EVENT* event) {
    const DAT_DTO_COMPLETION_EVENT_DATA* const dto = &event->event_data.dto_completion_event_data;
    size_t caller;
    switch (event->event_number) {
    case DAT_CONNECTION_EVENT_ESTABLISHED:
        caller = caller_of(event->event_data.connect_event_data.ep_handle);
        memset(them.memory.bytes + (caller * 2 + 1) * SIZE,
               (int)(caller * ROUNDS) + them.callers[caller].round + 1, SIZE);
        post_send(them.callers[caller].ep, letter(caller, 1), 1, DAT_COMPLETION_SUPPRESS_FLAG);
        break;
    case DAT_CONNECTION_EVENT_DISCONNECTED:
        caller = caller_of(event->event_data.connect_event_data.ep_handle);
        post_recv(them.callers[caller].ep, letter(caller, 0), kMarker);
        break;
    case DAT_DTO_COMPLETION_EVENT:
        caller = caller_of(dto->ep_handle);
        if (dto->user_cookie.as_64 == 1) { /* an abrupt end overtook its confirmation */
            CHECK(dto->status == DAT_DTO_ERR_FLUSHED);
            break;
        }
        if (dto->user_cookie.as_64 != kMarker) {
            CHECK(dto->status == DAT_DTO_SUCCESS && dto->transfered_length == SIZE);
            hang_up(caller);
            break;
        }
        MUST(dat_ep_reset(them.callers[caller].ep));
        if (++them.callers[caller].round < ROUNDS) {
            call(caller);
        } else {
            ++them.over;
        }
        break;
    default:
        sample_fail("an event that nobody expects", __FILE__, __LINE__);
    }
}

static void client(struct adapter* adapter) {
    size_t i;
    them.adapter = adapter;
    them.evd = evd_create(adapter, DAT_EVD_DEFAULT_FLAG, 8 * CLIENTS, DAT_HANDLE_NULL);
    memory_create(adapter, 2 * CLIENTS * SIZE, &them.memory);
    for (i = 0; i < CLIENTS; ++i) {
        DAT_CONTEXT context;
        MUST(dat_ep_create(adapter->ia, adapter->pz, them.evd, them.evd, them.evd, NULL,
                           &them.callers[i].ep));
        context.as_64 = i;
        MUST(dat_set_consumer_context(them.callers[i].ep, context));
        call(i);
    }
    while (them.over < CLIENTS) {
        DAT_EVENT event;
        DAT_COUNT more;
        MUST(dat_evd_wait(them.evd, SOON, 1, &event, &more));
        hear(&event);
    }
    for (i = 0; i < CLIENTS; ++i) {
        MUST(dat_ep_free(them.callers[i].ep));
    }
    MUST(dat_evd_free(them.evd));
    memory_free(&them.memory);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
