/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages with private data, and how a connection ends. The client is turned away once, for
 * what it says of itself; comes back on the same endpoint, and ends gracefully: all that it
 * sent arrives. The second time it ends abruptly: what is outstanding is flushed.
 */
#include "sample.h"

#include <string.h>

enum { MESSAGES = 20, SIZE = 256 };

struct side {
    DAT_EVD_HANDLE recv;
    DAT_EVD_HANDLE request;
    DAT_EVD_HANDLE conn;
    DAT_EP_HANDLE ep;
    struct memory memory;
};

static void open_side(struct adapter* adapter, struct side* side) {
    side->recv = evd_create(adapter, DAT_EVD_DTO_FLAG, MESSAGES + 1, DAT_HANDLE_NULL);
    side->request = evd_create(adapter, DAT_EVD_DTO_FLAG, MESSAGES + 1, DAT_HANDLE_NULL);
    side->conn = evd_create(adapter, DAT_EVD_CONNECTION_FLAG, 8, DAT_HANDLE_NULL);
    MUST(dat_ep_create(adapter->ia, adapter->pz, side->recv, side->request, side->conn, NULL,
                       &side->ep));
    memory_create(adapter, MESSAGES * SIZE, &side->memory);
}

static void close_side(struct side* side) {
    MUST(dat_ep_free(side->ep));
    MUST(dat_evd_free(side->conn));
    MUST(dat_evd_free(side->request));
    MUST(dat_evd_free(side->recv));
    memory_free(&side->memory);
}

static void post_receives(struct side* side) {
    DAT_UINT64 i;
    for (i = 0; i < MESSAGES; ++i) {
        post_recv(side->ep, piece_of(&side->memory, i * SIZE, SIZE), i);
    }
}

/* Takes the next request; `greeting` is what its private data has to be. */
static DAT_CR_HANDLE next_request(DAT_EVD_HANDLE evd, DAT_PSP_HANDLE psp, const char* greeting) {
    DAT_EVENT event;
    DAT_CR_PARAM param;
    next_event(evd, DAT_CONNECTION_REQUEST_EVENT, &event);
    CHECK(event.event_data.cr_arrival_event_data.sp_handle.psp_handle == psp);
    MUST(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle, DAT_CR_FIELD_ALL, &param));
    CHECK(param.private_data_size == (DAT_COUNT)strlen(greeting));
    CHECK(memcmp(param.private_data, greeting, strlen(greeting)) == 0);
    return event.event_data.cr_arrival_event_data.cr_handle;
}

static void server(struct adapter* adapter) {
    const DAT_EVD_HANDLE requests = evd_create(adapter, DAT_EVD_CR_FLAG, 8, DAT_HANDLE_NULL);
    const DAT_PSP_HANDLE psp = listen_on(adapter, requests);
    struct side side;
    DAT_EVENT event;
    DAT_UINT64 i;
    char welcome[] = "welcome";
    open_side(adapter, &side);

    MUST(dat_cr_reject(next_request(requests, psp, "a stranger")));

    post_receives(&side);
    MUST(dat_cr_accept(next_request(requests, psp, "a friend"), side.ep, sizeof welcome, welcome));
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    for (i = 0; i < MESSAGES; ++i) {
        CHECK(next_dto(side.recv, DAT_DTO_SUCCESS) == i);
        CHECK(side.memory.bytes[i * SIZE] == (char)('a' + i));
    }
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    CHECK(state_of(side.ep) == DAT_EP_STATE_DISCONNECTED);
    MUST(dat_ep_reset(side.ep));

    post_receives(&side);
    MUST(dat_cr_accept(next_request(requests, psp, "a friend"), side.ep, 0, NULL));
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    post_send(side.ep, piece_of(&side.memory, 0, 1), 1, DAT_COMPLETION_DEFAULT_FLAG);
    CHECK(next_dto(side.request, DAT_DTO_SUCCESS) == 1);
    /* The client ends abruptly by this one, perhaps before its device has acknowledged it. */
    post_send(side.ep, piece_of(&side.memory, 0, 1), 2, DAT_COMPLETION_DEFAULT_FLAG);
    next_event(side.request, DAT_DTO_COMPLETION_EVENT, &event);
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    for (i = 0; i < MESSAGES; ++i) {
        CHECK(next_dto(side.recv, DAT_DTO_ERR_FLUSHED) == i);
    }
    close_side(&side);
    MUST(dat_psp_free(psp));
    MUST(dat_evd_free(requests));
}

static void client(struct adapter* adapter) {
    struct side side;
    DAT_EVENT event;
    const DAT_CONNECTION_EVENT_DATA* const told = &event.event_data.connect_event_data;
    DAT_UINT64 i;
    open_side(adapter, &side);

    connect_to(adapter, side.ep, "a stranger");
    next_event(side.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
    CHECK(told->ep_handle == side.ep);
    MUST(dat_ep_reset(side.ep));

    connect_to(adapter, side.ep, "a friend");
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    CHECK(told->private_data_size == sizeof "welcome");
    CHECK(strcmp(told->private_data, "welcome") == 0);
    for (i = 0; i < MESSAGES; ++i) {
        memset(side.memory.bytes + i * SIZE, (int)('a' + i), SIZE);
        post_send(side.ep, piece_of(&side.memory, i * SIZE, SIZE), i, DAT_COMPLETION_DEFAULT_FLAG);
    }
    /* It may be called at once: it waits for what was posted. */
    MUST(dat_ep_disconnect(side.ep, DAT_CLOSE_GRACEFUL_FLAG));
    for (i = 0; i < MESSAGES; ++i) {
        CHECK(next_dto(side.request, DAT_DTO_SUCCESS) == i);
    }
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    MUST(dat_ep_reset(side.ep));

    post_receives(&side);
    connect_to(adapter, side.ep, "a friend");
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    CHECK(told->private_data_size == 0);
    CHECK(next_dto(side.recv, DAT_DTO_SUCCESS) == 0);
    CHECK(next_dto(side.recv, DAT_DTO_SUCCESS) == 1);
    MUST(dat_ep_disconnect(side.ep, DAT_CLOSE_ABRUPT_FLAG));
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    for (i = 2; i < MESSAGES; ++i) {
        CHECK(next_dto(side.recv, DAT_DTO_ERR_FLUSHED) == i);
    }
    close_side(&side);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
