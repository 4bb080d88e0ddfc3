/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See sample.h. */
#include "sample.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

void sample_fail(const char* what, const char* file, int line) {
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    exit(1);
}

void sample_must(int result, const char* call, const char* file, int line) {
    if (result != 0) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, rpma_err_2str(result));
        exit(1);
    }
}

int run_sample(int argc, char** argv, part server, part client) {
    struct sample sample = {0};
    struct ibv_context* context = NULL;
    int serves = argc >= 3 && strcmp(argv[1], "server") == 0;

    if (!serves && !(argc == 4 && strcmp(argv[1], "client") == 0)) {
        fprintf(stderr, "usage: %s server ADDRESS [FILE] | client ADDRESS PORT\n", argv[0]);
        return 2;
    }
    sample.address = argv[2];
    if (serves)
        sample.file = argc > 3 ? argv[3] : NULL;
    else
        sample.port = argv[3];
    MUST(rpma_utils_get_ibv_context(
        sample.address, serves ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE,
        &context));
    MUST(rpma_peer_new(context, &sample.peer));
    (serves ? server : client)(&sample);
    MUST(rpma_peer_delete(&sample.peer));
    return 0;
}

/* ---- memory ---- */

void memory_create(struct sample* sample, size_t size, int usage, int of_file,
                   struct memory* memory) {
    int fd = -1;

    memory->size = size;
    if (of_file) {
        fd = open(sample->file, O_RDWR | O_CREAT, 0600);
        CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    }
    memory->bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                         of_file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    CHECK(memory->bytes != MAP_FAILED);
    if (fd >= 0)
        close(fd);
    MUST(rpma_mr_reg(sample->peer, memory->bytes, size, usage, &memory->mr));
}

void memory_free(struct memory* memory) {
    MUST(rpma_mr_dereg(&memory->mr));
    munmap(memory->bytes, memory->size);
}

void greeting_make(const struct memory* memory, int of_file, struct greeting* greeting) {
    struct rpma_peer_cfg* config = NULL;
    size_t size = 0;

    MUST(rpma_mr_get_descriptor_size(memory->mr, &size));
    CHECK(size == sizeof(greeting->region));
    MUST(rpma_mr_get_descriptor(memory->mr, greeting->region));
    MUST(rpma_peer_cfg_new(&config));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(config, of_file));
    MUST(rpma_peer_cfg_get_descriptor_size(config, &size));
    CHECK(size == sizeof(greeting->peer));
    MUST(rpma_peer_cfg_get_descriptor(config, greeting->peer));
    MUST(rpma_peer_cfg_delete(&config));
    greeting->of_file = (uint8_t)of_file;
}

/* ---- connections ---- */

/* A port that is free at this moment; somebody else may take it. */
static int free_port(const char* address) {
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t length = sizeof(name);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(inet_pton(AF_INET, address, &name.sin_addr) == 1);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr*)&name, length) == 0);
    CHECK(getsockname(fd, (struct sockaddr*)&name, &length) == 0);
    close(fd);
    return ntohs(name.sin_port);
}

struct rpma_ep* listen_on(struct sample* sample) {
    struct rpma_ep* ep = NULL;
    char port[16];
    int result = RPMA_E_PROVIDER;

    for (int tries = 0; tries < 50 && result == RPMA_E_PROVIDER; ++tries) {
        snprintf(port, sizeof(port), "%d", free_port(sample->address));
        result = rpma_ep_listen(sample->peer, sample->address, port, &ep);
    }
    sample_must(result, "rpma_ep_listen", __FILE__, __LINE__);
    printf("port %s\n", port);
    fflush(stdout);
    return ep;
}

void expect_event(struct rpma_conn* conn, enum rpma_conn_event wanted) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

    MUST(rpma_conn_next_event(conn, &event));
    if (event != wanted) {
        fprintf(stderr, "not %s\n", rpma_utils_conn_event_2str(wanted));
        sample_fail(rpma_utils_conn_event_2str(event), __FILE__, __LINE__);
    }
}

struct rpma_conn* accept_next(struct rpma_ep* ep, const struct rpma_conn_cfg* config,
                              const struct greeting* greeting) {
    struct greeting copy;
    struct rpma_conn_private_data data = {&copy, sizeof(copy)};
    struct rpma_conn_req* request = NULL;
    struct rpma_conn* conn = NULL;

    if (greeting)
        copy = *greeting;
    MUST(rpma_ep_next_conn_req(ep, config, &request));
    MUST(rpma_conn_req_connect(&request, greeting ? &data : NULL, &conn));
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    return conn;
}

struct rpma_conn* connect_to(struct sample* sample, const struct rpma_conn_cfg* config,
                             struct rpma_mr_remote** memory, int* of_file) {
    struct rpma_conn_req* request = NULL;
    struct rpma_conn* conn = NULL;
    struct rpma_conn_private_data data = {0};
    struct rpma_peer_cfg* peer = NULL;
    struct greeting greeting;

    MUST(rpma_conn_req_new(sample->peer, sample->address, sample->port, config, &request));
    MUST(rpma_conn_req_connect(&request, NULL, &conn));
    expect_event(conn, RPMA_CONN_ESTABLISHED);
    if (!memory)
        return conn;
    MUST(rpma_conn_get_private_data(conn, &data));
    CHECK(data.ptr != NULL && data.len >= sizeof(greeting));
    memcpy(&greeting, data.ptr, sizeof(greeting));
    MUST(rpma_mr_remote_from_descriptor(greeting.region, sizeof(greeting.region), memory));
    MUST(rpma_peer_cfg_from_descriptor(greeting.peer, sizeof(greeting.peer), &peer));
    MUST(rpma_conn_apply_remote_peer_cfg(conn, peer));
    MUST(rpma_peer_cfg_delete(&peer));
    *of_file = greeting.of_file;
    return conn;
}

struct ibv_wc next_completion(struct rpma_conn* conn) {
    struct rpma_cq* cq = NULL;
    struct ibv_wc wc;
    int result;

    MUST(rpma_conn_get_cq(conn, &cq));
    while ((result = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
        MUST(rpma_cq_wait(cq));
    MUST(result);
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "status %d\n", wc.status);
        sample_fail("a completion with an error", __FILE__, __LINE__);
    }
    return wc;
}

void leave(struct rpma_conn** conn) {
    MUST(rpma_conn_disconnect(*conn));
    expect_event(*conn, RPMA_CONN_CLOSED);
    MUST(rpma_conn_delete(conn));
}

void wait_for_leave(struct rpma_conn** conn) {
    expect_event(*conn, RPMA_CONN_CLOSED);
    MUST(rpma_conn_disconnect(*conn));
    MUST(rpma_conn_delete(conn));
}
