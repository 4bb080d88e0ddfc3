/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A server with one thread and one epoll for all: requests for connections, their events, and
 * their completions, through descriptors that do not block. Every other connection has a receive
 * queue of its own and one channel for both. The client is another such loop over as many
 * connections, each of which sends a number of questions, one behind the other, and leaves.
 */
#include "sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECTIONS 24
#define QUESTIONS 40
#define SLOT 64 /* bytes: of a question, and of an answer */

struct loop;
struct link;
typedef void (*handler)(struct loop* loop, struct link* link);

/* What a descriptor is for. */
struct watch {
    handler handle;
    struct link* link;
};

struct link {
    struct rpma_conn* conn;
    struct rpma_cq* cq;
    struct rpma_cq* rcq; /* NULL: receives come to cq */
    struct watch events, main, receives;
    size_t at; /* its place in the memory: a question, then an answer */
    uint32_t number;
    int shared, established, over;
};

struct loop {
    int epoll;
    struct sample* sample;
    struct rpma_ep* ep; /* of a server */
    struct watch requests;
    struct memory memory;
    struct link links[CONNECTIONS];
    int made, ended;
    int serves;
};

static void watch(struct loop* loop, int fd, struct watch* watch, handler handle,
                  struct link* link) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};
    int flags = fcntl(fd, F_GETFL);

    CHECK(flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0);
    watch->handle = handle;
    watch->link = link;
    CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

static void unwatch(struct loop* loop, int fd) {
    CHECK(epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, NULL) == 0);
}

static uint32_t answer_to(uint32_t question) { return question * 2654435761U + 7; }

static void post_receive(struct loop* loop, struct link* link) {
    size_t place = link->at + (loop->serves ? 0 : SLOT);

    MUST(rpma_recv(link->conn, loop->memory.mr, place, SLOT, link));
}

static void send_text(struct loop* loop, struct link* link, uint32_t value) {
    size_t place = link->at + (loop->serves ? SLOT : 0);

    memcpy(loop->memory.bytes + place, &value, sizeof(value));
    MUST(rpma_send(link->conn, loop->memory.mr, place, SLOT, RPMA_F_COMPLETION_ALWAYS, link));
}

/* A question at the server, an answer at the client. */
static void received(struct loop* loop, struct link* link) {
    uint32_t value;

    if (loop->serves) {
        memcpy(&value, loop->memory.bytes + link->at, sizeof(value));
        CHECK(value == link->number);
        ++link->number;
        post_receive(loop, link);
        send_text(loop, link, answer_to(value));
        return;
    }
    memcpy(&value, loop->memory.bytes + link->at + SLOT, sizeof(value));
    CHECK(value == answer_to(link->number));
    ++link->number;
    if (link->number < QUESTIONS) {
        post_receive(loop, link);
        send_text(loop, link, link->number);
    } else {
        MUST(rpma_conn_disconnect(link->conn));
        link->over = 1;
    }
}

static void drain(struct loop* loop, struct link* link, struct rpma_cq* cq) {
    struct ibv_wc wc[4];
    int got = 0;
    int result;

    while ((result = rpma_cq_get_wc(cq, 4, wc, &got)) == 0) {
        for (int i = 0; i < got; ++i) {
            CHECK(wc[i].wr_id == (uintptr_t)link);
            if (wc[i].status == IBV_WC_WR_FLUSH_ERR) {
                CHECK(link->over);
                continue;
            }
            CHECK(wc[i].status == IBV_WC_SUCCESS);
            if (wc[i].opcode == IBV_WC_RECV)
                received(loop, link);
        }
    }
    CHECK(result == RPMA_E_NO_COMPLETION);
}

static void of_main(struct loop* loop, struct link* link) {
    int result = rpma_cq_wait(link->cq);

    CHECK(result == 0 || result == RPMA_E_NO_COMPLETION);
    drain(loop, link, link->cq);
}

static void of_channel(struct loop* loop, struct link* link) {
    struct rpma_cq* cq = NULL;
    bool is_rcq = false;
    int result = rpma_conn_wait(link->conn, 0, &cq, &is_rcq);

    CHECK(result == 0 || result == RPMA_E_NO_COMPLETION);
    if (result == 0) {
        CHECK(cq == (is_rcq ? link->rcq : link->cq));
        drain(loop, link, cq);
    }
}

static void remove_link(struct loop* loop, struct link* link) {
    int fd = -1;

    MUST(rpma_conn_get_event_fd(link->conn, &fd));
    unwatch(loop, fd);
    MUST(link->shared ? rpma_conn_get_compl_fd(link->conn, &fd) : rpma_cq_get_fd(link->cq, &fd));
    unwatch(loop, fd);
    MUST(rpma_conn_delete(&link->conn));
    ++loop->ended;
}

