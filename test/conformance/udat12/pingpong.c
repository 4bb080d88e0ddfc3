/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ping-pong in the manner of programs that measure a network: an endpoint with room for 20000
 * operations, whose requests are suppressed, and each way to learn that something has come: the
 * bytes in memory change, which takes no call at all; the event dispatcher is polled; a
 * thread sleeps for it, or for its notification object. By messages, and by RDMA writes, behind
 * which a message of no bytes follows where an event is waited for. Every byte is looked at.
 */
#include "sample.h"

#include <string.h>
#include <time.h>

enum { OPERATIONS = 20000, ROUNDS = 12, LARGEST = 40000 };
static const size_t sizes[] = {1, 64, 4096, LARGEST};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

enum way { LOCAL_POLL, DEQUEUE, EVD_WAIT, CNO_WAIT, WAYS };

struct side {
    DAT_CNO_HANDLE cno;
    DAT_EVD_HANDLE recv;
    DAT_EVD_HANDLE request;
    DAT_EVD_HANDLE conn;
    DAT_EP_HANDLE ep;
    struct memory in;
    struct memory out;
    DAT_RMR_TRIPLET at_peer; /* its `in` */
};

/* Where the peer's writes may go; its first message. */
struct place {
    DAT_VADDR address;
    DAT_RMR_CONTEXT context;
};

static DAT_COUNT at_most(DAT_COUNT most, DAT_COUNT wanted) { return wanted < most ? wanted : most; }

static void open_side(struct adapter* adapter, struct side* side) {
    DAT_OS_WAIT_PROXY_AGENT none;
    DAT_EVD_HANDLE async;
    DAT_IA_ATTR can; /* a device may have less */
    DAT_EP_ATTR attr;
    MUST(dat_ia_query(adapter->ia, &async, DAT_IA_FIELD_ALL, &can, 0, NULL));
    memset(&none, 0, sizeof none);
    MUST(dat_cno_create(adapter->ia, none, &side->cno));
    side->recv = evd_create(adapter, DAT_EVD_DTO_FLAG, OPERATIONS, side->cno);
    side->request = evd_create(adapter, DAT_EVD_DTO_FLAG, OPERATIONS, DAT_HANDLE_NULL);
    side->conn = evd_create(adapter, DAT_EVD_CONNECTION_FLAG, 8, DAT_HANDLE_NULL);
    memset(&attr, 0, sizeof attr);
    attr.service_type = DAT_SERVICE_TYPE_RC;
    attr.max_recv_dtos = at_most(can.max_dto_per_ep, OPERATIONS);
    attr.max_request_dtos = at_most(can.max_dto_per_ep, OPERATIONS);
    attr.max_recv_iov = at_most(can.max_iov_segments_per_dto, 4);
    attr.max_request_iov = at_most(can.max_iov_segments_per_dto, 4);
    attr.max_rdma_read_in = at_most(can.max_rdma_read_per_ep_in, 4);
    attr.max_rdma_read_out = at_most(can.max_rdma_read_per_ep_out, 4);
    attr.request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
    attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
    MUST(dat_ep_create(adapter->ia, adapter->pz, side->recv, side->request, side->conn, &attr,
                       &side->ep));
    memory_create(adapter, LARGEST, &side->in);
    memory_create(adapter, LARGEST, &side->out);
}

static void close_side(struct side* side) {
    MUST(dat_ep_free(side->ep));
    MUST(dat_evd_free(side->conn));
    MUST(dat_evd_free(side->request));
    MUST(dat_evd_free(side->recv));
    MUST(dat_cno_free(side->cno));
    memory_free(&side->in);
    memory_free(&side->out);
}

/* Never what was there of the turns before. */
static char byte_of(size_t i, unsigned seed) { return (char)(1 + (i * 7 + seed) % 251); }

/* A turn of either side: what it says, and how it hears of what comes. */
struct turn {
    int by_write;
    enum way way;
    size_t size;
    unsigned seed;
};
enum { TURNS = 2 * WAYS * SIZES * ROUNDS };

static struct turn turn_of(int number) {
    struct turn turn;
    turn.size = sizes[number / ROUNDS % SIZES];
    turn.way = (enum way)(number / ROUNDS / SIZES % WAYS);
    turn.by_write = number / ROUNDS / SIZES / WAYS;
    turn.seed = (unsigned)number;
    return turn;
}
static int has_event(const struct turn* turn) { return !turn->by_write || turn->way != LOCAL_POLL; }

static void expect_turn(struct side* side, int number) {
    const struct turn turn = turn_of(number);
    if (number < TURNS && has_event(&turn)) {
        post_recv(side->ep, piece_of(&side->in, 0, turn.by_write ? 0 : turn.size), turn.seed);
    }
}

static void say(struct side* side, int number) {
    const struct turn turn = turn_of(number);
    DAT_LMR_TRIPLET piece = piece_of(&side->out, 0, turn.size);
    DAT_DTO_COOKIE cookie;
    size_t i;
    for (i = 0; i < turn.size; ++i) {
        side->out.bytes[i] = byte_of(i, turn.seed);
    }
    if (!turn.by_write) {
        post_send(side->ep, piece, turn.seed, DAT_COMPLETION_SUPPRESS_FLAG);
        return;
    }
    cookie.as_64 = turn.seed;
    side->at_peer.segment_length = turn.size;
    MUST(dat_ep_post_rdma_write(side->ep, 1, &piece, cookie, &side->at_peer,
                                DAT_COMPLETION_SUPPRESS_FLAG));
    if (has_event(&turn)) {
        post_send(side->ep, piece_of(&side->out, 0, 0), turn.seed, DAT_COMPLETION_SUPPRESS_FLAG);
    }
}

