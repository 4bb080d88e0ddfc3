// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Threads that are cancelled (pthread_cancel(3)) in the calls of librpma that sleep, at any moment,
// over shared memory and over TCP: what they slept for goes on, and the process does. A plain
// program.
#include "../rpma/scene.h"
#include "cancelled.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dat::test {
namespace {

enum class Sleep { event, completion, completion_of_two, request };

struct Sleeper {
    Sleep in;
    Pair* pair;
    rpma_cq* cq;
    std::atomic<bool> begun{false};
};

void* sleep_in(void* argument) {
    auto& sleeper = *static_cast<Sleeper*>(argument);
    sleeper.begun = true;
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    rpma_conn_req* request = nullptr;
    rpma_cq* cq = nullptr;
    switch (sleeper.in) {
    case Sleep::event:
        rpma_conn_next_event(sleeper.pair->a, &event);
        break;
    case Sleep::completion:
        rpma_cq_wait(sleeper.cq);
        break;
    case Sleep::completion_of_two:
        rpma_conn_wait(sleeper.pair->a, 0, &cq, nullptr);
        break;
    case Sleep::request:
        rpma_ep_next_conn_req(sleeper.pair->listener.it, nullptr, &request);
        break;
    }
    return nullptr;
}

// A message, without a call that sleeps.
void exchange(Pair& pair, const char* what) {
    NEED(rpma_recv(pair.b, pair.theirs.mr, 0, 64, nullptr));
    NEED(rpma_send(pair.a, pair.mine.mr, 0, 64, RPMA_F_COMPLETION_ALWAYS, nullptr));
    ibv_wc wc{};
    while (rpma_cq_get_wc(pair.a.cq(), 1, &wc, nullptr) == RPMA_E_NO_COMPLETION) {
        sched_yield();
    }
    need(wc.status == IBV_WC_SUCCESS, what);
}

void round(Sleep in, int turns) {
    Config config;
    NEED(rpma_conn_cfg_set_compl_channel(config, in == Sleep::completion_of_two));
    Pair pair(config, config);
    Sleeper sleeper{in, &pair, pair.a.cq()};
    pthread_t thread{};
    need(pthread_create(&thread, nullptr, sleep_in, &sleeper) == 0, "no thread");
    while (!sleeper.begun) {
        sched_yield();
    }
    for (int i = 0; i < turns; ++i) { // before it sleeps, or when it does
        sched_yield();
    }
    need(pthread_cancel(thread) == 0, "not cancelled");
    void* result = nullptr;
    need(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED,
         "a call came back, though nothing had happened");
    exchange(pair, "a send after a thread was cancelled"); // all goes on
    NEED(rpma_conn_disconnect(pair.b));
    expect_event(pair.a, RPMA_CONN_CLOSED);
    Conn again;
    ask(again, pair.peer, pair.listener.port);
    rpma_conn_req* request = pair.listener.request();
    NEED(rpma_conn_req_delete(&request));
    expect_event(again, RPMA_CONN_REJECTED);
}

// What does not sleep is done although a cancellation is pending.
void pending_elsewhere() {
    Pair pair;
    std::FILE* const file = std::tmpfile();
    need(file && ftruncate(fileno(file), 4096) == 0, "no file");
    void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    need(mapped != MAP_FAILED, "no memory");
    std::fclose(file);
    run_with_cancellation_pending([&] {
        rpma_mr_local* durable = nullptr;
        NEED(rpma_mr_reg(pair.peer, mapped, 4096,
                         RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, &durable));
        NEED(rpma_mr_dereg(&durable));
        need(rpma_send(nullptr, nullptr, 0, 0, 0, nullptr) == RPMA_E_INVAL, "no connection");
        exchange(pair, "a send while a cancellation is pending");
    });
    munmap(mapped, 4096);
}

int over(const char* name) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(120);
        use_place(name);
        pending_elsewhere();
        for (int i = 0; i < 40; ++i) {
            for (const Sleep in :
                 {Sleep::event, Sleep::completion, Sleep::completion_of_two, Sleep::request}) {
                round(in, i % 20 * 4);
            }
        }
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

} // namespace
} // namespace dat::test

int main() { return dat::test::over("shm") == 0 && dat::test::over("tcp") == 0 ? 0 : 1; }
