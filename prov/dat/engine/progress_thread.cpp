// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See progress_thread.h.
#include "engine/progress_thread.h"

#include "base/log.h"
#include "engine/domain.h"
#include "engine/kernel.h"
#include "engine/own_thread.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace dat::engine {

int ProgressThread::start() {
    wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_ < 0) {
        return -errno;
    }
    return start_thread(thread_, [this] { run(); });
}

ProgressThread::~ProgressThread() {
    if (thread_.joinable()) {
        ending_.store(true, std::memory_order_release);
        kernel::raise(wake_fd_);
        const kernel::NoCancel while_joining;
        thread_.join();
    }
    if (wake_fd_ >= 0) {
        kernel::close(wake_fd_);
    }
}

void ProgressThread::yield() { kernel::raise(wake_fd_); }

void ProgressThread::look_soon() {
    if (looks_seldom_.exchange(false, std::memory_order_relaxed)) {
        yield();
    }
}

void ProgressThread::take_charge() {
    summoned_.store(true, std::memory_order_release);
    yield();
}

int ProgressThread::domain_fd() const {
    return domain_.reactor_.is_lost() ? -1 : domain_.wait_fd();
}

// `heeding`: what arrives ends it as well.
ProgressThread::Woken ProgressThread::sleep(Tick wait, bool heeding) {
    std::array<pollfd, 2> fds{{{wake_fd(), POLLIN, 0}, {heeding ? domain_fd() : -1, POLLIN, 0}}};
    const auto s = std::chrono::duration_cast<std::chrono::seconds>(wait);
    const timespec time{s.count(), std::chrono::nanoseconds(wait - s).count()};
    if (ppoll(fds.data(), fds.size(), &time, nullptr) <= 0) {
        return Woken::by_clock;
    }
    if (fds[0].revents != 0 && lower()) {
        return Woken::by_call;
    }
    return fds[1].revents != 0 ? Woken::by_arrival : Woken::by_clock;
}

// Where the program has closed or replaced the descriptor, poll(2) finds it ready for ever.
bool ProgressThread::lower() {
    if (kernel::lower(wake_fd_)) {
        return true;
    }
    if (errno != EAGAIN && errno != EINTR) {
        wake_lost_ = true;
        DAT_WARN(core,
                 "descriptor %d was closed or replaced by the program, which must leave those of "
                 "the provider alone: the progress thread is not woken any more",
                 wake_fd_);
    }
    return false;
}

// A post may take longer than a tick, where the kernel does a device's work within it; who
// posts many of them polls behind the last.
bool ProgressThread::application_is_there() const {
    return domain_.is_slept_on() || domain_.polls_.load(std::memory_order_relaxed) != seen_ ||
           domain_.biased_lock_.is_occupied();
}

// The application's data does not wait for the thread: a device moves it, or a thread of the
// application is woken by what the thread is woken by, and handles it.
bool ProgressThread::comes_second() const {
    return domain_.arrivals_fd() >= 0 || shares_descriptor_.load(std::memory_order_relaxed);
}

// The application has polled since the last look, and goes on with it. One that polled a few times
// and does something else since, such as to wait for its memory to change, leaves what arrives to
// the thread.
bool ProgressThread::is_back(Tick glance) {
    if (!application_is_there()) {
        return false;
    }
    if (comes_second() || domain_.is_slept_on()) {
        return true;
    }
    seen_ = domain_.polls_.load(std::memory_order_relaxed);
    domain_.poller_.seen();
    for (const auto end = Clock::now() + glance; Clock::now() < end;) {
        sched_yield(); // to an application that has the same processor
        if (domain_.polls_.load(std::memory_order_relaxed) != seen_) {
            return true;
        }
    }
    return domain_.is_slept_on() ||
           domain_.biased_lock_.is_occupied(); // by a poll that takes longer
}

// To a thread of the application that is woken by them.
bool ProgressThread::leaves_arrivals() const { return comes_second() || domain_.is_slept_on(); }

