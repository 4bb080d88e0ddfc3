// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// File descriptors and timers of one domain or one listener: an epoll set that
// can itself be waited for, with the timers in it as a timerfd. Level-triggered.
// The owner serializes all calls (a domain: by its lock); only fd() may be used
// from elsewhere. A program may close any descriptor, or put another in its place: what
// the kernel then refuses is logged, and ends what it concerns.
#ifndef DAT_ENGINE_REACTOR_H
#define DAT_ENGINE_REACTOR_H

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <sys/epoll.h>
#include <vector>

namespace dat::engine {

using Clock = std::chrono::steady_clock;

// Something with a file descriptor; in one reactor at a time.
class Pollable {
  public:
    // `events`: EPOLLIN, EPOLLOUT ... May add and remove pollables, also itself.
    virtual void ready(std::uint32_t events) = 0;
    // Nothing will ever be ready again: the reactor is lost. May remove pollables, also itself.
    virtual void lost() {}

  protected:
    ~Pollable() = default;

  private:
    friend class Reactor;
    std::uint32_t slot_ = 0; // of the reactor that it is in
};

// Something with a deadline. Disarmed before it is destroyed. What a reactor keeps of it is made
// with it, so that nothing fails when it is armed.
class Timer {
  public:
    Timer(); // throws std::bad_alloc
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;
    // Called once, disarmed. May arm itself again.
    virtual void expired() = 0;
    bool armed() const { return armed_; }

  protected:
    ~Timer() = default;

  private:
    friend class Reactor;
    using Deadlines = std::multimap<Clock::time_point, Timer*>;
    bool armed_ = false;
    Deadlines::node_type entry_; // while it is not armed
    Deadlines::iterator at_;     // while it is
};

class Reactor {
  public:
    Reactor() = default;
    ~Reactor();
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    // Makes the descriptors, both or none. 0 or -errno (EMFILE, ENFILE, ENOMEM, ENOSPC).
    int open();

    // Readable whenever run() would find something to do.
    int fd() const { return epoll_fd_; }

    // 0 or -errno (ENOSPC, ENOMEM; EBADF where this is lost). A descriptor is in at most once.
    int add(int fd, std::uint32_t events, Pollable& pollable);
    // False: the descriptor is not the one that was added any more; nothing will be ready.
    [[nodiscard]] bool modify(int fd, std::uint32_t events, Pollable& pollable);
    // What was added for `from` is `to`'s from here on, and `from` is in no reactor.
    void hand_over(Pollable& from, Pollable& to);
    // From here on it is not called, whatever the descriptor is by now.
    void remove(int fd, Pollable& pollable);

    void arm(Timer& timer, Clock::time_point when);
    void arm(Timer& timer, Clock::duration after) { arm(timer, Clock::now() + after); }
    void disarm(Timer& timer);

    // Calls what is ready and what has expired; does not block. Returns how many
    // were called; where it is kMostAtOnce, more may be ready.
    static constexpr int kMostAtOnce = 64;
    int run();
    // The same in two steps. look() may be called from elsewhere, beside all others: what it finds
    // is known by its turn, so that what has been removed by then is not called.
    struct Found {
        std::array<epoll_event, kMostAtOnce> events; // the first `count`
        int count = 0;                               // or -errno
    };
    void look(Found& found) const;
    int run(const Found& found);
    // fd() is not ours any more: all that was in here has been told so.
    bool is_lost() const { return lost_.load(std::memory_order_relaxed); }
    // Timers are due, and fd() has not become readable for long.
    void look_at_timers();

  private:
    // What is watched for. The kernel knows it by its place and its turn, so that what it says of
    // a descriptor that lives on elsewhere, and could not be removed, reaches nobody.
    struct Slot {
        Pollable* pollable = nullptr; // nullptr: free
        std::uint32_t turn = 0;       // how often it has been freed
    };

    void lose();
    void shut();
    void expire();
    void expire_due();
    void set_timer_fd();
    int make_timer_fd();
    std::uint64_t word_of(const Pollable& pollable) const;
    // nullptr: nobody
    Pollable* known_as(std::uint64_t word) const;
    void vacate(Pollable& pollable);

    int epoll_fd_ = -1;
    int timer_fd_ = -1;
    Timer::Deadlines timers_;
    Clock::time_point set_for_ = Clock::time_point::max(); // what timer_fd_ is set to
    std::atomic<bool> lost_{false};
    bool running_ = false;
    std::vector<Slot> slots_;
    std::vector<std::uint32_t> vacant_; // of slots_; has room for all of them
};

} // namespace dat::engine

#endif
