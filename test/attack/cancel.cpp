// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Threads that are cancelled in calls of the provider (pthread_cancel(3), deferred): where a call
// sleeps they end there, and nowhere else, and what they leave is as if they had returned:
// others use the same objects, and close them. A plain program.
// Usage: cancel [SEED].
#include "ofi_scene.h"

#include "../transport/dice.h"
#include "cancelled.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace dat::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kForEver = -1;
constexpr int kRounds = 4;    // of the deterministic cases
constexpr int kThreads = 3;   // that are cancelled at random
constexpr int kVictims = 120; // altogether
std::uint32_t g_seed = 1;

// A connection within the process, of whose operations completions alone matter.
class Scene : OfiScene {
  public:
    explicit Scene(const Transport& transport) : OfiScene(transport) {}
    explicit Scene(Info info) : OfiScene(std::move(info)) {}
    using OfiScene::info_of;
    void connect();
    void exchange();        // a message each way, completions read
    void exchange_asleep(); // the same by fi_cq_sread()
    void anything(Dice& dice);
    void empty();
    void close_all();

    fid_cq* cq() const { return cq_.get(); }
    fid_eq* eq() const { return eq_.get(); }
    fid_cntr* counter() const { return counter_.get(); }
    fid_ep* active() const { return active_.get(); }
    fid_ep* passive() const { return passive_.get(); }
    fid_domain* domain() const { return domain_.get(); }
    fid_fabric* fabric() const { return fabric_.get(); }
    fi_info* info() const { return info_.get(); }
    void churn(); // objects of each kind
    void post();

  private:
    void read_event();
    ssize_t take();
    template <class Done> void until(const char* what, Done done);

    int connected_ = 0;
    std::array<std::byte, 40000> source_{};
    std::array<std::byte, 40000> sink_{};
};

template <class Done> void Scene::until(const char* what, Done done) {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!done())
        DAT_REQUIRE(Clock::now() < deadline, std::string("waited in vain for ") + what);
}

void Scene::read_event() {
    std::uint32_t type = 0;
    fi_eq_cm_entry entry{};
    const ssize_t got = fi_eq_read(eq_.get(), &type, &entry, sizeof entry, 0);
    if (got == -FI_EAGAIN)
        return;
    DAT_REQUIRE(got > 0, error_name(got));
    if (type == FI_CONNREQ) {
        passive_ = Fid<fid_ep>(open(entry.info));
        DAT_REQUIRE(passive_, "no endpoint");
        fi_freeinfo(entry.info);
        DAT_MUST(fi_accept(passive_.get(), nullptr, 0));
    } else {
        ++connected_;
    }
}

void Scene::connect() {
    active_ = Fid<fid_ep>(open(info_.get()));
    DAT_REQUIRE(active_, "no endpoint");
    DAT_MUST(begin_connect(active_.get()));
    until("a connection", [&] {
        read_event();
        return connected_ == 2;
    });
}

void Scene::post() {
    DAT_MUST(fi_recv(passive_.get(), sink_.data(), sink_.size(), nullptr, 0, nullptr));
    DAT_MUST(fi_send(active_.get(), source_.data(), 8, nullptr, 0, nullptr));
}

ssize_t Scene::take() {
    std::array<fi_cq_data_entry, 8> entries;
    const ssize_t got = fi_cq_read(cq_.get(), entries.data(), entries.size());
    DAT_REQUIRE(got > 0 || got == -FI_EAGAIN, error_name(got));
    return got > 0 ? got : 0;
}

void Scene::exchange() {
    for (const std::size_t size : {std::size_t{8}, source_.size()}) {
        DAT_MUST(fi_recv(passive_.get(), sink_.data(), sink_.size(), nullptr, 0, nullptr));
        DAT_MUST(fi_send(active_.get(), source_.data(), size, nullptr, 0, nullptr));
        ssize_t done = 0;
        until("completions", [&] { return (done += take()) == 2; });
    }
}

void Scene::exchange_asleep() {
    post();
    for (int done = 0; done < 2;) {
        fi_cq_data_entry entry{};
        const ssize_t got = fi_cq_sread(cq_.get(), &entry, 1, nullptr, 60000);
        DAT_REQUIRE(got == 1, error_name(got));
        done += 1;
    }
}

