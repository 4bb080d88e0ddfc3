/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program as it was built against version 0.1: compiled with the header of that version
 * (test/spec/abi/0.1), and run with the provider at hand. Two processes: the parent listens, the
 * child connects; connections with private data, messages of all sizes, RDMA, an atomic, remote CQ
 * data, a window, both kinds of end, an endpoint that is used again. What is filled for the program
 * has guards around it.
 *
 *   program
 *
 * DAT_PEER_PROVIDER_PATH  where the child finds the provider, if not by FI_PROVIDER_PATH: another
 *                         version of it. DAT_PEER_SHM is the child's FI_DAT_SHM.
 *
 * Exit status 0: all was right; 1: a line says what was not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext_dat.h>
#include <rdma/fi_rma.h>

#ifdef FI_DAT_EXT_VERSION
#error this is not the header of version 0.1, which had no version
#endif

enum { kSize = 1 << 20, kLimitMs = 60000 };
static const char kAsked[] = "data of the request";
static const char kAnswer[] = "data of the answer";
static const char* side = "server";

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail(__LINE__, #condition);                                                            \
    } while (0)

static void fail(int line, const char* what) {
    fprintf(stderr, "FAILED: %s, program.c:%d: %s\n", side, line, what);
    _exit(1);
}

struct world {
    struct fi_info* info;
    struct fid_fabric* fabric;
    struct fid_eq* eq;
    struct fid_domain* domain;
    struct fid_cq* cq;
    struct fid_mr* mr;
    unsigned char*
        memory; /* the first half is sent from and received in, the second is the peer's */
    struct fi_dat_ops_domain* domain_ops;
    struct fi_dat_ops_fabric* fabric_ops;
};

/* How the other side reaches memory. */
struct remote {
    uint64_t address;
    uint64_t key;
};

static void open_world(struct world* w) {
    struct fi_info* hints = fi_allocinfo();
    struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};

    hints->ep_attr->type = FI_EP_MSG;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup("dat");
    REQUIRE(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &w->info) == 0);
    fi_freeinfo(hints);
    REQUIRE(fi_fabric(w->info->fabric_attr, &w->fabric, NULL) == 0);
    REQUIRE(fi_eq_open(w->fabric, &eq, &w->eq, NULL) == 0);
    REQUIRE(fi_domain(w->fabric, w->info, &w->domain, NULL) == 0);
    REQUIRE(fi_cq_open(w->domain, &cq, &w->cq, NULL) == 0);
    w->memory = calloc(2, kSize);
    REQUIRE(w->memory);
    REQUIRE(fi_mr_reg(w->domain, w->memory, 2 * kSize,
                      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                      0, 0, &w->mr, NULL) == 0);
    REQUIRE(fi_open_ops(&w->domain->fid, FI_DAT_DOMAIN_OPS, 0, (void**)&w->domain_ops, NULL) == 0);
    REQUIRE(fi_open_ops(&w->fabric->fid, FI_DAT_FABRIC_OPS, 0, (void**)&w->fabric_ops, NULL) == 0);
    REQUIRE(w->domain_ops->size >= sizeof *w->domain_ops);
    REQUIRE(w->fabric_ops->size >= sizeof *w->fabric_ops);
}

static void close_world(struct world* w) {
    REQUIRE(fi_close(&w->mr->fid) == 0);
    REQUIRE(fi_close(&w->cq->fid) == 0);
    REQUIRE(fi_close(&w->domain->fid) == 0);
    REQUIRE(fi_close(&w->eq->fid) == 0);
    REQUIRE(fi_close(&w->fabric->fid) == 0);
    fi_freeinfo(w->info);
    free(w->memory);
}

/* What is filled stays within what the program has for it. */
static void check_guards(struct world* w, struct fid_ep* ep, struct fi_dat_ops_ep* ops) {
    struct {
        uint64_t before;
        struct fi_dat_limits limits;
        uint32_t after[4];
    } l;
    struct {
        uint64_t before;
        struct fi_dat_ep_status status;
        uint32_t after[4];
    } s;

    memset(&l, 0xa5, sizeof l);
    REQUIRE(w->domain_ops->limits(w->domain, &l.limits) == 0);
    for (int i = 0; i < 4; ++i)
        REQUIRE(l.after[i] == 0xa5a5a5a5);
    REQUIRE(l.before == 0xa5a5a5a5a5a5a5a5 && l.limits.reads_in > 0 && l.limits.reads_out > 0);
    memset(&s, 0xa5, sizeof s);
    REQUIRE(ops->status(ep, &s.status) == 0);
    for (int i = 0; i < 4; ++i)
        REQUIRE(s.after[i] == 0xa5a5a5a5);
    REQUIRE(s.before == 0xa5a5a5a5a5a5a5a5 && s.status.state == FI_DAT_CONNECTED);
}

