// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// dat_ia_close(ABRUPT) while other threads poll, wait, post and make objects on that IA: who
// sleeps gets DAT_ABORT, whoever else comes DAT_INVALID_HANDLE or what the call has to say, and
// nobody touches what has been destroyed. The Consumer is at fault by MT-2; this library is safe
// against it. A plain program, for the sanitizers too.
#include "dat_scene.h"

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace dat::test {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr int kRounds = 20;
#else
constexpr int kRounds = 120;
#endif
constexpr long kCalls = 40;      // that each thread gets through before the IA is closed
constexpr unsigned kLimit = 300; // seconds until a hang ends the program

// What the threads use: that of the round, and the one before.
struct Shown {
    std::atomic<DAT_IA_HANDLE> ia{DAT_HANDLE_NULL};
    std::atomic<DAT_CNO_HANDLE> cno{DAT_HANDLE_NULL};
    std::atomic<DAT_EVD_HANDLE> sent{DAT_HANDLE_NULL};
    std::atomic<DAT_EVD_HANDLE> received{DAT_HANDLE_NULL};
    std::atomic<DAT_EVD_HANDLE> events{DAT_HANDLE_NULL};
    std::atomic<DAT_EVD_HANDLE> async{DAT_HANDLE_NULL};
    std::atomic<DAT_EP_HANDLE> active{DAT_HANDLE_NULL};
    std::atomic<DAT_EP_HANDLE> passive{DAT_HANDLE_NULL};
    std::atomic<DAT_LMR_CONTEXT> context{0};
};

Shown g_shown;
std::atomic<bool> g_ends{false};

void show(const DatScene& scene) {
    g_shown.context = scene.context;
    g_shown.cno = scene.cno;
    g_shown.sent = scene.sent;
    g_shown.received = scene.received;
    g_shown.events = scene.events;
    g_shown.async = scene.async;
    g_shown.active = scene.active;
    g_shown.passive = scene.passive;
    g_shown.ia = scene.ia;
}

void allow(DAT_RETURN rc, const char* call) {
    switch (DAT_GET_TYPE(rc)) {
    case DAT_SUCCESS:
    case DAT_QUEUE_EMPTY:
    case DAT_TIMEOUT_EXPIRED:
    case DAT_ABORT:
    case DAT_INVALID_HANDLE:
    case DAT_INVALID_STATE:          // somebody else waits there, or the connection has ended
    case DAT_INSUFFICIENT_RESOURCES: // as many are posted as may be
        return;
    default:
        fail_at(__FILE__, __LINE__, std::string(call) + ": " + code_name(rc));
    }
}
#define ALLOW(call) allow(call, #call)

void poll() {
    DAT_EVENT event{};
    ALLOW(dat_evd_dequeue(g_shown.sent, &event));
    ALLOW(dat_evd_dequeue(g_shown.received, &event));
    ALLOW(dat_evd_dequeue(g_shown.events, &event));
    ALLOW(dat_evd_dequeue(g_shown.async, &event));
}

void wait() {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    ALLOW(dat_evd_wait(g_shown.received, DAT_TIMEOUT_INFINITE, 1, &event, &more));
}

void wait_async() {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    ALLOW(dat_evd_wait(g_shown.async, 1000, 1, &event, &more));
}

void wait_cno() {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    ALLOW(dat_cno_wait(g_shown.cno, DAT_TIMEOUT_INFINITE, &evd));
}

// The one thread that posts.
void post() {
    DatScene scene; // of which handles alone matter
    scene.context = g_shown.context;
    scene.active = g_shown.active;
    scene.passive = g_shown.passive;
    const auto allow_post = [](DAT_RETURN rc) {
        // Its context may be of another round than its endpoint.
        if (DAT_GET_TYPE(rc) != DAT_PRIVILEGES_VIOLATION &&
            DAT_GET_TYPE(rc) != DAT_PROTECTION_VIOLATION &&
            DAT_GET_TYPE(rc) != DAT_INVALID_PARAMETER) {
            ALLOW(rc);
        }
    };
    allow_post(scene.receive(64));
    allow_post(scene.send(64));
}

// Makes objects, and uses them, on an IA that may be closing.
void make() {
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    const DAT_IA_HANDLE ia = g_shown.ia;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    ALLOW(dat_ia_query(ia, &async, 0, nullptr, 0, nullptr));
    ALLOW(dat_pz_create(ia, &pz));
    ALLOW(dat_evd_create(ia, 8, g_shown.cno, streams(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG),
                         &evd));
    DAT_EVENT event{};
    if (evd != DAT_HANDLE_NULL) {
        ALLOW(dat_evd_dequeue(evd, &event));
        if (pz != DAT_HANDLE_NULL) {
            ALLOW(dat_ep_create(ia, pz, evd, evd, evd, nullptr, &ep));
        }
    }
    if (ep != DAT_HANDLE_NULL) {
        DAT_EP_STATE state{};
        ALLOW(dat_ep_get_status(ep, &state, nullptr, nullptr));
        ALLOW(dat_ep_free(ep));
    }
    if (evd != DAT_HANDLE_NULL) {
        ALLOW(dat_evd_free(evd));
    }
    if (pz != DAT_HANDLE_NULL) {
        ALLOW(dat_pz_free(pz));
    }
}

// Each counts its calls, so that all of them are known to be at it.
struct Worker {
    explicit Worker(void (*work)())
        : thread([this, work] {
              while (!g_ends) {
                  work();
                  ++calls;
              }
          }) {}
    std::atomic<long> calls{0};
    std::thread thread;
};

void expect_gone(const DatScene& scene) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    for (const DAT_RETURN rc :
         {dat_evd_dequeue(scene.sent, &event), dat_evd_dequeue(scene.events, &event),
          dat_evd_dequeue(scene.async, &event),
          dat_evd_wait(scene.received, DAT_TIMEOUT_INFINITE, 1, &event, &more),
          dat_cno_wait(scene.cno, DAT_TIMEOUT_INFINITE, &evd), scene.send(8), scene.receive(8),
          dat_ep_disconnect(scene.active, DAT_CLOSE_ABRUPT_FLAG),
          dat_ia_close(scene.ia, DAT_CLOSE_ABRUPT_FLAG)}) {
        DAT_REQUIRE(DAT_GET_TYPE(rc) == DAT_INVALID_HANDLE, code_name(rc));
    }
}

