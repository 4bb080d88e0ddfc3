// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// FI_PROGRESS_AUTO: one thread a domain that moves things while the application
// does not. While the application polls, the thread only looks at a counter now
// and then, and when something arrives; it goes to sleep on the domain's descriptors when the
// counter stood still, and leaves when it goes on moving.
#ifndef DAT_ENGINE_PROGRESS_THREAD_H
#define DAT_ENGINE_PROGRESS_THREAD_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace dat::engine {

class Domain;

// How often the thread looks at the counter: soon after the application has come back, and half as
// often each time that it is still there. It is soon no more where nothing came while the
// application was away.
struct Pace {
    using Tick = std::chrono::microseconds;
    Tick soon{100};
    Tick most{1000};
    Tick second{4000};     // where a thread of the application is woken by what arrives
    Tick of_device{32000}; // at most, where a device moves data: little waits for the thread
};

class ProgressThread {
  public:
    explicit ProgressThread(Domain& domain, const Pace& pace = {}) : domain_(domain), pace_(pace) {}
    // Ends the thread; not under the lock.
    ~ProgressThread();
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;

    // 0 or -errno.
    int start();

    // The application polls again: the thread need not wait for a descriptor to see it.
    // From the application's thread; a system call.
    void yield();
    // Looks within a Pace::second whether the application is there. Under the lock; a system call
    // at most.
    void look_soon();
    // A thread of the application sleeps on the domain's descriptor outside of any call. Any
    // thread.
    void share_descriptor() { shares_descriptor_.store(true, std::memory_order_relaxed); }
    // Takes over at once, whatever the application has polled before: it is about to sleep on a
    // descriptor that only this thread makes readable. A system call.
    void take_charge();

  private:
    using Tick = Pace::Tick;
    enum class Woken : std::uint8_t { by_clock, by_call, by_arrival };

    // Who polls without a pause does so again within this, or within the shorter, which something
    // that has arrived waits for.
    static constexpr Tick kGlance{10};
    static constexpr Tick kShortGlance{3};
    // So long the thread does not hear of what arrives, at first, where it heard in vain.
    static constexpr Tick kDeaf{25};
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
    bool leaves_arrivals() const;
    Tick first_tick() const;
    Tick next_tick(Tick tick) const;
    bool application_is_there() const;
    bool is_back(Tick glance = kGlance);
    bool woken(Tick wait) { return sleep(wait, false) == Woken::by_call; }
    Woken sleep(Tick wait, bool heeding);
    int domain_fd() const;
    bool lower();
    int wake_fd() const { return wake_lost_ ? -1 : wake_fd_; }
    void stay_away(Tick tick);
    void sleep_as_long();
    void take_over(bool summoned);
    bool watch(bool in_charge);

    Domain& domain_;
    const Pace pace_;
    int wake_fd_ = -1;       // an eventfd, readable when the thread has to end or may leave
    bool wake_lost_ = false; // it is none of ours any more; the thread's alone
    std::atomic<bool> ending_{false};
    std::atomic<bool> summoned_{false}; // take_charge() was called
    std::uint64_t seen_ = 0;
    std::atomic<bool> looks_seldom_{false};
    std::atomic<bool> shares_descriptor_{false};
    Tick soon_ = pace_.soon; // the first after the application has come back
    Tick still_{0};          // in which the application did nothing but sleep
    std::thread thread_;
};

} // namespace dat::engine

#endif
