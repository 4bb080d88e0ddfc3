// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// File descriptors and timers of one domain or one listener: an epoll set that
// can itself be waited for, with the timers in it as a timerfd. Level-triggered.
// The owner serializes all calls (a domain: by its gate); only fd() may be used
// from elsewhere. May include: std, system headers.
#ifndef DAT_SOFT_REACTOR_H
#define DAT_SOFT_REACTOR_H

#include <chrono>
#include <cstdint>
#include <map>
#include <span>

struct epoll_event;

namespace dat::soft {

using Clock = std::chrono::steady_clock;

// Something with a file descriptor.
class Pollable {
  public:
    // `events`: EPOLLIN, EPOLLOUT ... May add and remove pollables, also itself.
    virtual void ready(std::uint32_t events) = 0;

  protected:
    ~Pollable() = default;
};

// Something with a deadline. Disarmed before it is destroyed.
class Timer {
  public:
    // Called once, disarmed. May arm itself again.
    virtual void expired() = 0;
    bool armed() const { return armed_; }

  protected:
    ~Timer() = default;

  private:
    friend class Reactor;
    bool armed_ = false;
    std::multimap<Clock::time_point, Timer*>::iterator at_;
};

class Reactor {
  public:
    Reactor() = default;
    ~Reactor();
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    // Makes the descriptors. 0 or -errno (EMFILE, ENFILE, ENOMEM).
    int open();

    // Readable whenever run() would find something to do.
    int fd() const { return epoll_fd_; }

    // 0 or -errno (ENOSPC, ENOMEM). A descriptor is in at most once.
    int add(int fd, std::uint32_t events, Pollable& pollable);
    void modify(int fd, std::uint32_t events, Pollable& pollable);
    void remove(int fd, Pollable& pollable);

    void arm(Timer& timer, Clock::time_point when);
    void arm(Timer& timer, Clock::duration after) { arm(timer, Clock::now() + after); }
    void disarm(Timer& timer);

    // Calls what is ready and what has expired; does not block. Returns how many
    // were called.
    int run();

  private:
    void expire();
    void set_timer_fd();

    int epoll_fd_ = -1;
    int timer_fd_ = -1;
    std::multimap<Clock::time_point, Timer*> timers_;
    Clock::time_point set_for_ = Clock::time_point::max(); // what timer_fd_ is set to
    std::span<epoll_event> batch_; // being dispatched: remove() strikes out of it
};

} // namespace dat::soft

#endif
