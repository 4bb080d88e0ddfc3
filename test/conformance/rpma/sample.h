/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the sample programs of librpma share. A sample is a server and a client, which know
 * nothing of each other but an address and a port. Whoever fails says what, and ends.
 */
#ifndef DAT_RPMA_SAMPLE_H
#define DAT_RPMA_SAMPLE_H

#include <librpma.h>

#include <stddef.h>
#include <stdint.h>

struct sample {
    struct rpma_peer* peer;
    const char* address;
    const char* port; /* for a client */
    const char* file; /* for a server: what it maps; NULL: memory of its own */
};
typedef void (*part)(struct sample* sample);

/*
 * The main() of a sample. Arguments: `server ADDRESS [FILE]`, which prints "port NUMBER", or
 * `client ADDRESS PORT`. Returns the exit status.
 */
int run_sample(int argc, char** argv, part server, part client);

/* Ends the program unless the call returned 0, or the condition holds. */
#define MUST(call) sample_must((call), #call, __FILE__, __LINE__)
#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : sample_fail("does not hold: " #condition, __FILE__, __LINE__))
void sample_must(int result, const char* call, const char* file, int line);
void sample_fail(const char* what, const char* file, int line);

/* Registered memory: of the sample's file, where it has one, or of whole pages. */
struct memory {
    char* bytes;
    size_t size;
    struct rpma_mr_local* mr;
};
void memory_create(struct sample* sample, size_t size, int usage, int of_file,
                   struct memory* memory);
void memory_free(struct memory* memory);

/* What a server tells its clients by private data. */
struct greeting {
    uint8_t region[21];
    uint8_t peer[1];
    uint8_t of_file;
};
/* Of that memory. */
void greeting_make(const struct memory* memory, int of_file, struct greeting* greeting);

/* Listens, and prints the port. */
struct rpma_ep* listen_on(struct sample* sample);
/* Accepts the next connection with that greeting, which may be NULL. */
struct rpma_conn* accept_next(struct rpma_ep* ep, const struct rpma_conn_cfg* config,
                              const struct greeting* greeting);
/*
 * Connects to the server; what it greets with becomes `memory`, unless that is NULL. Returns
 * through `of_file` whether that memory is one of a file.
 */
struct rpma_conn* connect_to(struct sample* sample, const struct rpma_conn_cfg* config,
                             struct rpma_mr_remote** memory, int* of_file);
void expect_event(struct rpma_conn* conn, enum rpma_conn_event wanted);

/* The next completion of the connection's main queue, which must be good. */
struct ibv_wc next_completion(struct rpma_conn* conn);

/* Either side of an end, with what follows. */
void leave(struct rpma_conn** conn);
void wait_for_leave(struct rpma_conn** conn);

#endif
