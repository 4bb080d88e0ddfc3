// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Sleeping on descriptors. May include: std, system headers.
#ifndef DAT_SHIM_WAKE_H
#define DAT_SHIM_WAKE_H

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

namespace dat::shim {

// A descriptor that is readable from raise() until clear(); made at its first use.
class Wake {
  public:
    Wake() = default;
    ~Wake() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    Wake(const Wake&) = delete;
    Wake& operator=(const Wake&) = delete;

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
    void clear() const {
        std::uint64_t count = 0;
        if (fd_ >= 0) {
            [[maybe_unused]] const auto got = read(fd_, &count, sizeof count);
        }
    }

  private:
    int fd_ = -1;
};

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
