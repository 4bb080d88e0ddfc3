// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Threads that use reliable datagram endpoints of one FI_THREAD_SAFE domain: all send and receive
// on an endpoint that they share, take receives back, reach into memory, sleep for what comes,
// enter addresses, and open and close endpoints of their own, which connect with the shared one.
// Each operation completes once. A plain program, for ThreadSanitizer.
#include "dice.h"
#include "plain.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace dat::test {

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 12; // endpoints that each thread opens and closes
constexpr int kPosts = 6;   // of each kind with the shared endpoints, in a round
constexpr std::size_t kLarge = 40'000;

struct Action {
    fi_context context{}; // first
    std::atomic<int> completions{0};
    std::atomic<int> error{0};
};

class Arena {
  public:
    explicit Arena(const Transport& transport);
    ~Arena();
    void visit(int thread);
    void poll();
    void check();

  private:
    using Clock = std::chrono::steady_clock;

    fid_ep* open();
    fi_addr_t enter(fid_ep* ep);
    Action& action() {
        const std::lock_guard lock(mutex_);
        return actions_.emplace_back();
    }
    template <class Done> void poll_until(const char* what, Done done);
    template <class Post> Action& post(Post call);
    void exchange(fid_ep* from, fid_ep* to, fi_addr_t where, std::uint64_t tag, std::size_t size);
    void post_and_cancel(fid_ep* ep, std::uint64_t tag);
    void reach(fid_ep* ep, Dice& dice);
    void own_endpoint(std::uint64_t tag, Dice& dice);

    fi_info* info_ = nullptr;
    Fid<fid_fabric> fabric_;
    Fid<fid_domain> domain_;
    Fid<fid_av> av_;
    Fid<fid_cq> cq_;
    Fid<fid_mr> region_;
    std::array<fid_ep*, 2> shared_{};
    std::array<fi_addr_t, 2> at_{};
    alignas(8) std::array<std::byte, 64> memory_{};
    std::mutex mutex_; // guards actions_
    std::deque<Action> actions_;
};

Arena::Arena(const Transport& transport) {
    fi_info* hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE;
    hints->mode = FI_CONTEXT;
    hints->addr_format = transport.family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->data_progress = transport.progress;
    hints->domain_attr->control_progress = transport.progress;
    hints->fabric_attr->prov_name = strdup("dat");
    fi_info* list = nullptr;
    DAT_MUST(fi_getinfo(FI_VERSION(1, 17), transport.address, nullptr, FI_SOURCE, hints, &list));
    fi_freeinfo(hints);
    for (fi_info* each = list; each && !info_; each = each->next) { // not that of ofi_rxm
        if (std::strcmp(each->fabric_attr->prov_name, "dat") == 0) {
            info_ = fi_dupinfo(each);
        }
    }
    fi_freeinfo(list);
    DAT_REQUIRE(info_, "FI_EP_RDM is not offered");
    DAT_REQUIRE(info_->domain_attr->threading == FI_THREAD_SAFE, "another threading level");
    DAT_MUST(fi_fabric(info_->fabric_attr, fabric_.out(), nullptr));
    DAT_MUST(fi_domain(fabric_.get(), info_, domain_.out(), nullptr));
    fi_av_attr vector{};
    vector.type = FI_AV_TABLE;
    DAT_MUST(fi_av_open(domain_.get(), &vector, av_.out(), nullptr));
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_TAGGED;
    queue.wait_obj = FI_WAIT_UNSPEC;
    DAT_MUST(fi_cq_open(domain_.get(), &queue, cq_.out(), nullptr));
    DAT_MUST(fi_mr_reg(domain_.get(), memory_.data(), memory_.size(),
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, region_.out(), nullptr));
    for (std::size_t i = 0; i < shared_.size(); ++i) {
        shared_[i] = open();
        at_[i] = enter(shared_[i]);
    }
}

Arena::~Arena() {
    for (fid_ep* ep : shared_) {
        std::atomic<bool> closed{false};
        std::thread closer([&] {
            DAT_MUST(fi_close(&ep->fid));
            closed = true;
        });
        while (!closed) {
            poll();
        }
        closer.join();
    }
    fi_freeinfo(info_);
}

fid_ep* Arena::open() {
    fid_ep* ep = nullptr;
    DAT_MUST(fi_endpoint(domain_.get(), info_, &ep, nullptr));
    DAT_MUST(fi_ep_bind(ep, &av_->fid, 0));
    DAT_MUST(fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV));
    DAT_MUST(fi_enable(ep));
    return ep;
}

fi_addr_t Arena::enter(fid_ep* ep) {
    std::array<std::byte, 128> name{};
    std::size_t size = name.size();
    DAT_MUST(fi_getname(&ep->fid, name.data(), &size));
    fi_addr_t number = FI_ADDR_NOTAVAIL;
    DAT_REQUIRE(fi_av_insert(av_.get(), name.data(), 1, &number, 0, nullptr) == 1, "fi_av_insert");
    return number;
}

// ---- the queue, by whoever comes ------------------------------------------

void Arena::poll() {
    thread_local unsigned turn = 0;
    std::array<fi_cq_tagged_entry, 8> room;
    const ssize_t got = ++turn % 8 == 0
                            ? fi_cq_sread(cq_.get(), room.data(), room.size(), nullptr, 1)
                            : fi_cq_read(cq_.get(), room.data(), room.size());
    for (ssize_t i = 0; i < got; ++i) {
        ++static_cast<Action*>(room[static_cast<std::size_t>(i)].op_context)->completions;
    }
    fi_cq_err_entry error{};
    if (got == -FI_EAVAIL && fi_cq_readerr(cq_.get(), &error, 0) == 1) { // or another thread has it
        auto& of = *static_cast<Action*>(error.op_context);
        of.error = error.err;
        ++of.completions;
    }
}

