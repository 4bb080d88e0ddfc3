/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A key-value store whose clients put and get by RDMA alone. The server owns a table in a file,
 * and does nothing while its clients use it. A client writes a value, flushes it persistently,
 * and then writes the slot's key by an atomic write, so that a key is never there before its
 * value. At the end the server opens its file anew and looks for what the clients say they put.
 */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 512
#define VALUES 200
#define VALUE_SIZE 104

struct slot {
    uint64_t key; /* 0: empty */
    char value[VALUE_SIZE];
    uint64_t sum;
    uint64_t unused;
};

static uint64_t sum_of(const char* value, uint64_t key) {
    uint64_t sum = key;

    for (int i = 0; i < VALUE_SIZE; ++i)
        sum = sum * 131 + (unsigned char)value[i];
    return sum;
}

static uint64_t key_of(int number) { return (uint64_t)number * 2654435761U + 1; }

static void value_of(int number, char* value) {
    memset(value, 'a' + number % 26, VALUE_SIZE);
    snprintf(value, VALUE_SIZE, "value %d of the store", number);
}

/* The slots of the table; a client has them registered to read into and to write from. */
struct store {
    struct rpma_conn* conn;
    struct rpma_mr_remote* there;
    struct memory here; /* one slot to write, one to read */
    enum rpma_flush_type flush;
};

static struct slot* slot_here(struct store* store, int index) {
    return (struct slot*)store->here.bytes + index;
}

static void read_slot(struct store* store, size_t number) {
    MUST(rpma_read(store->conn, store->here.mr, sizeof(struct slot), store->there,
                   number * sizeof(struct slot), sizeof(struct slot), RPMA_F_COMPLETION_ALWAYS,
                   store));
    struct ibv_wc wc = next_completion(store->conn);
    CHECK(wc.opcode == IBV_WC_RDMA_READ && wc.wr_id == (uintptr_t)store);
}

/* Where the key is, or the first empty slot behind its place. */
static size_t find(struct store* store, uint64_t key) {
    size_t number = key % SLOTS;

    for (int tries = 0; tries < SLOTS; ++tries) {
        read_slot(store, number);
        uint64_t found = slot_here(store, 1)->key;
        if (found == 0 || found == key)
            return number;
        number = (number + 1) % SLOTS;
    }
    sample_fail("the table is full", __FILE__, __LINE__);
    return 0;
}

static void put(struct store* store, uint64_t key, const char* value) {
    size_t number = find(store, key);
    size_t offset = number * sizeof(struct slot);
    struct slot* slot = slot_here(store, 0);
    char word[8];

    memcpy(slot->value, value, VALUE_SIZE);
    slot->sum = sum_of(value, key);
    memcpy(word, &key, sizeof(word));
    MUST(rpma_write(store->conn, store->there, offset + offsetof(struct slot, value),
                    store->here.mr, offsetof(struct slot, value),
                    sizeof(struct slot) - offsetof(struct slot, value), RPMA_F_COMPLETION_ON_ERROR,
                    NULL));
    MUST(rpma_flush(store->conn, store->there, offset, sizeof(struct slot), store->flush,
                    RPMA_F_COMPLETION_ON_ERROR, NULL));
    MUST(rpma_atomic_write(store->conn, store->there, offset, word, RPMA_F_COMPLETION_ON_ERROR,
                           NULL));
    MUST(rpma_flush(store->conn, store->there, offset, sizeof(word), store->flush,
                    RPMA_F_COMPLETION_ALWAYS, slot));
    struct ibv_wc wc = next_completion(store->conn);
    CHECK(wc.opcode == IBV_WC_RDMA_READ && wc.wr_id == (uintptr_t)slot);
}

static void get(struct store* store, uint64_t key, const char* wanted) {
    find(store, key);
    struct slot* slot = slot_here(store, 1);
    CHECK(slot->key == key);
    CHECK(slot->sum == sum_of(slot->value, key));
    CHECK(memcmp(slot->value, wanted, VALUE_SIZE) == 0);
}

static void client(struct sample* sample) {
    struct store store = {0};
    char value[VALUE_SIZE];
    int of_file = 0;

    store.conn = connect_to(sample, NULL, &store.there, &of_file);
    store.flush = of_file ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
    memory_create(sample, 2 * sizeof(struct slot), RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
                  0, &store.here);
    for (int i = 0; i < VALUES; ++i) {
        value_of(i, value);
        put(&store, key_of(i), value);
    }
    for (int i = 0; i < VALUES; ++i) { /* a new value for every third */
        if (i % 3 == 0) {
            value_of(i + 1000, value);
            put(&store, key_of(i), value);
        }
        value_of(i % 3 == 0 ? i + 1000 : i, value);
        get(&store, key_of(i), value);
    }
    leave(&store.conn);
    MUST(rpma_mr_remote_delete(&store.there));
    memory_free(&store.here);
}

/* What is found in the file, or in the memory where there is none. */
static void look_through(const struct slot* table) {
    int found = 0;

    for (int i = 0; i < VALUES; ++i) {
        char wanted[VALUE_SIZE];
        size_t number = key_of(i) % SLOTS;
        value_of(i % 3 == 0 ? i + 1000 : i, wanted);
        while (table[number].key != key_of(i)) {
            CHECK(table[number].key != 0);
            number = (number + 1) % SLOTS;
        }
        CHECK(memcmp(table[number].value, wanted, VALUE_SIZE) == 0);
        CHECK(table[number].sum == sum_of(wanted, key_of(i)));
        ++found;
    }
    printf("%d values are in the store\n", found);
}

static void server(struct sample* sample) {
    int of_file = sample->file != NULL;
    struct greeting greeting;
    struct memory table;

    memory_create(sample, SLOTS * sizeof(struct slot),
                  RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
                      RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                      (of_file ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : 0),
                  of_file, &table);
    greeting_make(&table, of_file, &greeting);
    struct rpma_ep* ep = listen_on(sample);
    struct rpma_conn* conn = accept_next(ep, NULL, &greeting);
    wait_for_leave(&conn);
    MUST(rpma_ep_shutdown(&ep));
    if (of_file) {
        struct slot* copy = malloc(SLOTS * sizeof(struct slot));
        FILE* file = fopen(sample->file, "rb");
        CHECK(copy && file && fread(copy, sizeof(struct slot), SLOTS, file) == SLOTS);
        fclose(file);
        look_through(copy);
        free(copy);
    } else {
        look_through((const struct slot*)table.bytes);
    }
    memory_free(&table);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
