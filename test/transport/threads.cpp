// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Four threads with FI_THREAD_SAFE, which all do everything: connect, accept, post on
// connections that they share and on their own, read the same queues, register memory,
// take receives back, sleep for what comes, disconnect, reset and close. Each operation
// completes once, each attempt ends once. A plain program, for ThreadSanitizer. May
// include: the fixture's owners and hints, std.
#include "dice.h"
#include "plain.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace dat::test {

namespace {

constexpr int kThreads = 4;
constexpr int kVisits = 40; // connections that each thread makes
constexpr int kShared = 3;  // connections on which all threads post
constexpr int kPosts = 8;   // on each of its own, and about as many on a shared one
constexpr std::size_t kSize = 256;

// An operation; its address is its context.
struct Action {
    std::atomic<int> completions{0};
};

// An endpoint, and what was read of its events; lives as long as the program.
struct Connection {
    fid_ep* ep = nullptr;
    std::atomic<bool> usable{false}; // who made it has done so
    std::atomic<int> begun{0};
    std::atomic<int> ended{0};
};

// Things of which a thread makes some, and which stay where they are until the end.
template <class T> class Store {
  public:
    T& add() {
        const std::lock_guard lock(mutex_);
        return items_.emplace_back();
    }
    std::deque<T>& all() { return items_; } // when the threads have ended

  private:
    std::mutex mutex_;
    std::deque<T> items_;
};

class Arena {
  public:
    explicit Arena(const Transport& transport);

    void share_connections();
    void visit(int thread);
    void close_all();

  private:
    using Clock = std::chrono::steady_clock;

    fid_ep* open(fi_info* info, fid_eq* eq, Connection& connection);
    void accept(fi_info* request);
    void note(const fi_eq_cm_entry& entry, std::uint32_t type);
    void note_error(fid_eq* eq);
    void poll_events(fid_eq* eq);
    bool poll_completions();
    void poll() {
        poll_completions();
        poll_events(active_eq_.get());
        poll_events(passive_eq_.get());
    }
    template <class Done> void poll_until(const char* what, Done done);
    template <class Post> void post(Post call);
    void post_some(fid_ep* ep, Dice& dice);
    void post_receive(fid_ep* ep);
    void post_and_cancel(fid_ep* ep);
    void churn_memory();
    void connect(Connection& connection);
    fi_dat_ops_ep* dat(fid_ep* ep) const;

