/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A server whose endpoints share their receive buffers. It gives buffers back only when the
 * low watermark says that few are left, all at once, and lets the client go on when there
 * are buffers for all that may come: an iWARP device ends a connection whose message finds
 * none. It is told of the watermark as
 * DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR with the reason DAT_SRQ_LOW_WATERMARK_EVENT, and of
 * the end of an endpoint, behind its last receive, as DAT_ASYNC_ERROR_EP_BROKEN.
 */
#include "sample.h"

#include <string.h>

enum {
    ENDPOINTS = 4,
    BUFFERS = 32,
    LOW = 16,       /* watermark */
    MESSAGES = 200, /* of each endpoint of the client */
    BURST = 4,      /* of each endpoint, before the client waits for leave to go on */
    SIZE = 128
};

struct letter {
    DAT_UINT64 sender;
    DAT_UINT64 number;
};

/* --- server ------------------------------------------------------------------------ */

static struct {
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE requests;
    DAT_EVD_HANDLE conn;
    DAT_EVD_HANDLE recv;
    DAT_EVD_HANDLE request;
    DAT_SRQ_HANDLE srq;
    DAT_EP_HANDLE eps[ENDPOINTS];
    struct memory memory;
    int accepted;
    int ended;    /* endpoints whose last receive came */
    int received; /* letters */
    int rounds;   /* of a burst from each endpoint, after which the client could go on */
    int refills;
    DAT_UINT64 spare[BUFFERS]; /* buffers that are not posted */
    int spare_count;
    int low;                    /* the watermark was reached */
    DAT_UINT64 from[ENDPOINTS]; /* letters of each sender */
} my;

static void refill(void) {
    while (my.spare_count > 0) {
        const DAT_UINT64 buffer = my.spare[--my.spare_count];
        DAT_LMR_TRIPLET piece = piece_of(&my.memory, buffer * SIZE, SIZE);
        DAT_DTO_COOKIE cookie;
        cookie.as_64 = buffer;
        MUST(dat_srq_post_recv(my.srq, 1, &piece, cookie));
    }
    /* It is armed for one event, which may come at once. */
    my.low = 0;
    MUST(dat_srq_set_lw(my.srq, LOW));
    ++my.refills;
}

static void read_letter(const DAT_DTO_COMPLETION_EVENT_DATA* dto) {
    const DAT_UINT64 buffer = dto->user_cookie.as_64;
    struct letter letter;
    if (dto->status == DAT_DTO_SUCCESS) {
        CHECK(dto->transfered_length == SIZE);
        memcpy(&letter, my.memory.bytes + buffer * SIZE, sizeof letter);
        CHECK(letter.sender < ENDPOINTS);
        /* Those of one connection come in the order in which they were sent. */
        CHECK(letter.number == my.from[letter.sender]++);
        ++my.received;
    }
    CHECK(my.spare_count < BUFFERS);
    my.spare[my.spare_count++] = buffer;
}

static void hear_of(const DAT_ASYNCH_ERROR_EVENT_DATA* said, DAT_EVENT_NUMBER number) {
    if (number == DAT_ASYNC_ERROR_EP_BROKEN) {
        ++my.ended;
        return;
    }
    CHECK(number == DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
    CHECK(said->dat_handle == my.srq && said->reason == DAT_SRQ_LOW_WATERMARK_EVENT);
    my.low = 1;
}

static void handle(const DAT_EVENT* event) {
    switch (event->event_number) {
    case DAT_CONNECTION_REQUEST_EVENT:
        CHECK(my.accepted < ENDPOINTS);
        MUST(dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle, my.eps[my.accepted++],
                           0, NULL));
        break;
    case DAT_CONNECTION_EVENT_ESTABLISHED:
    case DAT_CONNECTION_EVENT_DISCONNECTED:
        break;
    case DAT_DTO_COMPLETION_EVENT:
        read_letter(&event->event_data.dto_completion_event_data);
        break;
    default:
        hear_of(&event->event_data.asynch_error_event_data, event->event_number);
        break;
    }
}

static void open_endpoints(struct adapter* adapter) {
    DAT_SRQ_ATTR srq_attr;
    DAT_EP_ATTR attr;
    int i;
    srq_attr.max_recv_dtos = BUFFERS;
    srq_attr.max_recv_iov = 1;
    srq_attr.low_watermark = DAT_SRQ_LW_DEFAULT;
    MUST(dat_srq_create(adapter->ia, adapter->pz, &srq_attr, &my.srq));
    memset(&attr, 0, sizeof attr);
    attr.service_type = DAT_SERVICE_TYPE_RC;
    attr.max_request_dtos = 1;
    attr.max_request_iov = 1;
    for (i = 0; i < ENDPOINTS; ++i) {
        MUST(dat_ep_create_with_srq(adapter->ia, adapter->pz, my.recv, my.request, my.conn, my.srq,
                                    &attr, &my.eps[i]));
    }
    memory_create(adapter, BUFFERS * SIZE, &my.memory);
    for (i = 0; i < BUFFERS; ++i) {
        my.spare[my.spare_count++] = (DAT_UINT64)i;
    }
    refill();
}

