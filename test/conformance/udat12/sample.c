/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See sample.h.
 */
#include "sample.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sample_fail(const char* what, const char* file, int line) {
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    exit(1);
}

void sample_must(DAT_RETURN code, const char* call, const char* file, int line) {
    const char* major = "?";
    const char* minor = "";
    if (code == DAT_SUCCESS) {
        return;
    }
    dat_strerror(code, &major, &minor);
    fprintf(stderr, "%s:%d: %s is %s %s\n", file, line, call, major, minor);
    exit(1);
}

static void run_client(struct adapter* adapter, const char* host, const char* port, part client) {
    struct addrinfo* found = NULL;
    const int rc = getaddrinfo(host, NULL, NULL, &found);
    if (rc != 0) {
        sample_fail(gai_strerror(rc), __FILE__, __LINE__);
    }
    adapter->server = found->ai_addr;
    adapter->port = (DAT_CONN_QUAL)strtoul(port, NULL, 10);
    client(adapter);
    freeaddrinfo(found);
}

int run_sample(int argc, char** argv, part server, part client) {
    struct adapter adapter;
    const int is_server = argc == 3 && strcmp(argv[1], "server") == 0;
    const int is_client = argc == 5 && strcmp(argv[1], "client") == 0;
    if (!is_server && !is_client) {
        fprintf(stderr, "usage: %s server ADAPTER | client ADAPTER ADDRESS PORT\n", argv[0]);
        return 2;
    }
    memset(&adapter, 0, sizeof adapter);
    adapter.async = DAT_HANDLE_NULL;
    MUST(dat_ia_open(argv[2], 8, &adapter.async, &adapter.ia));
    MUST(dat_pz_create(adapter.ia, &adapter.pz));
    if (is_server) {
        server(&adapter);
    } else {
        run_client(&adapter, argv[3], argv[4], client);
    }
    MUST(dat_pz_free(adapter.pz));
    /* Nothing may be left. */
    MUST(dat_ia_close(adapter.ia, DAT_CLOSE_GRACEFUL_FLAG));
    printf("done\n");
    return 0;
}

void memory_create(struct adapter* adapter, size_t size, struct memory* memory) {
    DAT_REGION_DESCRIPTION region;
    DAT_VADDR address;
    memory->bytes = calloc(1, size);
    CHECK(memory->bytes != NULL);
    region.for_va = memory->bytes;
    MUST(dat_lmr_create(adapter->ia, DAT_MEM_TYPE_VIRTUAL, region, size, adapter->pz,
                        DAT_MEM_PRIV_ALL_FLAG, &memory->lmr, &memory->lmr_context,
                        &memory->rmr_context, &memory->size, &address));
    CHECK(memory->size >= size);
}

void memory_free(struct memory* memory) {
    MUST(dat_lmr_free(memory->lmr));
    free(memory->bytes);
}

DAT_LMR_TRIPLET piece_of(const struct memory* memory, size_t offset, size_t length) {
    DAT_LMR_TRIPLET piece;
    piece.lmr_context = memory->lmr_context;
    piece.pad = 0;
    piece.virtual_address = (DAT_VADDR)(uintptr_t)(memory->bytes + offset);
    piece.segment_length = length;
    return piece;
}

DAT_EVD_HANDLE evd_create(struct adapter* adapter, DAT_EVD_FLAGS flags, DAT_COUNT length,
                          DAT_CNO_HANDLE cno) {
    DAT_EVD_HANDLE evd;
    MUST(dat_evd_create(adapter->ia, length, cno, flags, &evd));
    return evd;
}

DAT_PSP_HANDLE listen_on(struct adapter* adapter, DAT_EVD_HANDLE evd) {
    DAT_PSP_HANDLE psp;
    DAT_CONN_QUAL port;
    MUST(dat_psp_create_any(adapter->ia, &port, evd, DAT_PSP_CONSUMER_FLAG, &psp));
    printf("port %lu\n", (unsigned long)port);
    fflush(stdout);
    return psp;
}

void connect_to(struct adapter* adapter, DAT_EP_HANDLE ep, const char* text) {
    char data[64];
    const size_t size = strlen(text);
    CHECK(size <= sizeof data);
    memcpy(data, text, size);
    MUST(dat_ep_connect(ep, adapter->server, adapter->port, SOON, (DAT_COUNT)size, data,
                        DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

void next_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT* event) {
    DAT_COUNT more;
    MUST(dat_evd_wait(evd, SOON, 1, event, &more));
    if (event->event_number != number) {
        fprintf(stderr, "event 0x%x came, and not 0x%x\n", (unsigned)event->event_number,
                (unsigned)number);
        exit(1);
    }
}

DAT_UINT64 next_dto(DAT_EVD_HANDLE evd, DAT_DTO_COMPLETION_STATUS status) {
    DAT_EVENT event;
    const DAT_DTO_COMPLETION_EVENT_DATA* const dto = &event.event_data.dto_completion_event_data;
    next_event(evd, DAT_DTO_COMPLETION_EVENT, &event);
    if (dto->status != status) {
        fprintf(stderr, "DTO %lu has status %d, and not %d\n",
                (unsigned long)dto->user_cookie.as_64, (int)dto->status, (int)status);
        exit(1);
    }
    return dto->user_cookie.as_64;
}

void post_recv(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET piece, DAT_UINT64 number) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = number;
    MUST(dat_ep_post_recv(ep, 1, &piece, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

void post_send(DAT_EP_HANDLE ep, DAT_LMR_TRIPLET piece, DAT_UINT64 number,
               DAT_COMPLETION_FLAGS flags) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = number;
    MUST(dat_ep_post_send(ep, 1, &piece, cookie, flags));
}

DAT_EP_STATE state_of(DAT_EP_HANDLE ep) {
    DAT_EP_STATE state;
    DAT_BOOLEAN recv_idle;
    DAT_BOOLEAN request_idle;
    MUST(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
    return state;
}