    Info info_;
    Fid<fid_fabric> fabric_;
    Fid<fid_domain> domain_;
    Fid<fid_eq> active_eq_;
    Fid<fid_eq> passive_eq_;
    Fid<fid_cq> cq_;
    Fid<fid_pep> pep_;
    Fid<fid_mr> region_;
    Bytes address_ = Bytes(128);
    Bytes memory_ = Bytes(kSize);
    Store<Action> actions_;
    Store<Connection> active_;
    Store<Connection> passive_;
    std::array<Connection*, kShared> shared_{};
    std::atomic<std::uint64_t> next_key_{0x100};
};

Arena::Arena(const Transport& transport) {
    SideOptions options;
    const Info hints = hints_for(transport, options);
    hints->domain_attr->threading = FI_THREAD_SAFE;
    fi_info* found = nullptr;
    DAT_MUST(fi_getinfo(FI_VERSION(1, 17), transport.address, "0", FI_SOURCE, hints.get(), &found));
    info_.reset(found);
    DAT_REQUIRE(info_->domain_attr->threading == FI_THREAD_SAFE, "another threading level");
    DAT_MUST(fi_fabric(info_->fabric_attr, fabric_.out(), nullptr));
    DAT_MUST(fi_domain(fabric_.get(), info_.get(), domain_.out(), nullptr));
    fi_eq_attr eq_attr{};
    eq_attr.wait_obj = FI_WAIT_UNSPEC;
    DAT_MUST(fi_eq_open(fabric_.get(), &eq_attr, active_eq_.out(), nullptr));
    DAT_MUST(fi_eq_open(fabric_.get(), &eq_attr, passive_eq_.out(), nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_DATA;
    cq_attr.wait_obj = FI_WAIT_UNSPEC;
    DAT_MUST(fi_cq_open(domain_.get(), &cq_attr, cq_.out(), nullptr));
    DAT_MUST(fi_passive_ep(fabric_.get(), info_.get(), pep_.out(), nullptr));
    DAT_MUST(fi_pep_bind(pep_.get(), &passive_eq_->fid, 0));
    DAT_MUST(fi_listen(pep_.get()));
    std::size_t size = address_.size();
    DAT_MUST(fi_getname(&pep_->fid, address_.data(), &size));
    DAT_MUST(fi_mr_reg(domain_.get(), memory_.data(), memory_.size(),
                       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, region_.out(), nullptr));
}

fi_dat_ops_ep* Arena::dat(fid_ep* ep) const {
    void* ops = nullptr;
    DAT_MUST(fi_open_ops(&ep->fid, FI_DAT_EP_OPS, 0, &ops, nullptr));
    return static_cast<fi_dat_ops_ep*>(ops);
}

// ---- reading the queues, by whoever comes --------------------------------

// Whether this time the thread sleeps for what comes.
bool sleeps() {
    thread_local unsigned turn = 0;
    return ++turn % 8 == 0;
}

// False: there were none.
bool Arena::poll_completions() {
    std::array<fi_cq_data_entry, 8> room;
    const ssize_t got = sleeps() ? fi_cq_sread(cq_.get(), room.data(), room.size(), nullptr, 1)
                                 : fi_cq_read(cq_.get(), room.data(), room.size());
    for (ssize_t i = 0; i < got; ++i)
        static_cast<Action*>(room[static_cast<std::size_t>(i)].op_context)->completions++;
    if (got != -FI_EAVAIL)
        return got > 0;
    fi_cq_err_entry entry{};
    if (fi_cq_readerr(cq_.get(), &entry, 0) == 1) { // or another thread has it
        DAT_REQUIRE(entry.err == FI_ECANCELED, error_name(entry.err));
        static_cast<Action*>(entry.op_context)->completions++;
    }
    return true;
}

void Arena::accept(fi_info* request) {
    Connection& connection = passive_.add();
    fid_ep* ep = open(request, passive_eq_.get(), connection);
    fi_freeinfo(request);
    for (int i = 0; i < kPosts; ++i) // a message without one would hold up the end
        post_receive(ep);
    DAT_MUST(fi_accept(ep, nullptr, 0));
    connection.usable = true;
}

void Arena::note(const fi_eq_cm_entry& entry, std::uint32_t type) {
    if (type == FI_CONNREQ)
        return accept(entry.info);
    auto& connection = *static_cast<Connection*>(entry.fid->context);
    if (type == FI_CONNECTED)
        connection.begun++;
    else
        connection.ended++;
}

void Arena::note_error(fid_eq* eq) {
    fi_eq_err_entry error{};
    if (fi_eq_readerr(eq, &error, 0) <= 0)
        return;
    // The requester may be gone before its request is answered.
    DAT_REQUIRE(error.err == FI_ECONNABORTED, error_name(error.err));
    static_cast<Connection*>(error.context)->ended++;
}

void Arena::poll_events(fid_eq* eq) {
    std::uint32_t type = 0;
    fi_eq_cm_entry entry{};
    const ssize_t got = sleeps() ? fi_eq_sread(eq, &type, &entry, sizeof entry, 1, 0)
                                 : fi_eq_read(eq, &type, &entry, sizeof entry, 0);
    if (got > 0)
        note(entry, type);
    else if (got == -FI_EAVAIL)
        note_error(eq);
}

template <class Done> void Arena::poll_until(const char* what, Done done) {
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (!done()) {
        DAT_REQUIRE(Clock::now() < deadline, std::string("waited in vain for ") + what);
        poll();
    }
}

// ---- posting -------------------------------------------------------------

template <class Post> void Arena::post(Post call) {
    Action& action = actions_.add();
    ssize_t result = -FI_EAGAIN;
    poll_until("room", [&] { return (result = call(&action)) != -FI_EAGAIN; });
    DAT_MUST(result);
}

void Arena::post_receive(fid_ep* ep) {
    // Their contents do not matter, and nothing looks at them.
    static std::array<std::byte, kSize> sink;
    post([&](void* context) { return fi_recv(ep, sink.data(), 0, nullptr, 0, context); });
}

// One that is taken back, unless a message has found it.
void Arena::post_and_cancel(fid_ep* ep) {
    static std::array<std::byte, kSize> sink;
    void* posted = nullptr;
    post([&](void* context) {
        posted = context;
        return fi_recv(ep, sink.data(), 0, nullptr, 0, context);
    });
    const ssize_t rc = fi_cancel(&ep->fid, posted);
    DAT_REQUIRE(rc == 0 || rc == -FI_ENOENT, error_name(rc));
}

void Arena::post_some(fid_ep* ep, Dice& dice) {
    static const std::array<std::byte, kSize> source{};
    thread_local std::array<std::byte, kSize> sink;
    switch (dice.below(3)) {
    case 0:
        return post([&](void* c) { return fi_send(ep, source.data(), 0, nullptr, 0, c); });
    case 1:
        return post([&](void* c) {
            return fi_write(ep, source.data(), kSize, nullptr, 0, 0, fi_mr_key(region_.get()), c);
        });
    default:
        return post([&](void* c) {
            return fi_read(ep, sink.data(), 0, nullptr, 0, 0, fi_mr_key(region_.get()), c);
        });
    }
}

void Arena::churn_memory() {
    Bytes memory(64);
    Fid<fid_mr> region;
    DAT_MUST(fi_mr_reg(domain_.get(), memory.data(), memory.size(), FI_REMOTE_WRITE, 0, ++next_key_,
                       0, region.out(), nullptr));
    poll();
}

// ---- connections ---------------------------------------------------------

fid_ep* Arena::open(fi_info* info, fid_eq* eq, Connection& connection) {
    DAT_MUST(fi_endpoint(domain_.get(), info, &connection.ep, &connection));
    DAT_MUST(fi_ep_bind(connection.ep, &eq->fid, 0));
    DAT_MUST(fi_ep_bind(connection.ep, &cq_->fid, FI_TRANSMIT | FI_RECV));
    DAT_MUST(fi_enable(connection.ep));
    return connection.ep;
}

void Arena::connect(Connection& connection) {
    const int before = connection.begun;
    DAT_MUST(fi_connect(connection.ep, address_.data(), nullptr, 0));
    poll_until("a connection", [&] { return connection.begun > before; });
}

void Arena::share_connections() {
    for (Connection*& shared : shared_) {
        shared = &active_.add();
        open(info_.get(), active_eq_.get(), *shared);
        connect(*shared);
    }
    poll_until("the other sides", [&] {
        std::size_t begun = 0;
        for (const Connection& passive : passive_.all())
            begun += passive.begun == 1;
        return begun == kShared;
    });
}

void Arena::visit(int thread) {
    Dice dice(static_cast<std::uint32_t>(thread) + 1);
    for (int i = 0; i < kVisits; ++i) {
        Connection& own = active_.add();
        open(info_.get(), active_eq_.get(), own);
        post_receive(own.ep);
        for (int again = 0; again < 2; ++again) {
            connect(own);
            for (int n = 0; n < kPosts; ++n) {
                post_some(own.ep, dice);
                if (dice.below(4) != 0)
                    post([&](void* c) {
                        return fi_write(shared_[dice.below(kShared)]->ep, memory_.data(), 0,
                                        nullptr, 0, 0, fi_mr_key(region_.get()), c);
                    });
            }
            post_and_cancel(own.ep);
            churn_memory();
            if (again == 1)
                break; // closed as it is
            const int ended = own.ended;
            DAT_MUST(dat(own.ep)->disconnect(own.ep, FI_DAT_ABRUPT));
            poll_until("the end", [&] { return own.ended > ended; });
            DAT_MUST(dat(own.ep)->reset(own.ep));
        }
        DAT_MUST(fi_close(&own.ep->fid));
        own.ep = nullptr;
    }
}

void Arena::close_all() {
    for (Connection* shared : shared_)
        DAT_MUST(fi_close(&shared->ep->fid));
    poll_until("the ends of the other side", [&] {
        std::size_t open = 0;
        for (const Connection& passive : passive_.all())
            open += passive.ended == 0;
        return open == 0 && passive_.all().size() == kShared + 2 * kThreads * kVisits;
    });
    for (Connection& passive : passive_.all()) {
        DAT_REQUIRE(passive.usable && passive.ended == 1, "an attempt ended twice");
        DAT_MUST(fi_close(&passive.ep->fid));
    }
    while (poll_completions()) {
    }
    poll();
    for (const Connection& active : active_.all())
        DAT_REQUIRE(active.ended <= 1, "an attempt ended twice");
    std::size_t wrong = 0;
    for (const Action& action : actions_.all())
        wrong += action.completions != 1;
    DAT_REQUIRE(wrong == 0, std::to_string(wrong) + " operations did not complete once");
    std::printf("ok: %d threads, %zu connections, %zu operations\n", kThreads,
                passive_.all().size(), actions_.all().size());
}

void run(const Transport& transport) {
    std::printf("%s, %s progress\n", transport.name,
                transport.progress == FI_PROGRESS_AUTO ? "automatic" : "manual");
    std::fflush(stdout);
    Arena arena(transport);
    arena.share_connections();
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&arena, i] { arena.visit(i); });
    for (std::thread& thread : threads)
        thread.join();
    arena.close_all();
}

} // namespace
} // namespace dat::test

int main() { return dat::test::run_over_all(dat::test::run); }