// What threads that are cancelled have not read.
void Scene::empty() {
    std::array<fi_cq_data_entry, 8> entries;
    int seen = 0;
    until("silence", [&] {
        seen = fi_cq_read(cq_.get(), entries.data(), entries.size()) > 0 ? 0 : seen + 1;
        return seen > 1000;
    });
}

void Scene::churn() {
    Fid<fid_mr> region;
    DAT_MUST(fi_mr_reg(domain_.get(), sink_.data(), 64, FI_REMOTE_WRITE, 0, 0, 0, region.out(),
                       nullptr));
    Fid<fid_mr> none;
    DAT_REQUIRE(fi_mr_reg(domain_.get(), reinterpret_cast<void*>(4096), 64, FI_REMOTE_WRITE, 0, 0,
                          0, none.out(), nullptr) == -FI_EFAULT,
                "memory that is not there");
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = FI_WAIT_FD;
    Fid<fid_eq> eq;
    DAT_MUST(fi_eq_open(fabric_.get(), &eq_attr, eq.out(), nullptr));
    Fid<fid_domain> domain;
    DAT_MUST(fi_domain(fabric_.get(), info_.get(), domain.out(), nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_DATA;
    cq_attr.wait_obj = FI_WAIT_UNSPEC;
    Fid<fid_cq> cq;
    DAT_MUST(fi_cq_open(domain.get(), &cq_attr, cq.out(), nullptr));
    Fid<fid_pep> pep;
    DAT_MUST(fi_passive_ep(fabric_.get(), info_.get(), pep.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep.get(), &eq->fid, 0));
    DAT_MUST(fi_listen(pep.get()));
    int waits = -1;
    DAT_MUST(fi_control(&eq->fid, FI_GETWAIT, &waits)); // starts the thread of the queue
    Bytes address(128);
    std::size_t size = address.size();
    DAT_MUST(fi_getname(&pep->fid, address.data(), &size));
    Fid<fid_ep> active;
    DAT_MUST(fi_endpoint(domain.get(), info_.get(), active.out(), nullptr));
    DAT_MUST(fi_ep_bind(active.get(), &eq->fid, 0));
    DAT_MUST(fi_ep_bind(active.get(), &cq->fid, FI_TRANSMIT | FI_RECV));
    DAT_MUST(fi_enable(active.get()));
    DAT_MUST(
        fi_connect(active.get(), address.data(), nullptr, 0)); // starts the thread of the domain
    std::uint32_t type = 0;
    fi_eq_cm_entry entry{};
    const auto arrived = [&eq, &type, at = &entry] {
        return fi_eq_read(eq.get(), &type, at, sizeof *at, 0) > 0;
    };
    until("a request", arrived);
    DAT_MUST(fi_reject(pep.get(), entry.info->handle, nullptr, 0));
    fi_freeinfo(entry.info);
    DAT_MUST(active.close());
    DAT_MUST(cq.close());
    DAT_MUST(domain.close());
    DAT_MUST(pep.close());
    DAT_MUST(eq.close());
    DAT_MUST(region.close());
}

void Scene::anything(Dice& dice) {
    fi_cq_data_entry entry{};
    std::uint32_t type = 0;
    fi_eq_cm_entry event{};
    switch (dice.below(8)) {
    case 0:
        fi_cq_sread(cq(), &entry, 1, nullptr, static_cast<int>(dice.below(3)));
        break;
    case 1:
        fi_eq_sread(eq(), &type, &event, sizeof event, static_cast<int>(dice.below(3)), 0);
        break;
    case 2:
        fi_cntr_wait(counter(), UINT64_MAX, static_cast<int>(dice.below(3)));
        break;
    case 3:
        fi_cq_read(cq(), &entry, 1);
        break;
    case 4:
        fi_recv(passive(), sink_.data(), sink_.size(), nullptr, 0, nullptr);
        fi_send(active(), source_.data(), dice.below(2) != 0 ? 8 : source_.size(), nullptr, 0,
                nullptr);
        break;
    case 5:
        fi_eq_read(eq(), &type, &event, sizeof event, 0);
        break;
    case 6: {
        fid_mr* region = nullptr;
        if (fi_mr_reg(domain(), sink_.data(), 64, FI_REMOTE_WRITE, 0, 0, 0, &region, nullptr) == 0)
            fi_close(&region->fid);
        break;
    }
    default:
        pthread_testcancel();
    }
}

void Scene::close_all() {
    run_with_cancellation_pending([this] {
        DAT_MUST(active_.close());
        DAT_MUST(passive_.close());
        DAT_MUST(pep_.close());
        DAT_MUST(cq_.close());
        DAT_MUST(counter_.close());
        DAT_MUST(domain_.close());
        DAT_MUST(eq_.close());
        DAT_MUST(fabric_.close());
    });
}

// The calls that sleep, for ever if nothing comes.
std::vector<std::pair<const char*, std::function<void(Scene&)>>> sleeping_calls() {
    return {
        {"fi_cq_sread",
         [](Scene& s) {
             fi_cq_data_entry entry{};
             fi_cq_sread(s.cq(), &entry, 1, nullptr, kForEver);
         }},
        {"fi_cq_sreadfrom",
         [](Scene& s) {
             fi_cq_data_entry entry{};
             fi_addr_t from = 0;
             fi_cq_sreadfrom(s.cq(), &entry, 1, &from, nullptr, kForEver);
         }},
        {"fi_eq_sread",
         [](Scene& s) {
             std::uint32_t type = 0;
             fi_eq_cm_entry entry{};
             fi_eq_sread(s.eq(), &type, &entry, sizeof entry, kForEver, 0);
         }},
        {"fi_cntr_wait", [](Scene& s) { fi_cntr_wait(s.counter(), UINT64_MAX, kForEver); }},
    };
}

// One alone, and several that sleep in the same call; then the objects work as before.
void cancelled_asleep(Scene& scene) {
    for (const auto& each_call : sleeping_calls()) {
        const std::string name = each_call.first;
        const auto& call = each_call.second;
        for (int round = 0; round < kRounds; ++round) {
            std::vector<std::unique_ptr<Cancelled>> asleep;
            for (int i = 0; i <= round % 2; ++i)
                asleep.push_back(std::make_unique<Cancelled>([&] { call(scene); }));
            for (const auto& each : asleep)
                each->await_sleep();
            for (const auto& each : asleep)
                each->cancel();
            for (const auto& each : asleep)
                DAT_REQUIRE(each->join(), name + " is no point of cancellation");
            scene.exchange();
            scene.exchange_asleep();
        }
    }
}

// A request to cancel is pending: what does not sleep is done all the same.
void pending_elsewhere(Scene& scene) {
    run_with_cancellation_pending([&] {
        scene.exchange();
        scene.churn();
        scene.post();
        fi_cq_data_entry entry{};
        for (int left = 2; left > 0;) // something is there: no sleep
            left -= fi_cq_read(scene.cq(), &entry, 1) == 1 ? 1 : 0;
    });
    scene.exchange();
}

void cancelled_at_random(Scene& scene) {
    Dice dice(g_seed);
    for (int victims = 0; victims < kVictims; victims += kThreads) {
        std::vector<std::unique_ptr<Cancelled>> threads;
        for (int i = 0; i < kThreads; ++i)
            threads.push_back(std::make_unique<Cancelled>([&scene, seed = dice.below(1U << 16)] {
                for (Dice own(seed);;)
                    scene.anything(own);
            }));
        for (std::uint32_t n = dice.below(3000); n > 0; --n)
            sched_yield();
        for (const auto& each : threads)
            each->cancel();
        for (const auto& each : threads)
            DAT_REQUIRE(each->join(), "a thread was not cancelled");
    }
    scene.empty();
}

void run(const Transport& transport) {
    std::printf("%s, %s progress\n", transport.name,
                transport.progress == FI_PROGRESS_AUTO ? "automatic" : "manual");
    std::fflush(stdout);
    {
        Info info = Scene::info_of(transport); // libfabric's part of it is a point of cancellation
        std::optional<Scene> first;
        run_with_cancellation_pending([&] {
            first.emplace(std::move(info));
            first->connect();
        });
        cancelled_asleep(*first);
        pending_elsewhere(*first);
        first->close_all();
    }
    Scene scene(transport);
    scene.connect();
    cancelled_at_random(scene);
    scene.close_all();
}

} // namespace
} // namespace dat::test

int main(int argc, char** argv) {
    using namespace dat::test;
    setenv("FI_LOG_LEVEL", "warn", 1); // lines that are written are system calls too
    g_seed = argc > 1 ? static_cast<std::uint32_t>(std::strtoul(argv[1], nullptr, 0))
                      : static_cast<std::uint32_t>(std::time(nullptr));
    std::printf("seed %u; again: cancel %u\n", g_seed, g_seed);
    std::fflush(stdout);
    return run_over_all(run);
}
