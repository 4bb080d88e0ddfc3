// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Sleeping on descriptors. May include: std, system headers.
#ifndef DAT_SHIM_WAKE_H
#define DAT_SHIM_WAKE_H

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <memory>
#include <mutex>
#include <poll.h>
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
        if (fd_ >= 0) {
            close(std::exchange(fd_, -1));
        }
    }
    // -1: out of descriptors.
    int fd() {
        if (fd_ < 0) {
            fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        }
        return fd_;
    }
    // Nobody sleeps on what was not made.
    void raise() const {
        const std::uint64_t one = 1;
        if (fd_ >= 0) {
            [[maybe_unused]] const auto written = write(fd_, &one, sizeof one);
        }
    }
    // Whether it was raised.
    bool clear() const {
        std::uint64_t count = 0;
        return fd_ >= 0 && read(fd_, &count, sizeof count) > 0;
    }
    // clear(), if poll(2) has found it raised among these: no system call where it has not.
    bool clear_if_in(const std::vector<pollfd>& polled) const {
        for (const pollfd& each : polled) {
            if (each.fd == fd_ && each.revents != 0) {
                return clear();
            }
        }
        return false;
    }

  private:
    int fd_ = -1;
};

// What threads of an IA sleep on: as many as ever slept at once. Any thread.
class WakePool {
  public:
    // Returned to the pool at its end.
    class Loan {
      public:
        Loan(WakePool& pool, std::unique_ptr<Wake> wake) : pool_(pool), wake_(std::move(wake)) {}
        ~Loan() { pool_.give_back(std::move(wake_)); }
        Loan(const Loan&) = delete;
        Loan& operator=(const Loan&) = delete;
        Wake* operator->() const { return wake_.get(); }
        Wake* get() const { return wake_.get(); }

      private:
        WakePool& pool_;
        std::unique_ptr<Wake> wake_;
    };

    // Raised if who had it last was just being woken, so that the first sleep on it ends at
    // once. Throws std::bad_alloc; out of descriptors its fd() is -1.
    Loan borrow() {
        const std::lock_guard lock(mutex_);
        if (spare_.empty()) {
            spare_.reserve(made_ + 1); // so that giving back needs no memory
            ++made_;
            return {*this, std::make_unique<Wake>()};
        }
        std::unique_ptr<Wake> wake = std::move(spare_.back());
        spare_.pop_back();
        return {*this, std::move(wake)};
    }

  private:
    void give_back(std::unique_ptr<Wake> wake) {
        const std::lock_guard lock(mutex_);
        spare_.push_back(std::move(wake));
    }

    std::mutex mutex_;
    std::vector<std::unique_ptr<Wake>> spare_;
    std::size_t made_ = 0;
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

    // Sleeps until one of them is readable or the time is over; 0, or EINTR.
    int sleep(std::vector<pollfd>& watched) const {
        const auto rest = std::chrono::nanoseconds(end_ - Clock::now()).count();
        const auto left_ns = rest > 0 ? rest : 0;
        const timespec left{static_cast<time_t>(left_ns / kBillion),
                            static_cast<long>(left_ns % kBillion)};
        const int n = ppoll(watched.data(), watched.size(), bounded_ ? &left : nullptr, nullptr);
        return n < 0 && errno == EINTR ? EINTR : 0;
    }

  private:
    static constexpr std::int64_t kBillion = 1000000000;

    bool bounded_ = false;
    Clock::time_point end_{};
};

} // namespace dat::shim

#endif
