/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A ring buffer in the server's memory, which the client fills by RDMA writes. Of a batch of
 * writes only the last makes a completion (DAT_COMPLETION_SUPPRESS_FLAG); behind it comes a
 * message, the doorbell. Both sides sleep until as many events are there as they want
 * (DAT_COMPLETION_EVD_THRESHOLD_FLAG), and the server reads back what the client says it
 * wrote by an RDMA read behind a fence.
 */
#include "sample.h"

#include <string.h>

enum {
    SLOTS = 32,    /* of the ring */
    BATCH = 8,     /* writes for a doorbell */
    DOORBELLS = 2, /* for which the server wakes */
    TURNS = 50,    /* each of DOORBELLS batches */
    SIZE = 4096    /* bytes of a slot */
};

/* The server's invitation, and a doorbell. */
struct invitation {
    DAT_UINT64 address;
    DAT_UINT64 rmr_context;
};
struct doorbell {
    DAT_UINT64 written; /* slots, from the beginning */
};

struct side {
    DAT_EVD_HANDLE recv;
    DAT_EVD_HANDLE request;
    DAT_EVD_HANDLE conn;
    DAT_EP_HANDLE ep;
    struct memory ring;    /* at the client: what it writes from */
    struct memory letters; /* messages, in and out */
};

enum { INBOX = 0, OUTBOX = 1024 }; /* offsets in `letters` */

static void open_side(struct adapter* adapter, struct side* side) {
    DAT_EP_ATTR attr;
    memset(&attr, 0, sizeof attr);
    attr.service_type = DAT_SERVICE_TYPE_RC;
    attr.max_message_size = sizeof(struct invitation);
    attr.max_rdma_size = SIZE;
    attr.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
    attr.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
    attr.max_recv_dtos = 16;
    attr.max_request_dtos = 4 * (BATCH + 1);
    attr.max_recv_iov = attr.max_request_iov = 1;
    attr.max_rdma_read_in = attr.max_rdma_read_out = 1;
    attr.max_rdma_read_iov = attr.max_rdma_write_iov = 1;
    side->recv = evd_create(adapter, DAT_EVD_DTO_FLAG, 32, DAT_HANDLE_NULL);
    side->request = evd_create(adapter, DAT_EVD_DTO_FLAG, 64, DAT_HANDLE_NULL);
    side->conn = evd_create(adapter, DAT_EVD_CONNECTION_FLAG, 8, DAT_HANDLE_NULL);
    MUST(dat_ep_create(adapter->ia, adapter->pz, side->recv, side->request, side->conn, &attr,
                       &side->ep));
    memory_create(adapter, SLOTS * SIZE, &side->ring);
    memory_create(adapter, 2048, &side->letters);
}

static void close_side(struct side* side) {
    MUST(dat_ep_free(side->ep));
    MUST(dat_evd_free(side->conn));
    MUST(dat_evd_free(side->request));
    MUST(dat_evd_free(side->recv));
    memory_free(&side->ring);
    memory_free(&side->letters);
}

static size_t place_in(size_t cookie) { return INBOX + cookie * sizeof(struct invitation); }

static void receive(struct side* side, DAT_UINT64 cookie) {
    post_recv(side->ep, piece_of(&side->letters, place_in(cookie), sizeof(struct invitation)),
              cookie);
}

/* Sleeps until `count` completions are there, which all must be successes; their cookies. */
static void gather(DAT_EVD_HANDLE evd, DAT_COUNT count, DAT_UINT64* cookies) {
    DAT_EVENT event;
    DAT_COUNT more;
    DAT_COUNT i;
    MUST(dat_evd_wait(evd, SOON, count, &event, &more));
    CHECK(more >= count - 1);
    for (i = 0; i < count; ++i) {
        if (i > 0) {
            MUST(dat_evd_dequeue(evd, &event));
        }
        CHECK(event.event_number == DAT_DTO_COMPLETION_EVENT);
        CHECK(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
        cookies[i] = event.event_data.dto_completion_event_data.user_cookie.as_64;
    }
}

/* Every byte of slot number `slot`. */
static int content(DAT_UINT64 slot) { return (int)(slot % 251); }

static void check_slots(const struct side* side, DAT_UINT64 first, DAT_UINT64 end) {
    for (; first < end; ++first) {
        const char* const bytes = side->ring.bytes + first % SLOTS * SIZE;
        CHECK(bytes[0] == (char)content(first));
        CHECK(memcmp(bytes, bytes + 1, SIZE - 1) == 0);
    }
}

/* A letter of the server: where the ring is, and then how many slots were taken. */
static void tell(struct side* side, const void* letter, size_t size) {
    memcpy(side->letters.bytes + OUTBOX, letter, size);
    post_send(side->ep, piece_of(&side->letters, OUTBOX, size), 1, DAT_COMPLETION_DEFAULT_FLAG);
    CHECK(next_dto(side->request, DAT_DTO_SUCCESS) == 1);
}

static void server(struct adapter* adapter) {
    const DAT_EVD_HANDLE requests = evd_create(adapter, DAT_EVD_CR_FLAG, 8, DAT_HANDLE_NULL);
    const DAT_PSP_HANDLE psp = listen_on(adapter, requests);
    struct invitation invitation;
    struct doorbell doorbell;
    struct side side;
    DAT_EVENT event;
    DAT_UINT64 cookies[DOORBELLS];
    DAT_UINT64 taken = 0;
    int turn;
    open_side(adapter, &side);
    for (taken = 0; taken < 2 * DOORBELLS; ++taken) {
        receive(&side, taken);
    }
    next_event(requests, DAT_CONNECTION_REQUEST_EVENT, &event);
    MUST(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, side.ep, 0, NULL));
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    invitation.address = (DAT_UINT64)(uintptr_t)side.ring.bytes;
    invitation.rmr_context = side.ring.rmr_context;
    tell(&side, &invitation, sizeof invitation);
    taken = 0;
    for (turn = 0; turn < TURNS; ++turn) {
        int i;
        gather(side.recv, DOORBELLS, cookies);
        for (i = 0; i < DOORBELLS; ++i) {
            memcpy(&doorbell, side.letters.bytes + place_in(cookies[i]), sizeof doorbell);
            CHECK(doorbell.written == taken + BATCH);
            check_slots(&side, taken, doorbell.written);
            taken = doorbell.written;
            receive(&side, cookies[i]);
        }
        doorbell.written = taken;
        tell(&side, &doorbell, sizeof doorbell);
    }
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    close_side(&side);
    MUST(dat_psp_free(psp));
    MUST(dat_evd_free(requests));
}

