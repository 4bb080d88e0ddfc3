// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A program of libfabric that closes a descriptor of the provider, or puts /dev/null in its place
// (harm.h). A plain program. Usage: descriptors [LINK STAGE NUMBER HOW], one case.
#include "ofi_scene.h"

#include "harm.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>

namespace dat::test {
namespace {

using Clock = std::chrono::steady_clock;

// Of one process and one domain.
class Scene final : public Victim, OfiScene {
  public:
    explicit Scene(const Transport& transport) : OfiScene(transport) {
        active_ = Fid<fid_ep>(open(info_.get()));
    }
    void reach(Stage stage) override;
    void go_on() override;
    void close_all() override;

  private:
    bool read_events();
    void read_completions();
    template <class Done> void move_until(Done done, std::chrono::milliseconds limit);
    void post(fid_ep* ep);

    int connected_ = 0;
    int ended_ = 0;
    std::array<std::byte, 100000> bytes_{};
    std::array<std::byte, 100000> room_{};
};

bool Scene::read_events() {
    std::uint32_t type = 0;
    fi_eq_cm_entry entry{};
    const ssize_t got = fi_eq_read(eq_.get(), &type, &entry, sizeof entry, 0);
    if (got == -FI_EAVAIL) {
        fi_eq_err_entry error{};
        fi_eq_readerr(eq_.get(), &error, 0);
        ++ended_;
    } else if (got > 0 && type == FI_CONNREQ) {
        passive_ = Fid<fid_ep>(open(entry.info));
        fi_freeinfo(entry.info);
        if (passive_)
            fi_accept(passive_.get(), nullptr, 0);
    } else if (got > 0) {
        ++(type == FI_CONNECTED ? connected_ : ended_);
    }
    return got > 0 || got == -FI_EAVAIL;
}

void Scene::read_completions() {
    std::array<fi_cq_data_entry, 16> entries;
    fi_cq_err_entry error{};
    for (int i = 0; i < 8; ++i)
        if (fi_cq_read(cq_.get(), entries.data(), entries.size()) == -FI_EAVAIL)
            fi_cq_readerr(cq_.get(), &error, 0);
}

template <class Done> void Scene::move_until(Done done, std::chrono::milliseconds limit) {
    for (const auto end = Clock::now() + limit; !done() && Clock::now() < end;) {
        read_completions();
        while (read_events()) {
        }
    }
}

void Scene::post(fid_ep* ep) {
    if (!ep)
        return;
    for (const std::size_t size : {std::size_t{8}, bytes_.size(), std::size_t{8}}) {
        fi_recv(ep, room_.data(), room_.size(), nullptr, 0, nullptr);
        fi_send(ep, bytes_.data(), size, nullptr, 0, nullptr);
    }
}

void Scene::reach(Stage stage) {
    constexpr std::chrono::seconds kLong(30);
    if (stage == kOpened)
        return;
    DAT_MUST(begin_connect(active_.get()));
    if (stage == kConnecting)
        return;
    move_until([&] { return connected_ == 2; }, kLong);
    DAT_REQUIRE(connected_ == 2, "no connection");
    if (stage == kConnected)
        return;
    post(active_.get());
    post(passive_.get());
    if (stage == kEnding)
        DAT_MUST(fi_shutdown(active_.get(), 0));
}

void Scene::go_on() {
    constexpr std::chrono::milliseconds kBriefly(40);
    move_until([&] { return connected_ == 2 || ended_ > 0; }, kBriefly);
    for (int i = 0; i < 2; ++i) {
        post(active_.get());
        post(passive_.get());
        move_until([] { return false; }, kBriefly / 2);
    }
    fi_cq_data_entry entry{};
    for (int i = 0; i < 3; ++i)
        fi_cq_sread(cq_.get(), &entry, 1, nullptr, 20);
    std::uint32_t type = 0;
    fi_eq_cm_entry event{};
    fi_eq_sread(eq_.get(), &type, &event, sizeof event, 20, FI_PEEK);
    fi_cntr_wait(counter_.get(), 1000, 20);
    void* attr = nullptr;
    fi_control(&cq_->fid, FI_GETWAIT, &attr);
    // A connection that is new, and one that ends.
    Fid<fid_ep> another(open(info_.get()));
    if (another)
        begin_connect(another.get());
    for (fid_ep* ep : {active_.get(), passive_.get()})
        if (ep)
            fi_shutdown(ep, 0);
    const int before = ended_;
    move_until([&] { return ended_ >= before + 2; }, kBriefly);
}

void Scene::close_all() {
    DAT_MUST(active_.close());
    DAT_MUST(passive_.close());
    DAT_MUST(pep_.close());
    while (read_events()) { // of requests that came last
        DAT_MUST(passive_.close());
    }
    DAT_MUST(cq_.close());
    DAT_MUST(counter_.close());
    DAT_MUST(domain_.close());
    DAT_MUST(eq_.close());
    DAT_MUST(fabric_.close());
}

const Transport* g_transport = nullptr;
Case g_only;

// What libfabric opens for itself comes before.
void warm() {
    const Info hints = hints_for(*g_transport);
    fi_info* found = nullptr;
    DAT_MUST(
        fi_getinfo(FI_VERSION(1, 17), g_transport->address, "0", FI_SOURCE, hints.get(), &found));
    Info(found).reset();
}

Subject subject_over(const Transport& transport) {
    g_transport = &transport;
    return {"descriptors", transport.shm ? "shm" : "tcp", warm,
            [] { return std::unique_ptr<Victim>(new Scene(*g_transport)); }};
}

// Of one family: the descriptors are the same.
void run(const Transport& transport) {
    if (transport.family == AF_INET)
        harm_each(subject_over(transport));
}

void run_one(const Transport& transport) {
    if (transport.family == AF_INET)
        harm_one(subject_over(transport), g_only);
}

} // namespace
} // namespace dat::test

using namespace dat::test;

int main(int argc, char** argv) {
    setenv("FI_DAT_RNR_TIMEOUT", "1", 1);
    setenv("FI_DAT_HANDSHAKE_TIMEOUT", "1", 1);
    if (argc == 5) {
        setenv("FI_LOG_LEVEL", "warn", 0);
        g_only = case_of(argv + 2);
        return run_over(std::string(argv[1]) == "shm", run_one) ? 0 : 1;
    }
    return run_over_all(run);
}
