// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See cno.h.
#include "dat-shim/cno.h"

#include "base/attempt.h"
#include "dat-shim/evd.h"
#include "dat-shim/ia.h"
#include "dat-shim/inside.h"
#include "engine/kernel.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <pthread.h>
#include <sys/epoll.h>
#include <thread>

namespace dat::shim {

Cno::Cno(Ia& ia) : Object(ia, kKind, ia.dispatch()) {}

Cno::~Cno() {
    std::unique_lock lock(mutex_);
    stop_agent(lock);
    if (epoll_ >= 0) {
        kernel::close(epoll_);
    }
}

Return Cno::create(Ia& ia, const Agent& agent, Cno*& cno) {
    cno = ia.make<Cno>(ia);
    const Return rc = cno->set_agent(agent);
    if (rc) {
        ia.destroy(*cno);
    }
    return rc;
}

Return Cno::create_with_descriptor(Ia& ia, int& fd, Cno*& cno) {
    cno = ia.make<Cno>(ia);
    cno->epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (cno->epoll_ < 0) {
        ia.destroy(*cno);
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
    fd = cno->epoll_;
    return kSuccess;
}

Return Cno::free() {
    {
        const std::lock_guard lock(mutex_);
        if (!evds_.empty() || inside_ > 0) { // CNO-8
            return fail(Type::invalid_state, Sub::invalid_state_cno_in_use);
        }
    }
    ia().destroy(*this);
    return kSuccess;
}

void Cno::expect_one_more() {
    const std::lock_guard lock(mutex_);
    evds_.reserve(evds_.size() + 1);
}

void Cno::attach(Evd& evd) {
    const std::lock_guard lock(mutex_);
    evds_.push_back(&evd);
    if (epoll_ >= 0) {
        evd.fetch(); // which puts its descriptors in
    }
    raise_all();
}

void Cno::detach(Evd& evd) {
    const std::lock_guard lock(mutex_);
    std::erase(evds_, &evd);
    raise_all();
}

void Cno::kick() {
    const std::lock_guard lock(mutex_);
    raise_all();
}

void Cno::raise_all() {
    for (const Wake* sleeper : sleepers_) {
        sleeper->raise();
    }
}

// One that has been closed meanwhile is not in it any more.
bool Cno::watch(std::span<const pollfd> watched) const {
    bool each_is_in = true;
    for (const pollfd& each : watched) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (epoll_ctl(epoll_, EPOLL_CTL_ADD, each.fd, &event) != 0) {
            each_is_in = each_is_in && errno != ENOMEM && errno != ENOSPC;
        }
    }
    return each_is_in;
}

Evd* Cno::triggered() {
    for (std::size_t i = 0; i < evds_.size(); ++i) {
        Evd* const evd = evds_[(next_ + i) % evds_.size()];
        if (evd->triggers()) {
            next_ = (next_ + i + 1) % evds_.size();
            return evd;
        }
    }
    return nullptr;
}

Return Cno::poll(Evd*& evd) {
    const std::lock_guard lock(mutex_);
    evd = triggered();
    return evd ? kSuccess : fail(Type::queue_empty);
}

namespace {

// A thread in wait(), until it returns or has been cancelled.
class Waiter {
  public:
    explicit Waiter(int& inside) : inside_(inside) { ++inside_; }
    ~Waiter() { --inside_; }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

  private:
    int& inside_;
};

// The same of one that sleeps.
class Sleeper {
  public:
    Sleeper(std::vector<Wake*>& sleepers, Wake* wake) : sleepers_(sleepers), wake_(wake) {
        sleepers_.push_back(wake_);
    }
    ~Sleeper() { std::erase(sleepers_, wake_); }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