template <class Done> void Arena::poll_until(const char* what, Done done) {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!done()) {
        DAT_REQUIRE(Clock::now() < deadline, std::string("waited in vain for ") + what);
        poll();
    }
}

template <class Post> Action& Arena::post(Post call) {
    Action& posted = action();
    ssize_t rc = -FI_EAGAIN;
    poll_until("room", [&] { return (rc = call(&posted)) != -FI_EAGAIN; });
    DAT_MUST(rc);
    return posted;
}

// ---- what a thread does ----------------------------------------------------

// A message of which nobody else has the tag.
void Arena::exchange(fid_ep* from, fid_ep* to, fi_addr_t where, std::uint64_t tag,
                     std::size_t size) {
    const std::vector<std::byte> out(size, static_cast<std::byte>(tag));
    std::vector<std::byte> in(size);
    const auto send = [&]() -> Action& {
        return post(
            [&](void* c) { return fi_tsend(from, out.data(), size, nullptr, where, tag, c); });
    };
    const auto receive = [&]() -> Action& {
        return post([&](void* c) {
            return fi_trecv(to, in.data(), size, nullptr, FI_ADDR_UNSPEC, tag, 0, c);
        });
    };
    Action& first = tag % 2 == 0 ? send() : receive();
    Action& second = tag % 2 == 0 ? receive() : send();
    poll_until("a message", [&] { return first.completions > 0 && second.completions > 0; });
    DAT_REQUIRE(first.error == 0 && second.error == 0, "a message failed");
    DAT_REQUIRE(in == out, "another message");
}

// Nobody sends with that tag.
void Arena::post_and_cancel(fid_ep* ep, std::uint64_t tag) {
    Action& posted = post([&](void* c) {
        return fi_trecv(ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, tag | std::uint64_t{1} << 40, 0,
                        c);
    });
    DAT_MUST(fi_cancel(&ep->fid, &posted));
    poll_until("what was taken back", [&] { return posted.completions > 0; });
    DAT_REQUIRE(posted.error == FI_ECANCELED, error_name(posted.error));
}

// Into memory that all reach into, so that nothing is said of what is there.
void Arena::reach(fid_ep* ep, Dice& dice) {
    const std::uint64_t one = 1;
    std::uint64_t before = 0;
    const bool virtual_address = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    const std::uint64_t to = virtual_address ? reinterpret_cast<std::uintptr_t>(memory_.data()) : 0;
    const std::uint64_t key = fi_mr_key(region_.get());
    const fi_addr_t where = at_[dice.below(2)];
    Action& posted = post([&](void* c) {
        switch (dice.below(3)) {
        case 0:
            return fi_write(ep, &one, 0, nullptr, where, to, key, c);
        case 1:
            return fi_read(ep, &before, 0, nullptr, where, to, key, c);
        default:
            return fi_fetch_atomic(ep, &one, 1, nullptr, &before, nullptr, where, to, key,
                                   FI_UINT64, FI_SUM, c);
        }
    });
    poll_until("what reaches into memory", [&] { return posted.completions > 0; });
    DAT_REQUIRE(posted.error == 0, error_name(posted.error));
}

void Arena::own_endpoint(std::uint64_t tag, Dice& dice) {
    fid_ep* const own = open();
    fi_addr_t here = enter(own);
    fid_ep* const other = shared_[dice.below(2)];
    exchange(own, other, at_[other == shared_[0] ? 0 : 1], tag, 8);
    exchange(other, own, here, tag + 1, kLarge);
    post_and_cancel(own, tag);
    DAT_MUST(fi_close(&own->fid));
    DAT_MUST(fi_av_remove(av_.get(), &here, 1, 0));
}

void Arena::visit(int thread) {
    Dice dice(static_cast<std::uint32_t>(thread) + 1);
    std::uint64_t tag = static_cast<std::uint64_t>(thread + 1) << 20;
    for (int round = 0; round < kRounds; ++round) {
        for (int n = 0; n < kPosts; ++n) {
            const std::size_t from = dice.below(2);
            const std::size_t to = dice.below(2);
            exchange(shared_[from], shared_[to], at_[to], tag++,
                     dice.below(4) == 0 ? kLarge : 8 + dice.below(1000));
            post_and_cancel(shared_[to], tag);
            reach(shared_[from], dice);
        }
        own_endpoint(tag, dice);
        tag += 2;
    }
}

void Arena::check() {
    poll();
    for (const Action& each : actions_) {
        DAT_REQUIRE(each.completions == 1, "an operation did not complete once");
    }
    std::printf("ok: %d threads, %zu operations\n", kThreads, actions_.size());
}

void run(const Transport& transport) {
    std::printf("%s, %s progress\n", transport.name,
                transport.progress == FI_PROGRESS_AUTO ? "automatic" : "manual");
    std::fflush(stdout);
    Arena arena(transport);
    std::atomic<int> running{kThreads};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&arena, &running, i] {
            arena.visit(i);
            --running;
        });
    }
    while (running > 0) { // an endpoint that is closed may wait for its peers
        arena.poll();
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    arena.check();
}

} // namespace
} // namespace dat::test

int main() { return dat::test::run_over_all(dat::test::run); }