/* Writes one batch, which begins at `first`, and rings. */
static void write_batch(struct side* side, const struct invitation* there, DAT_UINT64 first) {
    DAT_DTO_COOKIE cookie;
    DAT_LMR_TRIPLET local;
    DAT_RMR_TRIPLET remote;
    DAT_UINT64 slot;
    struct doorbell doorbell;
    for (slot = first; slot < first + BATCH; ++slot) {
        const size_t offset = slot % SLOTS * SIZE;
        memset(side->ring.bytes + offset, content(slot), SIZE);
        local = piece_of(&side->ring, offset, SIZE);
        remote.rmr_context = (DAT_RMR_CONTEXT)there->rmr_context;
        remote.pad = 0;
        remote.target_address = there->address + offset;
        remote.segment_length = SIZE;
        cookie.as_64 = slot;
        MUST(dat_ep_post_rdma_write(side->ep, 1, &local, cookie, &remote,
                                    slot + 1 < first + BATCH ? DAT_COMPLETION_SUPPRESS_FLAG
                                                             : DAT_COMPLETION_DEFAULT_FLAG));
    }
    doorbell.written = slot;
    /* A place of its own for each of the two that may be under way. */
    memcpy(side->letters.bytes + OUTBOX + slot / BATCH % 2 * 64, &doorbell, sizeof doorbell);
    post_send(side->ep, piece_of(&side->letters, OUTBOX + slot / BATCH % 2 * 64, sizeof doorbell),
              slot, DAT_COMPLETION_SUPPRESS_FLAG);
}

/* Reads the slot that was written last back, behind all that was written. */
static void read_back(struct side* side, const struct invitation* there, DAT_UINT64 written) {
    const size_t offset = (written - 1) % SLOTS * SIZE;
    DAT_LMR_TRIPLET local = piece_of(&side->ring, offset, SIZE);
    DAT_RMR_TRIPLET remote;
    DAT_DTO_COOKIE cookie;
    memset(side->ring.bytes + offset, 255, SIZE);
    remote.rmr_context = (DAT_RMR_CONTEXT)there->rmr_context;
    remote.pad = 0;
    remote.target_address = there->address + offset;
    remote.segment_length = SIZE;
    cookie.as_64 = 0;
    MUST(dat_ep_post_rdma_read(side->ep, 1, &local, cookie, &remote,
                               DAT_COMPLETION_BARRIER_FENCE_FLAG));
    CHECK(next_dto(side->request, DAT_DTO_SUCCESS) == 0);
    check_slots(side, written - 1, written);
}

static void client(struct adapter* adapter) {
    struct invitation there;
    struct doorbell taken;
    struct side side;
    DAT_EVENT event;
    DAT_UINT64 cookies[DOORBELLS];
    DAT_UINT64 written = 0;
    int turn;
    open_side(adapter, &side);
    receive(&side, 0);
    receive(&side, 1);
    connect_to(adapter, side.ep, "");
    next_event(side.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
    CHECK(next_dto(side.recv, DAT_DTO_SUCCESS) == 0);
    memcpy(&there, side.letters.bytes + place_in(0), sizeof there);
    for (turn = 0; turn < TURNS; ++turn) {
        int i;
        DAT_UINT64 letter;
        for (i = 0; i < DOORBELLS; ++i) {
            write_batch(&side, &there, written);
            written += BATCH;
        }
        /* One completion for each batch, although so many writes were posted. */
        gather(side.request, DOORBELLS, cookies);
        CHECK(cookies[0] == written - BATCH - 1 && cookies[1] == written - 1);
        receive(&side, (DAT_UINT64)turn % 2);
        letter = next_dto(side.recv, DAT_DTO_SUCCESS);
        memcpy(&taken, side.letters.bytes + place_in(letter), sizeof taken);
        CHECK(taken.written == written);
    }
    read_back(&side, &there, written);
    MUST(dat_ep_disconnect(side.ep, DAT_CLOSE_GRACEFUL_FLAG));
    next_event(side.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
    close_side(&side);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
