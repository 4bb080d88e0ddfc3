// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// FI_PROGRESS_AUTO: one thread a domain that moves things while the application
// does not. While the application polls, the thread only looks at a counter now
// and then; it goes to sleep on the domain's descriptors when the counter stood
// still, and leaves when it moves again. May include: soft, system headers.
#ifndef DAT_SOFT_PROGRESS_THREAD_H
#define DAT_SOFT_PROGRESS_THREAD_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace dat::soft {

class Domain;

class ProgressThread {
  public:
    explicit ProgressThread(Domain& domain) : domain_(domain) {}
    // Ends the thread; not under the gate.
    ~ProgressThread();
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;

    // 0 or -errno.
    int start();

    // The application polls again: the thread need not wait for a descriptor to see it.
    // From the application's thread; a system call.
    void yield();
    // Looks within a kTick whether the application is there. Under the gate; a system call at most.
    void look_soon();
    // Takes over at once, whatever the application has polled before: it is about to sleep on a
    // descriptor that only this thread makes readable. A system call.
    void take_charge();

  private:
    // How often the counter is looked at. Where a device moves data that may be seldom, since
    // little waits for the thread: it looks half as often each time that the application is there.
    static constexpr std::chrono::milliseconds kTick{4};
    static constexpr std::chrono::milliseconds kLongestTick{32};
    // How long a thread of the application that was woken by the same descriptor is given to
    // come first.
    static constexpr std::chrono::milliseconds kGrace{1};
    // The longest sleep: within it the thread finds out that the program has closed what it is
    // woken by.
    static constexpr std::chrono::milliseconds kLong{5000};
    // So long the application did nothing but sleep: it may go on for hours.
    static constexpr std::chrono::milliseconds kLongSleep{64};

    void run();
    std::chrono::milliseconds next_tick(std::chrono::milliseconds tick) const;
    bool application_is_there() const;
    bool woken(std::chrono::milliseconds wait);
    bool lower();
    int wake_fd() const { return wake_lost_ ? -1 : wake_fd_; }
    void stay_away(std::chrono::milliseconds tick);
    void sleep_as_long();
    void take_over(bool summoned);
    void watch(bool in_charge);

    Domain& domain_;
    int wake_fd_ = -1;       // an eventfd, readable when the thread has to end or may leave
    bool wake_lost_ = false; // it is none of ours any more; the thread's alone
    std::atomic<bool> ending_{false};
    std::atomic<bool> summoned_{false}; // take_charge() was called
    std::uint64_t seen_ = 0;
    std::atomic<bool> looks_seldom_{false};
    std::chrono::milliseconds still_{0}; // in which the application did nothing but sleep
    std::thread thread_;
};

} // namespace dat::soft

#endif
