// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a thread of the application can sleep on.
#ifndef DAT_OFI_WAIT_H
#define DAT_OFI_WAIT_H

namespace dat::ofi {

// Makes an eventfd readable. Any thread.
void raise_event(int fd);

// A descriptor that is readable from raise() until clear(). Any thread.
class Signal {
  public:
    Signal() = default;
    ~Signal();
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;

    int open(); // 0 or -errno
    int fd() const { return fd_; }
    void raise() const;
    void clear() const;

  private:
    int fd_ = -1;
};

// A descriptor that is readable while one of those in it is (epoll). Any thread.
class WaitSet {
  public:
    WaitSet() = default;
    ~WaitSet();
    WaitSet(const WaitSet&) = delete;
    WaitSet& operator=(const WaitSet&) = delete;

    int open(); // 0 or -errno
    int fd() const { return fd_; }
    int add(int fd); // 0 or -errno
    void remove(int fd);

  private:
    int fd_ = -1;
};

// Sleeps until `fd` is readable, or the time is over, which a negative time never is: 0.
// -EBADF: `fd` is none any more; logged. A signal handler does not end the sleep. The thread may
// be cancelled (pthread_cancel(3)) here, and nowhere else in the provider: no lock is
// held, and what the caller keeps is given back as it unwinds.
int wait_readable(int fd, int timeout_ms);

} // namespace dat::ofi

#endif