void close_beneath_all() {
    std::array<Worker*, 8> workers{};
    std::size_t n = 0;
    for (void (*work)() : {poll, poll, wait, wait_async, wait_cno, post, make}) {
        workers[n++] = new Worker(work);
    }
    for (int round = 0; round < kRounds; ++round) {
        DatScene scene;
        scene.open();
        scene.connect();
        show(scene);
        // Those that poll and post go on by themselves, and are at it.
        const std::array before{workers[0]->calls.load(), workers[1]->calls.load(),
                                workers[5]->calls.load()};
        await("the threads", [&] {
            std::this_thread::yield();
            return workers[0]->calls > before[0] + kCalls &&
                   workers[1]->calls > before[1] + kCalls && workers[5]->calls > before[2] + kCalls;
        });
        DAT_MUST(dat_ia_close(scene.ia, DAT_CLOSE_ABRUPT_FLAG));
        expect_gone(scene);
    }
    g_ends = true;
    for (Worker* each : workers) {
        if (each) {
            each->thread.join();
            delete each;
        }
    }
    g_ends = false;
}

// One of them closes it, and several IAs are closed at once.
void close_together() {
    for (int round = 0; round < kRounds / 2; ++round) {
        std::array<DatScene, 2> scenes;
        for (DatScene& scene : scenes) {
            scene.open();
        }
        std::atomic<int> closed{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([&, ia = scenes[static_cast<std::size_t>(i % 2)].ia] {
                const DAT_RETURN rc = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
                DAT_REQUIRE(rc == DAT_SUCCESS || DAT_GET_TYPE(rc) == DAT_INVALID_HANDLE,
                            code_name(rc));
                closed += rc == DAT_SUCCESS ? 1 : 0;
            });
        }
        for (std::thread& each : threads) {
            each.join();
        }
        DAT_REQUIRE(closed == 2, std::to_string(closed) + " were closed");
    }
}

