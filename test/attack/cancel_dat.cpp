// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Threads that are cancelled in dat_* calls (pthread_cancel(3), deferred): where dat_evd_wait() or
// dat_cno_wait() sleeps they end there, in no other call, and what they leave is as if they had
// returned. A plain program of either version of the API.
// Usage: cancel_dat [SEED].
#include "../transport/dice.h"
#include "cancelled.h"
#include "dat_scene.h"
#include "open_descriptors.h"

#if DAT_TEST_API == 20
#include <dat2/dat_ib_extensions.h>
#endif

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

namespace dat::test {
namespace {

constexpr int kRounds = 4;    // of the deterministic cases
constexpr int kThreads = 3;   // that are cancelled at random
constexpr int kVictims = 120; // altogether
std::uint32_t g_seed = 1;

bool take(DAT_EVD_HANDLE evd) {
    DAT_EVENT event{};
    const DAT_RETURN rc = dat_evd_dequeue(evd, &event);
    DAT_REQUIRE(rc == DAT_SUCCESS || DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY, code_name(rc));
    return rc == DAT_SUCCESS;
}

void exchange(const DatScene& scene) {
    for (const std::size_t size : {std::size_t{8}, DatScene::kRoom}) {
        DAT_MUST(scene.receive(size));
        DAT_MUST(scene.send(size));
        await("what was sent", [&] { return take(scene.sent); });
        await("what was received", [&] { return take(scene.received); });
    }
}

void sleep_for_event(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout_us) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    DAT_MUST(dat_evd_wait(evd, timeout_us, 1, &event, &more));
}

void exchange_asleep(const DatScene& scene) {
    constexpr DAT_TIMEOUT kLong = 60'000'000;
    DAT_MUST(scene.receive(8));
    DAT_MUST(scene.send(8));
    sleep_for_event(scene.received, kLong);
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_MUST(dat_cno_wait(scene.cno, kLong, &evd));
    DAT_REQUIRE(evd == scene.sent, "the CNO tells of another EVD");
    sleep_for_event(scene.sent, kLong);
}

// Objects of each kind; an adapter too.
void churn(const DatScene& scene) {
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    DAT_OS_WAIT_PROXY_AGENT none = DAT_OS_WAIT_PROXY_AGENT_NULL;
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    DAT_MUST(dat_cno_create(scene.ia, none, &cno));
    DAT_MUST(dat_evd_create(scene.ia, 8, cno, streams(DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG),
                            &evd));
    DAT_MUST(dat_ep_create(scene.ia, scene.pz, evd, evd, evd, nullptr, &ep));
    DAT_MUST(scene.begin_connect(ep));
    DAT_MUST(dat_ep_free(ep));
    DAT_MUST(dat_evd_free(evd));
    DAT_MUST(dat_cno_free(cno));
    DatScene other;
    other.open();
    DAT_MUST(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
#if DAT_TEST_API == 20
    DAT_MUST(dat_extension_op(scene.active, DAT_IB_PRINT_COUNTERS_OP, DCNT_EP_ALL_COUNTERS, 0));
#endif
}

void list_providers() {
    std::array<DAT_PROVIDER_INFO, 8> room{};
    std::array<DAT_PROVIDER_INFO*, 8> list{};
    std::transform(room.begin(), room.end(), list.begin(), [](auto& each) { return &each; });
    DAT_COUNT count = 0;
    DAT_MUST(dat_registry_list_providers(8, &count, list.data()));
}

// What looks into files, and into the process itself.
void look_around(const DatScene& scene) {
    void* const shared =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    DAT_REQUIRE(shared != MAP_FAILED, "no memory");
    DAT_REGION_DESCRIPTION region{};
    region.for_shared_memory.virtual_address = shared;
    DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
    DAT_LMR_CONTEXT context = 0;
    DAT_RMR_CONTEXT at_peer = 0;
    DAT_MUST(lmr_create(scene.ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, 4096, scene.pz,
                        DAT_MEM_PRIV_ALL_FLAG, &lmr, &context, &at_peer, nullptr, nullptr));
    DAT_MUST(dat_lmr_free(lmr));
    munmap(shared, 4096);
    char absent[] = "no_such_device/1";
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_REQUIRE(dat_ia_open(absent, 8, &async, &ia) != DAT_SUCCESS, "an adapter that is none");
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    DAT_REQUIRE(dat_ep_create(scene.ia, scene.pz, scene.events, scene.sent, scene.events, nullptr,
                              &ep) != DAT_SUCCESS,
                "an EVD that takes no completions");
}

struct Sleep {
    const char* name;
    void (*call)(const DatScene&);
    int most; // threads in it at once
};

const Sleep kSleeps[] = {
    {"dat_evd_wait", [](const DatScene& s) { sleep_for_event(s.received, DAT_TIMEOUT_INFINITE); },
     1},
    {"dat_evd_wait with a CNO",
     [](const DatScene& s) { sleep_for_event(s.sent, DAT_TIMEOUT_INFINITE); }, 1},
    {"dat_evd_wait for connections",
     [](const DatScene& s) { sleep_for_event(s.events, DAT_TIMEOUT_INFINITE); }, 1},
    {"dat_cno_wait",
     [](const DatScene& s) {
         DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
         dat_cno_wait(s.cno, DAT_TIMEOUT_INFINITE, &evd);
     },
     2},
};

// One alone, and several in the same call; then the objects work as before.
void cancelled_asleep(const DatScene& scene) {
    std::size_t open = 0; // descriptors, behind the first round
    for (int round = 0; round < kRounds; ++round) {
        for (const Sleep& each : kSleeps) {
            std::vector<std::unique_ptr<Cancelled>> asleep;
            for (int i = 0; i < each.most; ++i) {
                asleep.push_back(std::make_unique<Cancelled>([&] { each.call(scene); }));
            }
            for (const auto& thread : asleep) {
                thread->await_sleep();
            }
            for (const auto& thread : asleep) {
                thread->cancel();
            }
            for (const auto& thread : asleep) {
                DAT_REQUIRE(thread->join(),
                            std::string(each.name) + " is no point of cancellation");
            }
            exchange(scene);
            exchange_asleep(scene);
        }
        const std::size_t now = open_descriptors().size();
        DAT_REQUIRE(round == 0 || now == open, "who was cancelled leaves a descriptor");
        open = now;
    }
}

// A request to cancel is pending: what does not sleep is done all the same.
void pending_elsewhere(DatScene& scene) {
    run_with_cancellation_pending([&] {
        exchange(scene);
        churn(scene);
        scene.read_event(); // of the churn
        DAT_MUST(scene.receive(8));
        DAT_MUST(scene.send(8));
        await("what was sent", [&] { return take(scene.sent); });
        await("what was received", [&] { return take(scene.received); });
    });
    exchange(scene);
}

void anything(const DatScene& scene, Dice& dice) {
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    switch (dice.below(8)) {
    case 0:
        dat_evd_wait(scene.sent, dice.below(3000), 1, &event, &more);
        break;
    case 1:
        dat_evd_wait(scene.received, dice.below(3000), 1, &event, &more);
        break;
    case 2:
        dat_cno_wait(scene.cno, dice.below(3000), &evd);
        break;
    case 3:
        dat_evd_dequeue(scene.sent, &event);
        break;
    case 4:
        dat_evd_dequeue(scene.received, &event);
        break;
    case 5:
        dat_evd_wait(scene.events, dice.below(3000), 1, &event, &more);
        break;
    case 6: {
        DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
        if (dat_pz_create(scene.ia, &pz) == DAT_SUCCESS) {
            dat_pz_free(pz);
        }
        break;
    }
    default:
        pthread_testcancel();
    }
}

void cancelled_at_random(const DatScene& scene) {
    Dice dice(g_seed);
    for (int victims = 0; victims < kVictims; victims += kThreads) {
        std::vector<std::unique_ptr<Cancelled>> threads;
        for (int i = 0; i < kThreads; ++i) {
            threads.push_back(std::make_unique<Cancelled>([&scene, seed = dice.below(1U << 16)] {
                for (Dice own(seed);;) {
                    anything(scene, own);
                }
            }));
        }
        for (std::uint32_t n = dice.below(200); n > 0; --n) { // the one that posts (MT-2)
            scene.receive(DatScene::kRoom);
            scene.send(dice.below(2) != 0 ? 8 : DatScene::kRoom);
            sched_yield();
        }
        for (const auto& each : threads) {
            each->cancel();
        }
        for (const auto& each : threads) {
            DAT_REQUIRE(each->join(), "a thread was not cancelled");
        }
    }
}

void run(const char*) {
    std::setvbuf(stdout, nullptr, _IONBF, 0); // so that printing is a system call
    setenv("DAPL_DBG_TYPE", "3", 1);          // so is the line that a refused call writes
    {
        DatScene scene;
        run_with_cancellation_pending([&] { // the first calls of the process
            list_providers();
            scene.open();
            scene.connect();
            look_around(scene);
        });
        cancelled_asleep(scene);
        pending_elsewhere(scene);
        DAT_MUST(dat_ia_close(scene.ia, DAT_CLOSE_ABRUPT_FLAG));
    }
    const std::size_t open = open_descriptors().size();
    DatScene scene;
    scene.open();
    scene.connect();
    cancelled_at_random(scene);
    // Nobody is left in a wait, and the CNO is free.
    for (const DAT_EVD_HANDLE evd : {scene.sent, scene.received, scene.events}) {
        DAT_EVENT event{};
        const DAT_RETURN rc = dat_evd_dequeue(evd, &event);
        DAT_REQUIRE(DAT_GET_TYPE(rc) != DAT_INVALID_STATE, code_name(rc));
    }
    DAT_MUST(dat_evd_modify_cno(scene.sent, DAT_HANDLE_NULL));
    DAT_MUST(dat_cno_free(scene.cno));
    DAT_MUST(dat_ia_close(scene.ia, DAT_CLOSE_ABRUPT_FLAG));
    DAT_REQUIRE(open_descriptors().size() == open, "descriptors are left");
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    g_seed = argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 0))
                      : static_cast<std::uint32_t>(std::time(nullptr));
    std::printf("seed %u; again: cancel_dat %u\n", g_seed, g_seed);
    std::fflush(stdout);
    return run_over_links(run);
}
