// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A descriptor of a program: it polls it, sets O_NONBLOCK on it, and never reads it (RP-16). It is
// an eventfd, which queues of the provider are told to write to.
#ifndef DAT_RPMA_CHANNEL_H
#define DAT_RPMA_CHANNEL_H

#include <atomic>
#include <mutex>

namespace dat::rpma {

class Channel {
  public:
    Channel() = default;
    ~Channel();
    Channel(const Channel&) = delete;
    Channel& operator=(const Channel&) = delete;

    int open(); // 0 or -errno
    int fd() const { return fd_; }
    void raise() const;
    // Whether it was readable, which it is not any more.
    bool lower() const;
    // The program does not want to sleep in a call.
    bool is_nonblocking() const;
    // Until it is readable. The thread may be cancelled (pthread_cancel(3)). 0; EBADF: it is none
    // any more.
    int sleep() const;

  private:
    int fd_ = -1;
    mutable std::mutex lowering_;
    mutable std::atomic<bool> lost_{false}; // what has that number is the program's
};

} // namespace dat::rpma

#endif