// A thread that sleeps on another IA, as long as it likes, holds up nobody.
void sleeper_elsewhere() {
    DatScene other;
    other.open();
    std::atomic<bool> woken{false};
    std::thread sleeper([&] {
        DAT_EVENT event{};
        DAT_COUNT more = 0;
        const DAT_RETURN rc = dat_evd_wait(other.received, DAT_TIMEOUT_INFINITE, 1, &event, &more);
        DAT_REQUIRE(DAT_GET_TYPE(rc) == DAT_ABORT, code_name(rc));
        woken = true;
    });
    await("the sleeper", [&] {
        DAT_EVENT event{};
        return DAT_GET_TYPE(dat_evd_dequeue(other.received, &event)) == DAT_INVALID_STATE; // EVD-17
    });
    DatScene scene;
    scene.open();
    DAT_MUST(dat_ia_close(scene.ia, DAT_CLOSE_ABRUPT_FLAG));
    DAT_REQUIRE(!woken, "it was woken by another IA's end");
    DAT_MUST(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
    sleeper.join();
}

// The agent of a CNO closes the IA that it belongs to, or frees the CNO.
struct Called {
    DatScene scene;
    bool closes = false;
    std::atomic<bool> done{false};
};

void be_called(DAT_PVOID instance, DAT_EVD_HANDLE) {
    Called& called = *static_cast<Called*>(instance);
    if (called.closes) {
        DAT_MUST(dat_ia_close(called.scene.ia, DAT_CLOSE_ABRUPT_FLAG));
    } else {
        DAT_MUST(dat_evd_modify_cno(called.scene.sent, DAT_HANDLE_NULL));
        DAT_MUST(dat_cno_free(called.scene.cno));
    }
    called.done = true;
}

void agent_ends_it() {
    for (const bool closes : {false, true}) {
        Called called;
        called.closes = closes;
        called.scene.open();
        called.scene.connect();
        DAT_MUST(dat_cno_modify_agent(called.scene.cno, {&called, be_called}));
        DAT_MUST(called.scene.receive(8));
        DAT_MUST(called.scene.send(8));
        await("the agent", [&] {
            std::this_thread::yield();
            return called.done.load();
        });
        const DAT_RETURN rc = dat_ia_close(called.scene.ia, DAT_CLOSE_ABRUPT_FLAG);
        DAT_REQUIRE((DAT_GET_TYPE(rc) == DAT_INVALID_HANDLE) == closes, code_name(rc));
    }
}

// A child has none of its parent's threads, and does not wait for them.
void child_of_fork() {
#ifndef __SANITIZE_THREAD__ // under which a child of a process with threads may do nothing
    DatScene scene;
    scene.open();
    show(scene);
    Worker poller([] {
        DAT_EVENT event{};
        ALLOW(dat_evd_dequeue(g_shown.sent, &event));
    });
    for (int i = 0; i < 20; ++i) {
        const long before = poller.calls;
        await("the poller", [&] { return poller.calls > before; });
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            DatScene own;
            own.open();
            std::thread([&own] {
                DAT_EVENT event{};
                ALLOW(dat_evd_dequeue(own.sent, &event));
            }).join();
            DAT_MUST(dat_ia_close(own.ia, DAT_CLOSE_ABRUPT_FLAG));
            std::_Exit(0);
        }
        int status = 0;
        DAT_REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0,
                    "a child of fork(2) could not close its own IA");
    }
    DAT_MUST(dat_ia_close(scene.ia, DAT_CLOSE_ABRUPT_FLAG));
    g_ends = true;
    poller.thread.join();
    g_ends = false;
#endif
}

void run(const char*) {
    alarm(kLimit);
    close_together();
    sleeper_elsewhere();
    agent_ends_it();
    child_of_fork();
    close_beneath_all();
}

} // namespace
} // namespace dat::test

int main() { return dat::test::run_over_links(dat::test::run); }
