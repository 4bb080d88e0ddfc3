/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the sample programs of uDAPL 1.2 share. A sample is a server and a client, which know
 * nothing of each other but an address and a port. Whoever fails says what, and ends.
 */
#ifndef DAT_SAMPLE_H
#define DAT_SAMPLE_H

#include <dat/udat.h>

#include <stddef.h>
#include <stdint.h>

/* One of the two, on an open adapter. Returns when its part is over. */
struct adapter;
typedef void (*part)(struct adapter* adapter);

struct adapter {
    DAT_IA_HANDLE ia;
    DAT_EVD_HANDLE async;
    DAT_PZ_HANDLE pz;
    DAT_IA_ADDRESS_PTR server; /* for a client: where to connect to */
    DAT_CONN_QUAL port;        /* for a client: of the server */
};

/*
 * The main() of a sample. Arguments: `server ADAPTER`, which prints "port NUMBER", or
 * `client ADAPTER ADDRESS PORT`. Returns the exit status.
 */
int run_sample(int argc, char** argv, part server, part client);

/* Ends the program unless the call succeeded, or the condition holds. */
#define MUST(call) sample_must((call), #call, __FILE__, __LINE__)
#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : sample_fail("does not hold: " #condition, __FILE__, __LINE__))
void sample_must(DAT_RETURN code, const char* call, const char* file, int line);
void sample_fail(const char* what, const char* file, int line);

/* Longer than anything here takes, in microseconds. */
#define SOON ((DAT_TIMEOUT)60000000)

/* Registered memory. */
struct memory {
    char* bytes;
    DAT_VLEN size;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT lmr_context;
    DAT_RMR_CONTEXT rmr_context;
};
void memory_create(struct adapter* adapter, size_t size, struct memory* memory);
void memory_free(struct memory* memory);
DAT_LMR_TRIPLET piece_of(const struct memory* memory, size_t offset, size_t length);

DAT_EVD_HANDLE evd_create(struct adapter* adapter, DAT_EVD_FLAGS flags, DAT_COUNT length,
                          DAT_CNO_HANDLE cno);

/* A service point that printed its port; its requests come to `evd`. */
DAT_PSP_HANDLE listen_on(struct adapter* adapter, DAT_EVD_HANDLE evd);
/* Asks the server for a connection, with that text, without its zero, as private data. */
void connect_to(struct adapter* adapter, DAT_EP_HANDLE ep, const char* text);

/* The next event, which must be of that kind. */
void next_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT* event);
/* The next event, which must be a completion with that status; its cookie. */
DAT_UINT64 next_dto(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status);

void post_recv(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET piece, DAT_UINT64 cookie);
void post_send(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET piece, DAT_UINT64 cookie,
               DAT_COMPLETION_FLAGS flags);
DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

#endif
