// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Connections made and ended by the hundred, over shared memory and over TCP, in each way that
// they can end, with work and without: descriptors and memory are at the end as they were after a
// first part of the run. A plain program, for ThreadSanitizer as well.
//
//   soak            300 connections over each
//   soak COUNT
//
// Under a sanitizer memory is not compared: it keeps for a while what is freed.
#include "../transport/sanitized.h"
#include "../transport/usage.h"
#include "scene.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::test {
namespace {

struct Scene {
    Peer peer;
    Region mine{peer, 65536};
    Region theirs{peer, 65536};
    Listener listener{peer};
    SharedReceives shared{peer};
};

void wait_for(rpma_cq* cq, std::uint64_t context, ibv_wc_status status) {
    const ibv_wc wc = next_of(cq);
    need(wc.wr_id == context && wc.status == status,
         "a completion with status " + std::to_string(wc.status));
}

void work(const Scene& scene, const Conn& a, const Conn& b, bool shared) {
    const int flags = RPMA_F_COMPLETION_ALWAYS;
    if (shared) {
        NEED(rpma_srq_recv(scene.shared.it, scene.theirs.mr, 0, 64, nullptr));
    } else {
        NEED(rpma_recv(b, scene.theirs.mr, 0, 64, nullptr));
    }
    NEED(rpma_write(a, scene.theirs.remote, 0, scene.mine.mr, 0, 60'000, flags, nullptr));
    wait_for(a.cq(), 0, IBV_WC_SUCCESS);
    NEED(rpma_flush(a, scene.theirs.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, flags, nullptr));
    wait_for(a.cq(), 0, IBV_WC_SUCCESS);
    NEED(rpma_send(a, scene.mine.mr, 0, 64, flags, nullptr));
    wait_for(a.cq(), 0, IBV_WC_SUCCESS);
    wait_for(shared ? scene.shared.rcq() : b.cq(), 0, IBV_WC_SUCCESS);
}

// One connection; `kind` chooses how it is made and how it ends.
void round(const Scene& scene, int kind) {
    Conn a;
    Conn b;
    if (kind == 7) { // refused
        ask(a, scene.peer, scene.listener.port);
        rpma_conn_req* request = scene.listener.request();
        NEED(rpma_conn_req_delete(&request));
        expect_event(a, RPMA_CONN_REJECTED);
        return;
    }
    Config config;
    const bool shared = kind % 3 == 2;
    if (shared) {
        NEED(rpma_conn_cfg_set_srq(config, scene.shared.it));
    } else {
        NEED(rpma_conn_cfg_set_compl_channel(config, kind % 3 == 1));
    }
    ask(a, scene.peer, scene.listener.port, nullptr, "a question");
    answer(b, scene.listener.request(shared ? config.it : nullptr), "an answer");
    expect_event(a, RPMA_CONN_ESTABLISHED);
    expect_event(b, RPMA_CONN_ESTABLISHED);
    if (kind != 5) {
        work(scene, a, b, shared);
    }
    if (kind == 3) { // with a receive that nobody sends to
        NEED(rpma_recv(a, scene.mine.mr, 0, 64, nullptr));
    }
    if (kind == 6) { // neither side disconnects
        return;
    }
    const Conn& first = kind % 2 ? a : b;
    const Conn& second = kind % 2 ? b : a;
    NEED(rpma_conn_disconnect(first));
    expect_event(second, RPMA_CONN_CLOSED);
    if (kind != 4) {
        NEED(rpma_conn_disconnect(second));
        expect_event(first, RPMA_CONN_CLOSED);
    }
    if (kind == 3) {
        wait_for(a.cq(), 0, IBV_WC_WR_FLUSH_ERR);
    }
}

void soak(const char* name, int count) {
    use_place(name);
    Scene scene;
    Usage before{};
    const int first = std::max(count / 3, 16);
    for (int i = 0; i < first + count; ++i) {
        if (i == first) {
            before = usage();
        }
        round(scene, i % 8);
    }
    // What has just ended may keep a socket until the peer's end has been read.
    for (int i = 0; i < 6000 && open_descriptors() > before.descriptors; ++i) {
        poll(nullptr, 0, 10);
    }
    const Usage after = usage();
    std::printf("%s: %d connections: allocated %zu -> %zu, resident %zu -> %zu KiB, descriptors "
                "%zu -> %zu\n",
                name, count, before.allocated, after.allocated, before.resident / 1024,
                after.resident / 1024, before.descriptors, after.descriptors);
    std::fflush(stdout);
    need(after.descriptors <= before.descriptors, "descriptors were left open");
    need(kSanitized ||
             after.allocated <= before.allocated + static_cast<std::size_t>(count) * 32 + 65536,
         "memory leaks");
    need(kSanitized || after.resident <= before.resident + (2U << 20), "memory grows");
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : dat::test::kSanitized ? 80 : 300;
    const char* const only = std::getenv("DAT_TRANSPORT");
    if (only && *only) {
        dat::test::soak(only, count);
        return 0;
    }
    for (const char* name : {"shm", "tcp"}) {
        const pid_t child = fork();
        if (child == 0) {
            dat::test::soak(name, count);
            std::exit(0);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
            return 1;
        }
    }
    return 0;
}