void ProgressThread::run() {
    pthread_setname_np(pthread_self(), "dat-progress");
    Poller::is_own_thread();
    // A tick may be hardly longer than what the kernel adds otherwise.
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    Tick deaf{0};
    for (Tick tick = first_tick(); !ending_.load(std::memory_order_acquire);) {
        Woken woken = deaf > deaf.zero() ? sleep(deaf, false) : Woken::by_clock;
        if (woken == Woken::by_clock) {
            woken = sleep(tick - deaf, !leaves_arrivals());
        }
        if (ending_.load(std::memory_order_acquire)) {
            return;
        }
        const bool summoned = summoned_.exchange(false, std::memory_order_acquire);
        if (summoned) {
            seen_ = domain_.polls_.load(std::memory_order_relaxed);
        }
        // While the program is there, it takes what arrives for it, or has stopped, which a glance
        // tells. Where it takes all that arrives, the thread hears of it less and less often.
        const bool arrived = woken == Woken::by_arrival;
        const bool there = arrived ? is_back(kShortGlance) : application_is_there();
        if (!summoned && !there && domain_.poller_.waits_for_processor()) {
            // It is back as soon as it has one, and this thread would only be in its way.
            stay_away(tick);
            tick = deaf = std::min(2 * tick, pace_.second);
        } else if (summoned || !there) {
            take_over(summoned);
            tick = first_tick();
            deaf = deaf.zero();
        } else {
            stay_away(tick);
            tick = woken == Woken::by_call ? std::min(tick, pace_.second) : next_tick(tick);
            deaf = arrived ? std::min(std::max(2 * deaf, kDeaf), tick) : deaf.zero();
        }
        looks_seldom_.store(tick > pace_.second, std::memory_order_relaxed);
    }
}

ProgressThread::Tick ProgressThread::first_tick() const {
    return comes_second() ? pace_.second : soon_;
}

ProgressThread::Tick ProgressThread::next_tick(Tick tick) const {
    const Tick most = comes_second() ? pace_.second : pace_.most;
    return std::min(2 * tick, domain_.arrivals_fd() >= 0 ? pace_.of_device : most);
}

// `tick`: since the last look.
void ProgressThread::stay_away(Tick tick) {
    const std::uint64_t polls = domain_.polls_.load(std::memory_order_relaxed);
    still_ = polls == seen_ ? still_ + tick : tick.zero();
    seen_ = polls;
    domain_.poller_.seen();
    if (still_ > kLongSleep) {
        still_ = tick.zero();
        sleep_as_long();
    }
}

// What it sleeps for is said before it looks, and looked at after that has changed.
void ProgressThread::sleep_as_long() {
    domain_.dormant_.store(true, std::memory_order_seq_cst);
    if (domain_.is_slept_on()) {
        woken(kLong);
    }
    domain_.dormant_.store(false, std::memory_order_seq_cst);
}

// Looks after the domain until the application is back or the thread has to end.
// From here on nothing is put off for a poll that may not come; what was, goes out.
void ProgressThread::take_over(bool summoned) {
    domain_.unattended_.store(true, std::memory_order_relaxed);
    domain_.progress_as_outsider();
    soon_ = watch(summoned) ? pace_.soon : std::min(2 * soon_, pace_.most);
    domain_.unattended_.store(false, std::memory_order_relaxed);
}

// Until the application is back. `in_charge`: nobody else is woken by the domain's descriptor.
// True: something arrived before, or may have.
bool ProgressThread::watch(bool in_charge) {
    while (!ending_.load(std::memory_order_acquire)) {
        if (!domain_.rest_as_outsider()) {
            domain_.progress_as_outsider();
            if (is_back()) {
                break;
            }
            continue;
        }
        if (is_back()) {
            break;
        }
        std::array<pollfd, 2> fds{{{domain_fd(), POLLIN, 0}, {wake_fd(), POLLIN, 0}}};
        const int ready = poll(fds.data(), fds.size(), static_cast<int>(kLong.count()));
        if (ready < 0 && errno != EINTR) {
            break;
        }
        const bool called = fds[1].revents != 0 && lower();
        const bool arrived = ready > 0 && fds[0].revents != 0;
        if (arrived && !called && !leaves_arrivals() && !domain_.biased_lock_.is_occupied()) {
            // What arrived does not wait for the glance: who is back calls. A glance right behind
            // it would see the program ask for what arrived, and take that for more.
            in_charge = true;
            seen_ = domain_.polls_.load(std::memory_order_relaxed);
            domain_.progress_as_outsider();
            continue;
        }
        if (is_back()) {
            break;
        }
        if (ready == 0) {
            domain_.look_at_timers_as_outsider();
        }
        if (!arrived) {
            continue; // what the application has woken is put to rest
        }
        if (!in_charge && comes_second() && (woken(kGrace) || application_is_there())) {
            break;
        }
        in_charge = true;
        domain_.progress_as_outsider();
    }
    return in_charge;
}

} // namespace dat::engine
