// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See reactor.h.
#include "engine/reactor.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/reserve.h"
#include "engine/kernel.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <span>
#include <sys/epoll.h>
#include <sys/timerfd.h>

namespace dat::engine {
namespace {

constexpr std::uint64_t kTimers = UINT64_MAX; // stands for them

void say_lost(const char* what, int fd, int error) {
    DAT_WARN(core,
             "%s: %s; descriptor %d was closed or replaced by the program, which must leave those "
             "of the provider alone",
             what, std::strerror(error), fd);
}

} // namespace

Timer::Timer() {
    Deadlines one;
    one.emplace(Clock::time_point(), this);
    entry_ = one.extract(one.begin());
}

Reactor::~Reactor() {
    DAT_ASSERT(timers_.empty());
    shut();
}

int Reactor::open() {
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    const int error = epoll_fd_ < 0 ? -errno : make_timer_fd();
    if (error != 0) {
        shut();
    }
    return error;
}

int Reactor::make_timer_fd() {
    timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer_fd_ < 0) {
        return -errno;
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kTimers;
    return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, timer_fd_, &event) == 0 ? 0 : -errno;
}

void Reactor::shut() {
    if (timer_fd_ >= 0) {
        kernel::close(std::exchange(timer_fd_, -1));
    }
    if (epoll_fd_ >= 0) {
        kernel::close(std::exchange(epoll_fd_, -1));
    }
}

std::uint64_t Reactor::word_of(const Pollable& pollable) const {
    return std::uint64_t{slots_[pollable.slot_].turn} << 32 | pollable.slot_;
}

Pollable* Reactor::known_as(std::uint64_t word) const {
    const auto slot = static_cast<std::uint32_t>(word);
    const bool known = slot < slots_.size() && slots_[slot].turn == word >> 32;
    return known ? slots_[slot].pollable : nullptr;
}

void Reactor::vacate(Pollable& pollable) {
    Slot& slot = slots_[pollable.slot_];
    slot.pollable = nullptr;
    ++slot.turn;
    vacant_.push_back(pollable.slot_);
}

int Reactor::add(int fd, std::uint32_t events, Pollable& pollable) {
    if (is_lost()) {
        return -EBADF;
    }
    try {
        if (vacant_.empty()) {
            base::reserve_for(vacant_, slots_.size() + 1);
            slots_.emplace_back();
            vacant_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
        }
    } catch (const std::bad_alloc&) {
        return -ENOMEM;
    }
    pollable.slot_ = vacant_.back();
    epoll_event event{};
    event.events = events;
    event.data.u64 = word_of(pollable);
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) {
        return -errno;
    }
    vacant_.pop_back();
    slots_[pollable.slot_].pollable = &pollable;
    return 0;
}

bool Reactor::modify(int fd, std::uint32_t events, Pollable& pollable) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = word_of(pollable);
    const bool done = !is_lost() && epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event) == 0;
    if (!done && !is_lost()) {
        say_lost("what is watched for cannot be changed", fd, errno);
    }
    return done;
}

void Reactor::hand_over(Pollable& from, Pollable& to) {
    to.slot_ = from.slot_;
    slots_[to.slot_].pollable = &to;
}

void Reactor::remove(int fd, Pollable& pollable) {
    vacate(pollable);
    if (!is_lost() && epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr) != 0) {
        say_lost("a descriptor cannot be taken back", fd, errno);
    }
}

void Reactor::arm(Timer& timer, Clock::time_point when) {
    disarm(timer);
    timer.entry_.key() = when;
    timer.at_ = timers_.insert(std::move(timer.entry_));
    timer.armed_ = true;
    set_timer_fd();
}

// The timerfd is left as it is: an early wake-up is harmless, and cheaper.
void Reactor::disarm(Timer& timer) {
    if (timer.armed_) {
        timer.entry_ = timers_.extract(timer.at_);
        timer.armed_ = false;
    }
}

void Reactor::set_timer_fd() {
    if (timers_.empty() || timers_.begin()->first >= set_for_ || is_lost()) {
        return;
    }
    set_for_ = timers_.begin()->first;
    const auto since_epoch = set_for_.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    itimerspec spec{};
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = std::chrono::nanoseconds(since_epoch - seconds).count();
    if (timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &spec, nullptr) == 0) {
        return;
    }
    say_lost("a timer cannot be set", timer_fd_, errno);
    // What has that number now is the program's.
    if (make_timer_fd() == 0) {
        timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &spec, nullptr);
    }
}

void Reactor::expire() {
    std::uint64_t count;
    if (kernel::read(timer_fd_, &count, sizeof count) < 0 && errno == EAGAIN) {
        return;
    }
    expire_due();
}

void Reactor::expire_due() {
    set_for_ = Clock::time_point::max();
    const auto now = Clock::now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
        Timer& timer = *timers_.begin()->second;
        disarm(timer);
        timer.expired();
    }
    set_timer_fd();
}

void Reactor::look_at_timers() {
    if (!timers_.empty() && timers_.begin()->first <= Clock::now()) {
        expire_due();
    }
}

// Who is watched is told, in the order in which they came; what they begin meanwhile is refused.
void Reactor::lose() {
    say_lost("what is watched for is lost", epoll_fd_, errno);
    lost_.store(true, std::memory_order_relaxed);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].pollable) {
            slots_[i].pollable->lost();
        }
    }
}

void Reactor::look(Found& found) const {
    if (is_lost()) [[unlikely]] {
        found.count = -EBADF; // what has that number now is the program's
        return;
    }
    found.count = kernel::epoll_look(epoll_fd_, found.events.data(), kMostAtOnce);
    if (found.count < 0) [[unlikely]] {
        found.count = -errno;
    }
}

int Reactor::run() {
    Found found;
    look(found);
    return run(found);
}

int Reactor::run(const Found& found) {
    if (is_lost()) [[unlikely]] {
        look_at_timers();
        return 0;
    }
    if (found.count <= 0) {
        if (found.count < 0 && found.count != -EINTR) [[unlikely]] {
            errno = -found.count;
            lose();
        }
        return 0;
    }
    DAT_ASSERT(!running_);
    running_ = true;
    bool timers = false;
    for (const epoll_event& event :
         std::span(found.events).first(static_cast<std::size_t>(found.count))) {
        if (event.data.u64 == kTimers) {
            timers = true;
        } else if (Pollable* const pollable = known_as(event.data.u64)) {
            pollable->ready(event.events);
        }
    }
    running_ = false;
    if (timers) {
        expire();
    }
    return found.count;
}

} // namespace dat::engine
