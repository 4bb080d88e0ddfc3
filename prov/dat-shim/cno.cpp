// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See cno.h. May include: dat-shim.
#include "dat-shim/cno.h"

#include "dat-shim/evd.h"
#include "dat-shim/ia.h"

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <sys/epoll.h>

namespace dat::shim {

Cno::Cno(Ia& ia) : Object(ia, kKind, ia.dispatch()) {}

Cno::~Cno() {
    std::unique_lock lock(mutex_);
    stop_agent(lock);
    if (epoll_ >= 0) {
        close(epoll_);
    }
}

Return Cno::create(Ia& ia, const Agent& agent, Cno*& cno) {
    cno = ia.make<Cno>(ia);
    return cno->set_agent(agent);
}

Return Cno::create_with_descriptor(Ia& ia, int& fd, Cno*& cno) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        return fail(Type::insufficient_resources, Sub::resource_device);
    }
    cno = ia.make<Cno>(ia);
    cno->epoll_ = fd = epoll;
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
void Cno::watch(const std::vector<pollfd>& watched) const {
    for (const pollfd& each : watched) {
        epoll_event event{};
        event.events = EPOLLIN;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, each.fd, &event);
    }
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

Return Cno::wait(std::uint32_t timeout_us, Evd*& evd) {
    std::unique_lock lock(mutex_);
    ++inside_;
    const Return rc = wait_until(lock, Deadline(timeout_us, kForever), evd, false);
    --inside_;
    return rc;
}

Return Cno::wait_until(std::unique_lock<std::mutex>& lock, const Deadline& deadline, Evd*& evd,
                       bool for_agent) {
    std::vector<pollfd> watched;
    bool had_evds = !evds_.empty();
    for (;;) {
        evd = nullptr;
        if (aborted_) {
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
        if (!std::ranges::all_of(evds_, [&](Evd* one) { return one->watch(watched, bell_); })) {
            continue;
        }
        if (sleep(lock, deadline, watched) && !for_agent) {
            return fail(Type::interrupted_call);
        }
    }
}

// Each thread has a descriptor of its own besides the common one, so that one that looks
// takes nobody's wake-up: who takes down the bell has all the others look.
int Cno::sleep(std::unique_lock<std::mutex>& lock, const Deadline& deadline,
               std::vector<pollfd>& watched) {
    const WakePool::Loan wake = ia().wakes().borrow();
    watch_once(watched, wake->fd());
    watch_once(watched, bell_.fd());
    sleepers_.push_back(wake.get());
    lock.unlock();
    const int interrupted = deadline.sleep(watched);
    lock.lock();
    std::erase(sleepers_, wake.get());
    wake->clear_if_in(watched);
    if (bell_.clear_if_in(watched)) {
        raise_all();
    }
    return interrupted;
}

Cno::Agent Cno::agent() {
    const std::lock_guard lock(mutex_);
    return agent_;
}

// U-18: once for each association. The agent may itself associate anew.
Return Cno::set_agent(const Agent& agent) {
    std::unique_lock lock(mutex_);
    agent_ = agent;
    if (agent.function && !thread_.joinable()) {
        start_agent();
    }
    raise_all();
    return kSuccess;
}

// Signals are for the program's own threads.
void Cno::start_agent() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run_agent(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Cno::run_agent() {
    std::unique_lock lock(mutex_);
    std::vector<pollfd> watched;
    while (!agent_stops_) {
        Evd* evd = nullptr;
        if (!agent_.function) {
            watched.clear();
            sleep(lock, Deadline(), watched);
            continue;
        }
        const Return rc = wait_until(lock, Deadline(), evd, true);
        if (agent_stops_ && rc != fail(Type::abort)) {
            break;
        }
        const Agent called = std::exchange(agent_, Agent{});
        if (called.function) {
            void* const handle = evd ? evd->handle() : nullptr;
            lock.unlock();
            called.function(called.instance, handle);
            lock.lock();
        }
        if (aborted_) {
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
    } else {
        thread_.join();
    }
    lock.lock();
}

void Cno::abort_waiters() {
    std::unique_lock lock(mutex_);
    aborted_ = true;
    raise_all();
    stop_agent(lock);
    while (inside_ > 0) {
        raise_all();
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
    }
}

} // namespace dat::shim
