// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// FI_PROGRESS_AUTO: one thread a domain that moves things while the application
// does not. While the application polls, the thread only looks at a counter now
// and then; it goes to sleep on the domain's descriptors when the counter stood
// still, and leaves when it moves again. May include: soft, system headers.
#ifndef DAT_SOFT_PROGRESS_THREAD_H
#define DAT_SOFT_PROGRESS_THREAD_H

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

  private:
    // How often the counter is looked at, and how long a thread of the application
    // that was woken by the same descriptor is given to come first.
    static constexpr std::chrono::milliseconds kTick{4};
    static constexpr std::chrono::milliseconds kGrace{1};

    void run();
    bool application_is_there() const;
    bool stopped(std::chrono::milliseconds wait) const;
    void take_over();
    void watch();

    Domain& domain_;
    int stop_fd_ = -1; // an eventfd, readable when the thread has to end
    std::uint64_t seen_ = 0;
    std::thread thread_;
};

} // namespace dat::soft

#endif