static struct fid_ep* open_ep(struct world* w, struct fi_info* info, struct fi_dat_ops_ep** ops) {
    struct fid_ep* ep;

    REQUIRE(fi_endpoint(w->domain, info, &ep, NULL) == 0);
    REQUIRE(fi_ep_bind(ep, &w->eq->fid, 0) == 0);
    REQUIRE(fi_ep_bind(ep, &w->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    REQUIRE(fi_enable(ep) == 0);
    REQUIRE(fi_open_ops(&ep->fid, FI_DAT_EP_OPS, 0, (void**)ops, NULL) == 0);
    REQUIRE((*ops)->size >= sizeof **ops);
    return ep;
}

static void expect_event(struct world* w, uint32_t wanted, const char* data) {
    struct {
        struct fi_eq_cm_entry entry;
        char data[256];
    } got;
    uint32_t event = 0;
    ssize_t size = fi_eq_sread(w->eq, &event, &got, sizeof got, kLimitMs, 0);

    REQUIRE(size >= (ssize_t)sizeof got.entry);
    REQUIRE(event == wanted);
    REQUIRE(!data || ((size_t)size >= sizeof got.entry + strlen(data) &&
                      memcmp(got.entry.data, data, strlen(data)) == 0));
}

static struct fi_cq_data_entry expect_completion(struct world* w, uint64_t flags) {
    struct fi_cq_data_entry entry = {0};
    ssize_t count;

    do {
        count = fi_cq_sread(w->cq, &entry, 1, NULL, kLimitMs);
    } while (count == -FI_EINTR);
    REQUIRE(count == 1);
    REQUIRE((entry.flags & flags) == flags);
    return entry;
}

static void fill(unsigned char* at, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; ++i)
        at[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

static int is_filled(const unsigned char* at, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; ++i)
        if (at[i] != (unsigned char)(seed + i * 7 + (i >> 8)))
            return 0;
    return 1;
}

/* A message each way; who sends first is the client. */
static void post_receive(struct world* w, struct fid_ep* ep) {
    REQUIRE(fi_recv(ep, w->memory + kSize / 2, kSize / 2, fi_mr_desc(w->mr), 0, NULL) == 0);
}

static void send_message(struct world* w, struct fid_ep* ep, size_t size) {
    REQUIRE(fi_send(ep, w->memory, size, fi_mr_desc(w->mr), 0, NULL) == 0);
    expect_completion(w, FI_SEND);
}

static void send_filled(struct world* w, struct fid_ep* ep, size_t size, unsigned seed) {
    fill(w->memory, size, seed);
    send_message(w, ep, size);
}

static void receive_filled(struct world* w, struct fid_ep* ep, size_t size, unsigned seed) {
    struct fi_cq_data_entry entry = expect_completion(w, FI_RECV);

    REQUIRE(entry.len == size);
    REQUIRE(is_filled(w->memory + kSize / 2, size, seed));
    post_receive(w, ep);
}

static struct remote own_memory(struct world* w, struct fid_mr* mr) {
    struct remote own = {0, fi_mr_key(mr)};

    if (w->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
        own.address = (uintptr_t)(w->memory + kSize);
    else
        own.address = mr == w->mr ? kSize : 0;
    return own;
}

static struct remote exchange_memory(struct world* w, struct fid_ep* ep, struct remote own) {
    struct remote remote;

    memcpy(w->memory, &own, sizeof own);
    /* Two completions, in either order. */
    REQUIRE(fi_send(ep, w->memory, sizeof own, fi_mr_desc(w->mr), 0, NULL) == 0);
    expect_completion(w, 0);
    expect_completion(w, 0);
    memcpy(&remote, w->memory + kSize / 2, sizeof remote);
    post_receive(w, ep);
    return remote;
}

static const size_t sizes[] = {0, 1, 64, 4096, 65536, kSize / 2};
enum { kSizes = sizeof sizes / sizeof *sizes, kData = 0x12345678, kMarker = 77 };

/* All that the client does on the first connection; serve() is its counterpart, line by line. */
static void work(struct world* w, struct fid_ep* ep, struct fi_dat_ops_ep* ops) {
    struct remote there;

    check_guards(w, ep, ops);
    for (unsigned i = 0; i < kSizes; ++i) {
        send_filled(w, ep, sizes[i], i);
        receive_filled(w, ep, sizes[i], i + 100);
    }
    there = exchange_memory(w, ep, own_memory(w, w->mr));

    for (unsigned i = 1; i < kSizes; ++i) {
        fill(w->memory, sizes[i], i);
        REQUIRE(fi_write(ep, w->memory, sizes[i], fi_mr_desc(w->mr), 0, there.address, there.key,
                         NULL) == 0);
        expect_completion(w, FI_WRITE);
        send_filled(w, ep, 8, kMarker);
        receive_filled(w, ep, 8, kMarker);
        memset(w->memory, 0, sizes[i]);
        REQUIRE(fi_read(ep, w->memory, sizes[i], fi_mr_desc(w->mr), 0, there.address, there.key,
                        NULL) == 0);
        expect_completion(w, FI_READ);
        REQUIRE(is_filled(w->memory, sizes[i], i));
    }

    memset(w->memory, 0, 8);
    w->memory[0] = 5;
    REQUIRE(fi_fetch_atomic(ep, w->memory, 1, fi_mr_desc(w->mr), w->memory + 64, fi_mr_desc(w->mr),
                            0, there.address, there.key, FI_UINT64, FI_SUM, NULL) == 0);
    expect_completion(w, FI_ATOMIC);
    REQUIRE(is_filled(w->memory + 64, 8, kSizes - 1));
    send_filled(w, ep, 8, kMarker);

    fill(w->memory, 64, 3);
    REQUIRE(fi_senddata(ep, w->memory, 64, fi_mr_desc(w->mr), kData, 0, NULL) == 0);
    expect_completion(w, FI_SEND);

    /* Through the window that the server has bound. */
    receive_filled(w, ep, 8, kMarker);
    there = exchange_memory(w, ep, own_memory(w, w->mr));
    fill(w->memory, 4096, 9);
    REQUIRE(fi_write(ep, w->memory, 4096, fi_mr_desc(w->mr), 0, there.address, there.key, NULL) ==
            0);
    expect_completion(w, FI_WRITE);
    send_filled(w, ep, 8, kMarker);
}

static void serve(struct world* w, struct fid_ep* ep, struct fi_dat_ops_ep* ops) {
    struct fi_cq_data_entry entry;
    struct fi_dat_bind bind = {.size = sizeof bind};
    struct fid_mr* window;
    struct remote own;
    uint64_t sum, before;

    check_guards(w, ep, ops);
    for (unsigned i = 0; i < kSizes; ++i) {
        receive_filled(w, ep, sizes[i], i);
        send_filled(w, ep, sizes[i], i + 100);
    }
    exchange_memory(w, ep, own_memory(w, w->mr));

    for (unsigned i = 1; i < kSizes; ++i) {
        receive_filled(w, ep, 8, kMarker);
        REQUIRE(is_filled(w->memory + kSize, sizes[i], i));
        send_filled(w, ep, 8, kMarker);
    }

    receive_filled(w, ep, 8, kMarker);
    fill((unsigned char*)&before, sizeof before, kSizes - 1);
    memcpy(&sum, w->memory + kSize, sizeof sum);
    REQUIRE(sum == before + 5);

    entry = expect_completion(w, FI_RECV | FI_REMOTE_CQ_DATA);
    REQUIRE(entry.data == kData && entry.len == 64);
    REQUIRE(is_filled(w->memory + kSize / 2, 64, 3));
    post_receive(w, ep);

    REQUIRE(w->domain_ops->window(w->domain, NULL, 0, &window, NULL) == 0);
    bind.window = window;
    bind.mr = w->mr;
    bind.addr = w->memory + kSize;
    bind.len = 4096;
    bind.access = FI_REMOTE_WRITE;
    bind.flags = FI_COMPLETION;
    REQUIRE(ops->bind_window(ep, &bind, &own.key) == 0);
    expect_completion(w, FI_DAT_BIND);
    own.address = w->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)bind.addr : 0;
    send_filled(w, ep, 8, kMarker);
    exchange_memory(w, ep, own);
    receive_filled(w, ep, 8, kMarker);
    REQUIRE(is_filled(w->memory + kSize, 4096, 9));
    REQUIRE(fi_close(&window->fid) == 0);
}

/* The one posted receive is flushed, and then the connection's only end is there. */
static void expect_end(struct world* w, struct fid_ep* ep, struct fi_dat_ops_ep* ops) {
    struct fi_dat_ep_status status;
    struct fi_cq_err_entry error = {0};
    struct fi_cq_data_entry entry;

    expect_event(w, FI_SHUTDOWN, NULL);
    REQUIRE(fi_cq_read(w->cq, &entry, 1) == -FI_EAVAIL);
    REQUIRE(fi_cq_readerr(w->cq, &error, 0) == 1 && error.err == FI_ECANCELED);
    REQUIRE(fi_cq_read(w->cq, &entry, 1) == -FI_EAGAIN);
    REQUIRE(ops->status(ep, &status) == 0);
    REQUIRE(status.state == FI_DAT_DISCONNECTED && status.end == FI_DAT_END_DISCONNECTED);
    REQUIRE(status.recv_idle && status.request_idle);
}

static void run_client(int from) {
    struct world w = {0};
    struct fi_dat_ops_ep* ops;
    struct fid_ep* ep;
    struct sockaddr_storage to;

    open_world(&w);
    REQUIRE(read(from, &to, sizeof to) == sizeof to);
    ep = open_ep(&w, w.info, &ops);
    for (int how = FI_DAT_GRACEFUL; how >= FI_DAT_ABRUPT; --how) {
        post_receive(&w, ep);
        REQUIRE(ops->set_connect_timeout(ep, 30000000) == 0);
        REQUIRE(fi_connect(ep, &to, kAsked, sizeof kAsked) == 0);
        expect_event(&w, FI_CONNECTED, kAnswer);
        if (how == FI_DAT_GRACEFUL)
            work(&w, ep, ops);
        else /* what it has said has arrived before it goes */
            receive_filled(&w, ep, 8, kMarker);
        REQUIRE(ops->disconnect(ep, how) == 0);
        expect_end(&w, ep, ops);
        REQUIRE(ops->reset(ep) == 0);
    }
    REQUIRE(fi_close(&ep->fid) == 0);
    close_world(&w);
}

static void run_server(int to) {
    struct world w = {0};
    struct fi_dat_ops_ep* ops;
    struct fi_dat_ops_pep* pep_ops;
    struct fid_pep* pep;
    struct fid_ep* ep;
    struct sockaddr_storage name;
    size_t size = sizeof name;
    struct {
        struct fi_eq_cm_entry entry;
        char data[256];
    } request;
    uint32_t event = 0;

    open_world(&w);
    REQUIRE(fi_passive_ep(w.fabric, w.info, &pep, NULL) == 0);
    REQUIRE(fi_open_ops(&pep->fid, FI_DAT_PEP_OPS, 0, (void**)&pep_ops, NULL) == 0);
    REQUIRE(pep_ops->size >= sizeof *pep_ops);
    REQUIRE(fi_pep_bind(pep, &w.eq->fid, 0) == 0);
    REQUIRE(fi_listen(pep) == 0);
    memset(&name, 0, sizeof name);
    REQUIRE(fi_getname(&pep->fid, &name, &size) == 0);
    REQUIRE(write(to, &name, sizeof name) == sizeof name);
    for (int how = FI_DAT_GRACEFUL; how >= FI_DAT_ABRUPT; --how) {
        REQUIRE(fi_eq_sread(w.eq, &event, &request, sizeof request, kLimitMs, 0) >=
                (ssize_t)(sizeof request.entry + sizeof kAsked));
        REQUIRE(event == FI_CONNREQ);
        REQUIRE(memcmp(request.entry.data, kAsked, sizeof kAsked) == 0);
        ep = open_ep(&w, request.entry.info, &ops);
        post_receive(&w, ep);
        REQUIRE(fi_accept(ep, kAnswer, sizeof kAnswer) == 0);
        expect_event(&w, FI_CONNECTED, NULL);
        if (how == FI_DAT_GRACEFUL)
            serve(&w, ep, ops);
        else
            send_filled(&w, ep, 8, kMarker);
        expect_end(&w, ep, ops);
        REQUIRE(fi_close(&ep->fid) == 0);
        fi_freeinfo(request.entry.info);
    }
    REQUIRE(fi_close(&pep->fid) == 0);
    close_world(&w);
}

int main(void) {
    const char *path = getenv("DAT_PEER_PROVIDER_PATH"), *shm = getenv("DAT_PEER_SHM");
    int ends[2], status = 1;
    pid_t child;

    REQUIRE(pipe(ends) == 0);
    fflush(NULL);
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        side = "client";
        close(ends[1]);
        if (path)
            setenv("FI_PROVIDER_PATH", path, 1);
        if (shm)
            setenv("FI_DAT_SHM", shm, 1);
        run_client(ends[0]);
        exit(0);
    }
    close(ends[0]);
    run_server(ends[1]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    REQUIRE(status == 0);
    puts("two connections: all was right");
    return 0;
}
