// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Sleeping on descriptors: where a thread may be cancelled (pthread_cancel(3)), and nowhere else.
#ifndef DAT_SHIM_WAKE_H
#define DAT_SHIM_WAKE_H

#include "engine/kernel.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dat::shim {

// A descriptor that is readable from raise() until clear(); made at its first use.
class Wake {
  public:
    Wake() = default;
    ~Wake() { drop(); }
    Wake(const Wake&) = delete;
    Wake& operator=(const Wake&) = delete;

    // As if new; who watches it does not any more.
    void drop() {
        if (made() >= 0) {
            kernel::close(made());
            forget();
        }
    }
    void swap(Wake& other) {
        fd_.store(other.fd_.exchange(made(), std::memory_order_relaxed), std::memory_order_relaxed);
    }
    // -1: out of descriptors.
    int fd() {
        if (made() < 0) {
            fd_.store(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), std::memory_order_relaxed);
        }
        return made();
    }
    // As it was made; -1: it was not.
    int made() const { return fd_.load(std::memory_order_relaxed); }
    // Nobody sleeps on what was not made.
    void raise() const {
        if (made() >= 0) {
            kernel::raise(made());
        }
    }
    void clear() const {
        if (made() >= 0) {
            kernel::lower(made());
        }
    }

    // What became of it among those that poll(2) has looked at. Where it was raised it is cleared;
    // no system call where it was not.
    enum class Found { quiet, raised, lost };
    // Lost: the program has closed or replaced it. The next fd() makes another.
    Found found_in(const std::vector<pollfd>& polled) {
        for (const pollfd& each : polled) {
            if (each.fd == made() && each.revents != 0) {
                if ((each.revents & POLLNVAL) == 0) {
                    if (kernel::lower(made())) {
                        return Found::raised;
                    }
                    if (errno == EAGAIN) { // by another thread
                        return Found::quiet;
                    }
                }
                forget();
                return Found::lost;
            }
        }
        return Found::quiet;
    }

  private:
    void forget() { fd_.store(-1, std::memory_order_relaxed); }

    std::atomic<int> fd_{-1};
};

// What threads of an IA sleep on: as many as ever slept at once. Any thread.
class WakePool {
  public:
    // Returned to the pool at its end.
    class TemporaryRegistration {
      public:
        TemporaryRegistration(WakePool& pool, Wake& wake) : pool_(pool), wake_(wake) {}
        ~TemporaryRegistration() { pool_.give_back(wake_); }
        TemporaryRegistration(const TemporaryRegistration&) = delete;
        TemporaryRegistration& operator=(const TemporaryRegistration&) = delete;
        Wake* operator->() const { return &wake_; }
        Wake* get() const { return &wake_; }

      private:
        WakePool& pool_;
        Wake& wake_;
    };

    // Raised if who had it last was just being woken, or behind end(), so that the first sleep
    // on it ends at once. Throws std::bad_alloc; out of descriptors its made() is -1.
    TemporaryRegistration borrow() {
        const std::lock_guard lock(mutex_);
        if (spare_.empty()) {
            spare_.reserve(all_.size() + 1); // so that giving back needs no memory
            all_.reserve(all_.size() + 1);
            all_.push_back(std::make_unique<Wake>());
            spare_.push_back(all_.back().get());
        }
        Wake& wake = *spare_.back();
        if (wake.fd() >= 0 && ended_) {
            wake.raise();
        }
        spare_.pop_back();
        return {*this, wake};
    }
    // Wakes all that sleep, who are to look whether the IA closes, and to return then. Returns when
    // none of them has a loan any more.
    void end() {
        for (;; sched_yield()) {
            const std::lock_guard lock(mutex_);
            ended_ = true;
            if (spare_.size() == all_.size()) {
                return;
            }
            for (const std::unique_ptr<Wake>& each : all_) {
                each->raise();
            }
        }
    }

  private:
    void give_back(Wake& wake) {
        const std::lock_guard lock(mutex_);
        spare_.push_back(&wake);
    }

    std::mutex mutex_;
    std::vector<std::unique_ptr<Wake>> all_;
    std::vector<Wake*> spare_;
    bool ended_ = false;
};

// Without the lock as long as it lives; whoever is cancelled meanwhile has it again as well.
class Unlocked {
  public:
    explicit Unlocked(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
    ~Unlocked() { lock_.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

  private:
    std::unique_lock<std::mutex>& lock_;
};

// To be polled for reading, once.
inline void watch_once(std::vector<pollfd>& watched, int fd) {
    for (const pollfd& known : watched) {
        if (known.fd == fd) {
            return;
        }
    }
    watched.push_back({fd, POLLIN, 0});
}

// The end of a wait.
class Deadline {
  public:
    using Clock = std::chrono::steady_clock;
    Deadline() = default; // never
    // In so many microseconds; `forever` is never.
    Deadline(std::uint32_t timeout_us, std::uint32_t forever)
        : bounded_(timeout_us != forever),
          end_(bounded_ ? Clock::now() + std::chrono::microseconds(timeout_us)
                        : Clock::time_point()) {}
    bool passed() const { return bounded_ && Clock::now() >= end_; }

    // Sleeps until one of them is readable or the time is over, or for some seconds: who sleeps
    // looks then whether it is still to, since the program may have closed what it would be woken
    // by. 0, or EINTR. The thread may be cancelled.
    int sleep(std::vector<pollfd>& watched) const {
        std::int64_t left_ns = kLongest;
        if (bounded_) {
            const std::int64_t rest = std::chrono::nanoseconds(end_ - Clock::now()).count();
            left_ns = std::clamp<std::int64_t>(rest, 0, kLongest);
        }
        const timespec left{static_cast<time_t>(left_ns / kBillion),
                            static_cast<long>(left_ns % kBillion)};
        const int n = ppoll(watched.data(), watched.size(), &left, nullptr);
        return n < 0 && errno == EINTR ? EINTR : 0;
    }

  private:
    static constexpr std::int64_t kBillion = 1000000000;
    static constexpr std::int64_t kLongest = 2 * kBillion;

    bool bounded_ = false;
    Clock::time_point end_{};
};

} // namespace dat::shim

#endif
