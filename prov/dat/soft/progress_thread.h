// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// FI_PROGRESS_AUTO: one thread a domain that moves things while the application
// does not. While the application polls, the thread only looks at a counter now
// and then; it goes to sleep on the domain's descriptors when the counter stood
// still, and leaves when it goes on moving. May include: soft, system headers.
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
    // A thread of the application sleeps on the domain's descriptor outside of any call. Any
    // thread.
    void share_descriptor() { shares_descriptor_.store(true, std::memory_order_relaxed); }
    // Takes over at once, whatever the application has polled before: it is about to sleep on a
    // descriptor that only this thread makes readable. A system call.
    void take_charge();

  private:
    using Tick = std::chrono::microseconds;
    // How often the counter is looked at: soon after the application has come back, and half as
    // often each time that it is still there, up to kTick. It is soon no more where nothing came
    // while the application was away.
    static constexpr Tick kSoon{100};
    static constexpr Tick kTick{4000};
    // The same where a device moves data, since little waits for the thread.
    static constexpr Tick kLongestTick{32000};
    // Who polls without a pause does so again within this.
    static constexpr Tick kGlance{10};
    // How long a thread of the application that was woken by the same descriptor is given to
    // come first.
    static constexpr Tick kGrace{1000};
    // The longest sleep: within it the thread finds out that the program has closed what it is
    // woken by.
    static constexpr std::chrono::milliseconds kLong{5000};
    // So long the application did nothing but sleep: it may go on for hours.
    static constexpr std::chrono::milliseconds kLongSleep{64};

    void run();
    bool comes_second() const;
    Tick first_tick() const;
    Tick next_tick(Tick tick) const;
    bool application_is_there() const;
    bool is_back();
    bool woken(Tick wait);
    bool lower();
    int wake_fd() const { return wake_lost_ ? -1 : wake_fd_; }
    void stay_away(Tick tick);
    void sleep_as_long();
    void take_over(bool summoned);
    bool watch(bool in_charge);

    Domain& domain_;
    int wake_fd_ = -1;       // an eventfd, readable when the thread has to end or may leave
    bool wake_lost_ = false; // it is none of ours any more; the thread's alone
    std::atomic<bool> ending_{false};
    std::atomic<bool> summoned_{false}; // take_charge() was called
    std::uint64_t seen_ = 0;
    std::atomic<bool> looks_seldom_{false};
    std::atomic<bool> shares_descriptor_{false};
    Tick soon_ = kSoon; // the first after the application has come back
    Tick still_{0};     // in which the application did nothing but sleep
    std::thread thread_;
};

} // namespace dat::soft

#endif
