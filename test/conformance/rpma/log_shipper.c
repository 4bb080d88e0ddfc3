/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A log that is shipped to another host: records go into a ring by writes that nobody waits for,
 * and a word at its beginning, written atomically, says how far it is whole. The reader polls
 * that word and takes records as it moves on; it must never see one that is not whole. It says
 * how far it has read by an atomic write of its own, into the shipper's memory.
 */
#include "sample.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS 3000
#define RING (16 * 1024)
#define HEAD 64 /* the ring begins there; before it are the words */

/* Each record has a length, which is a multiple of 8, its number, and bytes of that number. */
struct record {
    uint32_t length;
    uint32_t number;
};

static uint32_t length_of(uint32_t number) {
    return (uint32_t)(sizeof(struct record) + 8 * (number * 37 % 29));
}

static uint64_t load(const struct memory* memory) {
    return __atomic_load_n((const uint64_t*)memory->bytes, __ATOMIC_ACQUIRE);
}

static void store_there(struct rpma_conn* conn, struct rpma_mr_remote* there, uint64_t value,
                        int flags) {
    char word[8];

    memcpy(word, &value, sizeof(word));
    MUST(rpma_atomic_write(conn, there, 0, word, flags, NULL));
}

/* Of the client: ships RECORDS records. */
static void client(struct sample* sample) {
    struct rpma_conn_cfg* config = NULL;
    struct rpma_mr_remote* there = NULL;
    struct rpma_conn* conn;
    struct memory ring, seen;
    uint64_t head = 0; /* bytes shipped; what was read is in `seen` */
    int of_file = 0;

    memory_create(sample, HEAD + RING, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND, 0, &ring);
    memory_create(sample, 4096, RPMA_MR_USAGE_WRITE_DST, 0, &seen);
    MUST(rpma_conn_cfg_new(&config));
    MUST(rpma_conn_cfg_set_sq_size(config, 64));
    conn = connect_to(sample, config, &there, &of_file);
    MUST(rpma_conn_cfg_delete(&config));
    /* The reader is told where to write by a message. */
    MUST(rpma_mr_get_descriptor(seen.mr, ring.bytes));
    MUST(rpma_send(conn, ring.mr, 0, 21, RPMA_F_COMPLETION_ALWAYS, NULL));
    CHECK(next_completion(conn).opcode == IBV_WC_SEND);

    for (uint32_t number = 0; number < RECORDS; ++number) {
        struct record record = {length_of(number), number};
        size_t at = head % RING;
        /* A record does not wrap: the rest of the ring is skipped by one of number -1. */
        if (at + record.length > RING) {
            record.length = (uint32_t)(RING - at);
            record.number = UINT32_MAX;
            --number;
        }
        while (head + record.length - load(&seen) > RING)
            sched_yield();
        memset(ring.bytes + HEAD + at, (int)(record.number & 0xFF), record.length);
        memcpy(ring.bytes + HEAD + at, &record, sizeof(record));
        MUST(rpma_write(conn, there, HEAD + at, ring.mr, HEAD + at, record.length,
                        RPMA_F_COMPLETION_ON_ERROR, NULL));
        head += record.length;
        if (number % 16 == 0) {
            store_there(conn, there, head, RPMA_F_COMPLETION_ALWAYS);
            CHECK(next_completion(conn).opcode == IBV_WC_RDMA_WRITE);
        } else {
            store_there(conn, there, head, RPMA_F_COMPLETION_ON_ERROR);
        }
    }
    while (load(&seen) != head)
        sched_yield();
    wait_for_leave(&conn);
    MUST(rpma_mr_remote_delete(&there));
    memory_free(&ring);
    memory_free(&seen);
}

/* Takes what is whole. Returns the number of the next record. */
static uint32_t take(const struct memory* ring, uint64_t from, uint64_t to, uint32_t number) {
    while (from < to) {
        const char* place = ring->bytes + HEAD + from % RING;
        struct record record;
        memcpy(&record, place, sizeof(record));
        CHECK(record.length >= sizeof(record) && record.length <= RING - from % RING);
        if (record.number == UINT32_MAX) {
            from += record.length;
            continue;
        }
        CHECK(record.number == number && record.length == length_of(number));
        for (uint32_t i = sizeof(record); i < record.length; ++i)
            CHECK(place[i] == (char)(number & 0xFF));
        from += record.length;
        ++number;
    }
    CHECK(from == to);
    return number;
}

static void server(struct sample* sample) {
    struct greeting greeting;
    struct memory ring, inbox;
    struct rpma_mr_remote* there = NULL;
    struct rpma_conn_req* request = NULL;
    struct rpma_conn* conn = NULL;
    struct rpma_conn_private_data data = {&greeting, sizeof(greeting)};
    uint64_t seen = 0;
    uint32_t number = 0;

    memory_create(sample, HEAD + RING,
                  RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 0, &ring);
    memory_create(sample, 64, RPMA_MR_USAGE_RECV, 0, &inbox);
    greeting_make(&ring, 0, &greeting);
    struct rpma_ep* ep = listen_on(sample);
    MUST(rpma_ep_next_conn_req(ep, NULL, &request));
    MUST(rpma_conn_req_recv(request, inbox.mr, 0, 64, NULL));
    MUST(rpma_conn_req_connect(&request, &data, &conn));
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    struct ibv_wc wc = next_completion(conn);
    CHECK(wc.opcode == IBV_WC_RECV && wc.byte_len == 21);
    MUST(rpma_mr_remote_from_descriptor(inbox.bytes, 21, &there));

    while (number < RECORDS) {
        uint64_t head = load(&ring);
        CHECK(head >= seen && head - seen <= RING);
        if (head == seen) {
            sched_yield();
            continue;
        }
        number = take(&ring, seen, head, number);
        seen = head;
        store_there(conn, there, seen, RPMA_F_COMPLETION_ALWAYS);
        CHECK(next_completion(conn).opcode == IBV_WC_RDMA_WRITE);
    }
    printf("%u records, %llu bytes\n", number, (unsigned long long)seen);
    leave(&conn);
    MUST(rpma_ep_shutdown(&ep));
    MUST(rpma_mr_remote_delete(&there));
    memory_free(&ring);
    memory_free(&inbox);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