/* The next event of the receives. */
static void next_receive(struct side* side, enum way way, DAT_EVENT* event) {
    const time_t end = time(NULL) + SOON / 1000000;
    DAT_EVD_HANDLE evd;
    DAT_COUNT more;
    DAT_RETURN code;
    if (way == EVD_WAIT) {
        MUST(dat_evd_wait(side->recv, SOON, 1, event, &more));
        return;
    }
    do {
        CHECK(time(NULL) < end);
        if (way == CNO_WAIT) {
            MUST(dat_cno_wait(side->cno, SOON, &evd));
            CHECK(evd == side->recv);
        }
        code = dat_evd_dequeue(side->recv, event);
    } while (DAT_GET_TYPE(code) == DAT_QUEUE_EMPTY);
    MUST(code);
}

static void hear(struct side* side, int number) {
    const struct turn turn = turn_of(number);
    const time_t end = time(NULL) + SOON / 1000000;
    const volatile char* const in = side->in.bytes;
    DAT_EVENT event;
    size_t i;
    if (turn.way == LOCAL_POLL) { /* bytes may come in any order */
        for (i = 0; i < turn.size; ++i) {
            while (in[i] != byte_of(i, turn.seed)) {
                CHECK(time(NULL) < end);
            }
        }
    }
    if (has_event(&turn)) {
        const DAT_DTO_COMPLETION_EVENT_DATA* const dto =
            &event.event_data.dto_completion_event_data;
        next_receive(side, turn.way, &event);
        CHECK(event.event_number == DAT_DTO_COMPLETION_EVENT);
        CHECK(dto->status == DAT_DTO_SUCCESS);
        CHECK(dto->user_cookie.as_64 == turn.seed);
        CHECK(dto->transfered_length == (turn.by_write ? 0 : turn.size));
    }
    for (i = 0; i < turn.size; ++i) {
        CHECK(in[i] == byte_of(i, turn.seed));
    }
}

static void tell_place(struct side* side) {
    struct place place;
    place.address = (DAT_VADDR)(uintptr_t)side->in.bytes;
    place.context = side->in.rmr_context;
    memcpy(side->out.bytes, &place, sizeof place);
    post_send(side->ep, piece_of(&side->out, 0, sizeof place), 0, DAT_COMPLETION_DEFAULT_FLAG);
    next_dto(side->request, DAT_DTO_SUCCESS); /* suppressed is what says so */
}

static void expect_place(struct side* side) {
    post_recv(side->ep, piece_of(&side->in, 0, sizeof(struct place)), 0);
}

static void hear_place(struct side* side) {
    struct place place;
    next_dto(side->recv, DAT_DTO_SUCCESS);
    memcpy(&place, side->in.bytes, sizeof place);
    memset(side->in.bytes, 0, sizeof place);
    memset(&side->at_peer, 0, sizeof side->at_peer);
    side->at_peer.target_address = place.address;
    side->at_peer.rmr_context = place.context;
}

/* Every success was. The last may have been flushed, where the other ended before it was confirmed.
 */
static void all_were_suppressed(struct side* side) {
    DAT_EVENT event;
    while (DAT_GET_TYPE(dat_evd_dequeue(side->request, &event)) != DAT_QUEUE_EMPTY) {
        CHECK(event.event_number == DAT_DTO_COMPLETION_EVENT);
        CHECK(event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED);
    }
}

/* Whoever speaks has posted the receive of the answer; whoever answers, that of the next turn. */
static void server(struct adapter* adapter) {
    const DAT_EVD_HANDLE requests = evd_create(adapter, DAT_EVD_CR_FLAG, 8, DAT_HANDLE_NULL);
    const DAT_PSP_HANDLE psp = listen_on(adapter, requests);
    struct side side;
    DAT_EVENT event;
    int number;
    open_side(adapter, &side);
    expect_place(&side);
    next_event(requests, DAT_CONNECTION_REQUEST_EVENT, &event);
    MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, side.ep, 0, NULL));
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    hear_place(&side);
    expect_turn(&side, 0);
    tell_place(&side);
    for (number = 0; number < TURNS; ++number) {
        hear(&side, number);
        expect_turn(&side, number + 1);
        say(&side, number);
    }
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    all_were_suppressed(&side);
    close_side(&side);
    MUST(dat_psp_free(psp));
    MUST(dat_evd_free(requests));
}

static void client(struct adapter* adapter) {
    struct side side;
    DAT_EVENT event;
    int number;
    open_side(adapter, &side);
    expect_place(&side);
    connect_to(adapter, side.ep, "");
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    tell_place(&side);
    hear_place(&side);
    for (number = 0; number < TURNS; ++number) {
        expect_turn(&side, number);
        say(&side, number);
        hear(&side, number);
    }
    MUST(dat_ep_disconnect(side.ep, DAT_CLOSE_GRACEFUL_FLAG));
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    all_were_suppressed(&side);
    close_side(&side);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
