// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See reactor.h. May include: soft, system headers.
#include "soft/reactor.h"

#include <array>
#include <cassert>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <utility>

namespace dat::soft {

Reactor::~Reactor() {
    assert(timers_.empty());
    if (timer_fd_ >= 0) {
        close(timer_fd_);
    }
    if (epoll_fd_ >= 0) {
        close(epoll_fd_);
    }
}

int Reactor::open() {
    epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
    timer_fd_ = epoll_fd_ < 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer_fd_ < 0) {
        return -errno;
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = nullptr; // stands for the timers
    return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, timer_fd_, &event) == 0 ? 0 : -errno;
}

int Reactor::add(int fd, std::uint32_t events, Pollable& pollable) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &pollable;
    return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void Reactor::modify(int fd, std::uint32_t events, Pollable& pollable) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &pollable;
    [[maybe_unused]] const int rc = epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, fd, &event);
    assert(rc == 0);
}

void Reactor::remove(int fd, Pollable& pollable) {
    [[maybe_unused]] const int rc = epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
    assert(rc == 0);
    for (epoll_event& event : batch_) {
        if (event.data.ptr == &pollable) {
            event.data.ptr = nullptr;
            event.events = 0;
        }
    }
}

void Reactor::arm(Timer& timer, Clock::time_point when) {
    disarm(timer);
    timer.at_ = timers_.emplace(when, &timer);
    timer.armed_ = true;
    set_timer_fd();
}

// The timerfd is left as it is: an early wake-up is harmless, and cheaper.
void Reactor::disarm(Timer& timer) {
    if (timer.armed_) {
        timers_.erase(timer.at_);
        timer.armed_ = false;
    }
}

void Reactor::set_timer_fd() {
    if (timers_.empty() || timers_.begin()->first >= set_for_) {
        return;
    }
    set_for_ = timers_.begin()->first;
    const auto since_epoch = set_for_.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    itimerspec spec{};
    spec.it_value.tv_sec = seconds.count();
    spec.it_value.tv_nsec = std::chrono::nanoseconds(since_epoch - seconds).count();
    timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Reactor::expire() {
    std::uint64_t count;
    if (read(timer_fd_, &count, sizeof count) < 0 && errno == EAGAIN) {
        return;
    }
    set_for_ = Clock::time_point::max();
    const auto now = Clock::now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
        Timer& timer = *timers_.begin()->second;
        disarm(timer);
        timer.expired();
    }
    set_timer_fd();
}

int Reactor::run() {
    std::array<epoll_event, 64> events;
    const int n = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), 0);
    if (n <= 0) {
        return 0;
    }
    const auto outer = std::exchange(batch_, std::span(events.data(), static_cast<std::size_t>(n)));
    assert(outer.empty());
    bool timers = false;
    for (epoll_event& event : batch_) {
        if (event.data.ptr) {
            static_cast<Pollable*>(event.data.ptr)->ready(event.events);
        } else if (event.events) {
            timers = true;
        }
    }
    batch_ = outer;
    if (timers) {
        expire();
    }
    return n;
}

} // namespace dat::soft