/* The round has come, and there is room for another. */
static void let_go_on(void) {
    const int round = ENDPOINTS * BURST;
    if (my.received < (my.rounds + 1) * round || BUFFERS - my.spare_count < round) {
        return;
    }
    ++my.rounds;
    post_send(my.eps[0], piece_of(&my.memory, 0, 0), 0, DAT_COMPLETION_DEFAULT_FLAG);
    next_dto(my.request, DAT_DTO_SUCCESS);
}

static void serve(void) {
    while (my.ended < ENDPOINTS || my.received < ENDPOINTS * MESSAGES) {
        DAT_EVD_HANDLE evd;
        DAT_EVENT event;
        DAT_RETURN code;
        MUST(dat_cno_wait(my.cno, SOON, &evd));
        while ((code = dat_evd_dequeue(evd, &event)) == DAT_SUCCESS) {
            handle(&event);
        }
        CHECK(DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY);
        if (my.low && my.spare_count > 0) {
            refill();
        }
        let_go_on();
    }
}

static void server(struct adapter* adapter) {
    DAT_OS_WAIT_PROXY_AGENT none;
    DAT_SRQ_PARAM param;
    DAT_PSP_HANDLE psp;
    int i;
    memset(&none, 0, sizeof none);
    MUST(dat_cno_create(adapter->ia, none, &my.cno));
    MUST(dat_evd_modify_cno(adapter->async, my.cno));
    my.requests = evd_create(adapter, DAT_EVD_CR_FLAG, ENDPOINTS, my.cno);
    my.conn = evd_create(adapter, DAT_EVD_CONNECTION_FLAG, 4 * ENDPOINTS, my.cno);
    my.recv = evd_create(adapter, DAT_EVD_DTO_FLAG, BUFFERS, my.cno);
    my.request = evd_create(adapter, DAT_EVD_DTO_FLAG, ENDPOINTS, DAT_HANDLE_NULL);
    open_endpoints(adapter);
    psp = listen_on(adapter, my.requests);
    serve();
    /* More letters than buffers, and buffers came back only by the watermark. */
    CHECK(my.refills > ENDPOINTS * MESSAGES / BUFFERS);
    MUST(dat_srq_query(my.srq, DAT_SRQ_FIELD_ALL, &param));
    CHECK(param.srq_state == DAT_SRQ_STATE_OPERATIONAL);
    CHECK(param.available_dto_count + my.spare_count == BUFFERS);
    CHECK(param.outstanding_dto_count == param.available_dto_count);
    MUST(dat_psp_free(psp));
    for (i = 0; i < ENDPOINTS; ++i) {
        MUST(dat_ep_free(my.eps[i]));
    }
    MUST(dat_srq_free(my.srq));
    MUST(dat_evd_free(my.requests));
    MUST(dat_evd_free(my.conn));
    MUST(dat_evd_free(my.recv));
    MUST(dat_evd_free(my.request));
    MUST(dat_evd_modify_cno(adapter->async, DAT_HANDLE_NULL));
    MUST(dat_cno_free(my.cno));
    memory_free(&my.memory);
}

/* --- client ------------------------------------------------------------------------ */

static void client(struct adapter* adapter) {
    const DAT_EVD_HANDLE conn = evd_create(adapter, DAT_EVD_CONNECTION_FLAG, 16, DAT_HANDLE_NULL);
    const DAT_EVD_HANDLE recv = evd_create(adapter, DAT_EVD_DTO_FLAG, BURST, DAT_HANDLE_NULL);
    DAT_EVD_HANDLE request[ENDPOINTS];
    DAT_EP_HANDLE eps[ENDPOINTS];
    struct memory memory;
    struct letter letter;
    DAT_EVENT event;
    DAT_UINT64 first;
    DAT_UINT64 n;
    size_t i;
    memory_create(adapter, ENDPOINTS * BURST * SIZE, &memory);
    for (i = 0; i < ENDPOINTS; ++i) {
        request[i] = evd_create(adapter, DAT_EVD_DTO_FLAG, BURST, DAT_HANDLE_NULL);
        MUST(dat_ep_create(adapter->ia, adapter->pz, recv, request[i], conn, NULL, &eps[i]));
        connect_to(adapter, eps[i], "");
        next_event(conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    }
    for (first = 0; first < MESSAGES; first += BURST) {
        post_recv(eps[0], piece_of(&memory, 0, 0), first);
        for (n = 0; n < ENDPOINTS * BURST; ++n) {
            letter.sender = n % ENDPOINTS;
            letter.number = first + n / ENDPOINTS;
            memcpy(memory.bytes + n * SIZE, &letter, sizeof letter);
            post_send(eps[letter.sender], piece_of(&memory, n * SIZE, SIZE), letter.number,
                      DAT_COMPLETION_DEFAULT_FLAG);
        }
        for (n = 0; n < ENDPOINTS * BURST; ++n) {
            CHECK(next_dto(request[n % ENDPOINTS], DAT_DTO_SUCCESS) == first + n / ENDPOINTS);
        }
        CHECK(next_dto(recv, DAT_DTO_SUCCESS) == first);
    }
    for (i = 0; i < ENDPOINTS; ++i) {
        MUST(dat_ep_disconnect(eps[i], DAT_CLOSE_GRACEFUL_FLAG));
        next_event(conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
        MUST(dat_ep_free(eps[i]));
        MUST(dat_evd_free(request[i]));
    }
    MUST(dat_evd_free(conn));
    MUST(dat_evd_free(recv));
    memory_free(&memory);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
