// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A program of uDAPL that closes a descriptor of the library, or puts /dev/null in its place
// (harm.h), while threads sleep in dat_evd_wait() and dat_cno_wait(): each returns at last, and
// dat_ia_close() succeeds. A plain program of either version of the API.
// Usage: descriptors_dat [LINK STAGE NUMBER HOW], one case.
#include "dat_scene.h"

#include "harm.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace dat::test {
namespace {

class Scene final : public Victim {
  public:
    Scene() {
        scene_.open();
        // As long as a program likes; the end of the IA releases them.
        threads_.emplace_back([this] {
            DAT_EVENT event{};
            DAT_COUNT more = 0;
            dat_evd_wait(scene_.async, DAT_TIMEOUT_INFINITE, 1, &event, &more);
        });
        threads_.emplace_back([this] {
            DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
            began_ = true;
            dat_cno_wait(scene_.cno, DAT_TIMEOUT_INFINITE, &evd);
        });
        // A sanitizer looks at a thread that begins, through a pipe of its own, which is none of
        // the provider's to be taken.
        await("the sleepers", [this] {
            DAT_EVENT event{};
            return began_ &&
                   DAT_GET_TYPE(dat_evd_dequeue(scene_.async, &event)) == DAT_INVALID_STATE;
        });
    }
    void reach(Stage stage) override;
    void go_on() override;
    void close_all() override {
        DAT_MUST(dat_ia_close(scene_.ia, DAT_CLOSE_ABRUPT_FLAG));
        for (std::thread& each : threads_) {
            each.join();
        }
    }

  private:
    template <class Done> void move_until(Done done, std::chrono::milliseconds limit);
    void post() const {
        for (const std::size_t size : {std::size_t{8}, DatScene::kRoom, std::size_t{8}}) {
            scene_.receive(DatScene::kRoom);
            scene_.send(size);
        }
    }

    DatScene scene_;
    std::atomic<bool> began_{false};
    std::vector<std::thread> threads_;
};

template <class Done> void Scene::move_until(Done done, std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done() && std::chrono::steady_clock::now() < end) {
        DAT_EVENT event{};
        dat_evd_dequeue(scene_.sent, &event);
        dat_evd_dequeue(scene_.received, &event);
        while (scene_.read_event()) {
        }
    }
}

void Scene::reach(Stage stage) {
    constexpr std::chrono::seconds kLong(30);
    if (stage == kOpened) {
        return;
    }
    DAT_MUST(scene_.begin_connect(scene_.active));
    if (stage == kConnecting) {
        return;
    }
    move_until([&] { return scene_.connected == 2; }, kLong);
    DAT_REQUIRE(scene_.connected == 2, "no connection");
    if (stage == kConnected) {
        return;
    }
    post();
    if (stage == kEnding) {
        DAT_MUST(dat_ep_disconnect(scene_.active, DAT_CLOSE_GRACEFUL_FLAG));
    }
}

void Scene::go_on() {
    constexpr std::chrono::milliseconds kBriefly(40);
    move_until([&] { return scene_.connected == 2 || scene_.ended > 0; }, kBriefly);
    for (int i = 0; i < 2; ++i) {
        post();
        move_until([] { return false; }, kBriefly / 2);
    }
    DAT_EVENT event{};
    DAT_COUNT more = 0;
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    for (int i = 0; i < 3; ++i) {
        dat_evd_wait(scene_.received, 20000, 1, &event, &more);
        dat_evd_wait(scene_.sent, 20000, 1, &event, &more);
    }
    dat_cno_wait(scene_.cno, 20000, &evd);
    // A connection that is new, and one that ends.
    DAT_EP_HANDLE another = DAT_HANDLE_NULL;
    if (scene_.make_endpoint(&another) == DAT_SUCCESS) {
        scene_.begin_connect(another);
    }
    for (const DAT_EP_HANDLE ep : {scene_.active, scene_.passive}) {
        if (ep != DAT_HANDLE_NULL) {
            dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG);
        }
    }
    const int before = scene_.ended;
    move_until([&] { return scene_.ended >= before + 2; }, kBriefly);
}

// What the process opens once comes before.
void warm() {
    DatScene scene;
    scene.open();
    DAT_MUST(dat_ia_close(scene.ia, DAT_CLOSE_ABRUPT_FLAG));
}

Subject subject_over(const char* link) {
    return {"descriptors_dat", link, warm, [] { return std::unique_ptr<Victim>(new Scene); }};
}

} // namespace
} // namespace dat::test

using namespace dat::test;

int main(int argc, char** argv) {
    setenv("FI_DAT_RNR_TIMEOUT", "1", 1);
    setenv("FI_DAT_HANDSHAKE_TIMEOUT", "1", 1);
    if (argc == 5) {
        setenv("FI_LOG_LEVEL", "warn", 0);
        setenv("FI_DAT_TRANSPORT", "soft", 1);
        setenv("FI_DAT_SHM", std::string(argv[1]) == "shm" ? "1" : "0", 1);
        harm_one(subject_over(argv[1]), case_of(argv + 2));
        return 0;
    }
    return run_over_links([](const char* link) { harm_each(subject_over(link)); });
}