static void of_events(struct loop* loop, struct link* link) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int result = rpma_conn_next_event(link->conn, &event);

    if (result == RPMA_E_NO_EVENT)
        return;
    MUST(result);
    if (event == RPMA_CONN_ESTABLISHED) {
        CHECK(!link->established);
        link->established = 1;
        if (!loop->serves)
            send_text(loop, link, 0);
        return;
    }
    if (event != RPMA_CONN_CLOSED)
        sample_fail(rpma_utils_conn_event_2str(event), __FILE__, __LINE__);
    CHECK(link->established && link->number == QUESTIONS);
    if (!link->over) {
        link->over = 1;
        MUST(rpma_conn_disconnect(link->conn));
    }
    remove_link(loop, link);
}

static void add_link(struct loop* loop, struct link* link, struct rpma_conn_req* request) {
    int fd = -1;

    link->at = (size_t)(link - loop->links) * 2 * SLOT;
    MUST(rpma_conn_req_recv(request, loop->memory.mr, link->at + (loop->serves ? 0 : SLOT), SLOT,
                            link));
    MUST(rpma_conn_req_connect(&request, NULL, &link->conn));
    MUST(rpma_conn_get_cq(link->conn, &link->cq));
    MUST(rpma_conn_get_rcq(link->conn, &link->rcq));
    MUST(rpma_conn_get_event_fd(link->conn, &fd));
    watch(loop, fd, &link->events, of_events, link);
    if (link->shared) {
        MUST(rpma_conn_get_compl_fd(link->conn, &fd));
        watch(loop, fd, &link->receives, of_channel, link);
    } else {
        MUST(rpma_cq_get_fd(link->cq, &fd));
        watch(loop, fd, &link->main, of_main, link);
    }
}

/* For every other connection. */
static struct rpma_conn_cfg* config_for(struct link* link, int number) {
    struct rpma_conn_cfg* config = NULL;

    link->shared = number % 2;
    if (link->shared) {
        MUST(rpma_conn_cfg_new(&config));
        MUST(rpma_conn_cfg_set_rcq_size(config, 8));
        MUST(rpma_conn_cfg_set_compl_channel(config, true));
    }
    return config;
}

static void of_requests(struct loop* loop, struct link* unused) {
    struct rpma_conn_req* request = NULL;
    struct link* link = &loop->links[loop->made];
    struct rpma_conn_cfg* config;
    int result;

    (void)unused;
    CHECK(loop->made < CONNECTIONS);
    config = config_for(link, loop->made);
    result = rpma_ep_next_conn_req(loop->ep, config, &request);
    MUST(rpma_conn_cfg_delete(&config));
    if (result == RPMA_E_NO_EVENT)
        return;
    MUST(result);
    ++loop->made;
    add_link(loop, link, request);
}

static void run(struct loop* loop) {
    while (loop->ended < CONNECTIONS) {
        struct epoll_event event;
        int count = epoll_wait(loop->epoll, &event, 1, 60000);
        CHECK(count == 1);
        struct watch* watch = event.data.ptr;
        watch->handle(loop, watch->link);
    }
}

static struct loop* begin(struct sample* sample, int serves) {
    struct loop* loop = calloc(1, sizeof(*loop));

    CHECK(loop);
    loop->sample = sample;
    loop->serves = serves;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    CHECK(loop->epoll >= 0);
    memory_create(sample, CONNECTIONS * 2 * SLOT, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, 0,
                  &loop->memory);
    return loop;
}

static void end(struct loop* loop) {
    uint32_t sum = 0;

    for (int i = 0; i < CONNECTIONS; ++i)
        sum += loop->links[i].number;
    CHECK(sum == CONNECTIONS * QUESTIONS);
    printf("%u questions over %d connections\n", sum, CONNECTIONS);
    memory_free(&loop->memory);
    close(loop->epoll);
    free(loop);
}

static void server(struct sample* sample) {
    struct loop* loop = begin(sample, 1);
    int fd = -1;

    loop->ep = listen_on(sample);
    MUST(rpma_ep_get_fd(loop->ep, &fd));
    watch(loop, fd, &loop->requests, of_requests, NULL);
    run(loop);
    unwatch(loop, fd);
    MUST(rpma_ep_shutdown(&loop->ep));
    end(loop);
}

static void client(struct sample* sample) {
    struct loop* loop = begin(sample, 0);

    for (int i = 0; i < CONNECTIONS; ++i) {
        struct rpma_conn_req* request = NULL;
        struct rpma_conn_cfg* config = config_for(&loop->links[i], i / 2);
        MUST(rpma_conn_req_new(sample->peer, sample->address, sample->port, config, &request));
        MUST(rpma_conn_cfg_delete(&config));
        add_link(loop, &loop->links[i], request);
    }
    run(loop);
    end(loop);
}

int main(int argc, char** argv) { return run_sample(argc, argv, server, client); }