  private:
    std::vector<Wake*>& sleepers_;
    Wake* const wake_;
};

} // namespace

Return Cno::wait(std::uint32_t timeout_us, Evd*& evd) {
    std::unique_lock lock(mutex_);
    const Waiter inside(inside_);
    return wait_until(lock, Deadline(timeout_us, kForever), evd, false);
}

Return Cno::wait_until(std::unique_lock<std::mutex>& lock, const Deadline& deadline, Evd*& evd,
                       bool for_agent) {
    std::vector<pollfd> watched;
    bool had_evds = !evds_.empty();
    for (;;) {
        evd = nullptr;
        if (ia().is_closing()) {
            return fail(Type::abort); // U-17
        }
        if (for_agent && agent_stops_) {
            return fail(Type::queue_empty);
        }
        evd = triggered();
        if (evd) {
            return kSuccess;
        }
        if (had_evds && evds_.empty()) { // CNO-5
            return fail(Type::queue_empty);
        }
        if (deadline.passed()) {
            return fail(Type::queue_empty); // CNO-4
        }
        had_evds = !evds_.empty();
        const Ia::Attendance there(
            ia(), std::ranges::any_of(evds_, [](Evd* one) { return one->moves_domain(); }));
        watched.clear();
        if (!std::ranges::all_of(evds_,
                                 [&](Evd* one) { return one->watch(watched, wake_socket_); })) {
            continue;
        }
        const int why = sleep(lock, deadline, watched);
        if (why == EMFILE) {
            return fail(Type::insufficient_resources, Sub::resource_device);
        }
        if (why == EINTR && !for_agent) {
            return fail(Type::interrupted_call);
        }
        if (why == EBADF && !for_agent) {
            return fail(Type::internal_error);
        }
    }
}

// Each thread has a descriptor of its own besides the common one, so that one that looks
// takes nobody's wake-up: who takes down the wake socket has all the others look.
int Cno::sleep(std::unique_lock<std::mutex>& lock, const Deadline& deadline,
               std::vector<pollfd>& watched) {
    const WakePool::TemporaryRegistration wake = ia().wakes().borrow();
    if (wake->made() < 0 || wake_socket_.fd() < 0) {
        return EMFILE; // nobody could wake it
    }
    watch_once(watched, wake->made());
    watch_once(watched, wake_socket_.fd());
    int interrupted = 0;
    {
        const Sleeper here(sleepers_, wake.get());
        const Unlocked meanwhile(lock);
        const Outside asleep;
        interrupted = deadline.sleep(watched);
    }
    const Wake::Found own = wake->found_in(watched);
    const Wake::Found wake_socket = wake_socket_.found_in(watched);
    if (wake_socket != Wake::Found::quiet) {
        raise_all();
    }
    return own == Wake::Found::lost || wake_socket == Wake::Found::lost ? EBADF : interrupted;
}

Cno::Agent Cno::agent() {
    const std::lock_guard lock(mutex_);
    return agent_;
}

// U-18: once for each association. The agent may itself associate anew.
Return Cno::set_agent(const Agent& agent) {
    std::unique_lock lock(mutex_);
    agent_ = agent;
    if (agent.function && !thread_.joinable() && !start_agent()) {
        agent_ = Agent{};
        return fail(Type::insufficient_resources, Sub::resource_memory);
    }
    raise_all();
    return kSuccess;
}

// Signals are for the program's own threads.
bool Cno::start_agent() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
        thread_ = std::thread([this] { run_agent(); });
    } catch (const std::exception&) { // out of threads, or of memory
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

// Where it cannot sleep, for want of memory or descriptors, it looks again soon.
void Cno::run_agent() {
    constexpr auto kSoon = std::chrono::milliseconds(10);
    std::optional<Inside> inside;
    while (!base::attempt([&] { inside.emplace(); })) {
        std::this_thread::sleep_for(kSoon);
    }
    std::unique_lock lock(mutex_);
    std::vector<pollfd> watched;
    while (!agent_stops_) {
        Evd* evd = nullptr;
        const Return scarce = fail(Type::insufficient_resources);
        Return rc = scarce;
        const bool called_for = agent_.function != nullptr;
        const bool had_memory = base::attempt([&] {
            if (called_for) {
                rc = wait_until(lock, Deadline(), evd, true);
                return;
            }
            watched.clear();
            rc = sleep(lock, Deadline(), watched) == EMFILE ? scarce : kSuccess;
        });
        if (!had_memory || rc == scarce ||
            rc == fail(Type::insufficient_resources, Sub::resource_device)) {
            if (!lock.owns_lock()) {
                lock.lock();
            }
            lock.unlock();
            {
                const Outside asleep;
                std::this_thread::sleep_for(kSoon);
            }
            lock.lock();
            continue;
        }
        if (!called_for) {
            if (agent_stops_ || ia().is_closing()) {
                break;
            }
            continue;
        }
        if (agent_stops_ && rc != fail(Type::abort)) {
            break;
        }
        const Agent called = std::exchange(agent_, Agent{});
        if (called.function) {
            void* const handle = evd ? evd->handle() : nullptr;
            bool gone = false;
            gone_ = &gone;
            lock.unlock();
            {
                const Outside theirs;
                called.function(called.instance, handle);
            }
            if (gone) { // it has freed this, or closed the IA
                return;
            }
            lock.lock();
            gone_ = nullptr;
        }
        if (rc == fail(Type::abort)) {
            break;
        }
    }
}

void Cno::stop_agent(std::unique_lock<std::mutex>& lock) {
    if (!thread_.joinable()) {
        return;
    }
    agent_stops_ = true;
    raise_all();
    lock.unlock();
    if (thread_.get_id() == std::this_thread::get_id()) {
        thread_.detach();
        *gone_ = true;
    } else {
        const kernel::NoCancel while_joining;
        const Outside meanwhile;
        thread_.join();
    }
    lock.lock();
}

void Cno::end_agent() {
    std::unique_lock lock(mutex_);
    stop_agent(lock);
}

} // namespace dat::shim
