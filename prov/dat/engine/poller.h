// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The thread of the program that polls a domain, and whether it waits for a processor: on a busy
// machine one that has stopped polling may do so because another has its processor. It polls again
// when it has one, which is sooner than a progress thread could have taken over and given back.
#ifndef DAT_ENGINE_POLLER_H
#define DAT_ENGINE_POLLER_H

#include <atomic>
#include <chrono>
#include <sys/types.h>

namespace dat::engine {

class Poller {
  public:
    // Whoever calls is the one, unless it is_own_thread(). Now and then; no system call but the
    // first time in a thread.
    void note() noexcept;
    // The calling thread is none of the program's.
    static void is_own_thread() noexcept;

    // The progress thread has seen it poll. A system call.
    void seen() noexcept { time_seen_ = time(); }
    // It has not run since seen(), to speak of, and wants to; false also where that cannot be
    // found out. A few system calls.
    bool waits_for_processor() const noexcept;

  private:
    using Nanoseconds = std::chrono::nanoseconds;
    static constexpr Nanoseconds kNone{-1};
    Nanoseconds time() const noexcept; // of a processor that it has had; kNone: not known

    std::atomic<pid_t> thread_{0}; // 0: none yet
    Nanoseconds time_seen_ = kNone;
};

} // namespace dat::engine

#endif
