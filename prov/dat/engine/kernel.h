// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// System calls that are no points of cancellation (pthread_cancel(3)), as those of the C library
// are: a thread of the program that ends within one would leave a lock taken, or unwind through
// what may not throw. Entered straight, which takes fewer instructions as well. Arguments,
// results and errno are those of the functions of the same names. Any thread.
#ifndef DAT_ENGINE_KERNEL_H
#define DAT_ENGINE_KERNEL_H

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace dat::kernel {

// What the kernel answers: -errno where it refuses.
#if defined(__x86_64__) && defined(__LP64__)
[[gnu::always_inline]] inline long enter(long number, long a, long b = 0, long c = 0, long d = 0,
                                         long e = 0, long f = 0) {
    register long fourth asm("r10") = d;
    register long fifth asm("r8") = e;
    register long sixth asm("r9") = f;
    asm volatile("syscall"
                 : "+a"(number)
                 : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                 : "rcx", "r11", "memory");
    return number;
}
#elif defined(__aarch64__) && defined(__LP64__)
[[gnu::always_inline]] inline long enter(long number, long a, long b = 0, long c = 0, long d = 0,
                                         long e = 0, long f = 0) {
    register long which asm("x8") = number;
    register long first asm("x0") = a;
    register long second asm("x1") = b;
    register long third asm("x2") = c;
    register long fourth asm("x3") = d;
    register long fifth asm("x4") = e;
    register long sixth asm("x5") = f;
    asm volatile("svc 0"
                 : "+r"(first)
                 : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                 : "memory");
    return first;
}
#else
inline long enter(long number, long a, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    const long result = syscall(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
}
#endif

[[gnu::always_inline]] inline long answer(long result) {
    if (result < 0) [[unlikely]] {
        errno = static_cast<int>(-result);
        return -1;
    }
    return result;
}

template <class T> [[gnu::always_inline]] inline long number_of(T* pointer) {
    return reinterpret_cast<std::intptr_t>(pointer);
}
[[gnu::always_inline]] inline long number_of(std::size_t size) { return static_cast<long>(size); }

[[gnu::always_inline]] inline ssize_t send(int fd, const void* data, std::size_t size, int flags) {
    return answer(enter(SYS_sendto, fd, number_of(data), number_of(size), flags));
}
[[gnu::always_inline]] inline ssize_t recv(int fd, void* data, std::size_t size, int flags) {
    return answer(enter(SYS_recvfrom, fd, number_of(data), number_of(size), flags));
}
inline ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    return answer(enter(SYS_sendmsg, fd, number_of(message), flags));
}
inline ssize_t recvmsg(int fd, msghdr* message, int flags) {
    return answer(enter(SYS_recvmsg, fd, number_of(message), flags));
}
inline ssize_t read(int fd, void* data, std::size_t size) {
    return answer(enter(SYS_read, fd, number_of(data), number_of(size)));
}
inline ssize_t readv(int fd, const iovec* pieces, int count) {
    return answer(enter(SYS_readv, fd, number_of(pieces), count));
}
inline ssize_t write(int fd, const void* data, std::size_t size) {
    return answer(enter(SYS_write, fd, number_of(data), number_of(size)));
}
inline int connect(int fd, const sockaddr* address, socklen_t size) {
    return static_cast<int>(answer(enter(SYS_connect, fd, number_of(address), size)));
}
inline int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
    return static_cast<int>(
        answer(enter(SYS_accept4, fd, number_of(address), number_of(size), flags)));
}
inline int close(int fd) {
#ifdef __SANITIZE_THREAD__ // which has to know, since the number is used again
    return ::close(fd);
#else
    return static_cast<int>(answer(enter(SYS_close, fd)));
#endif
}
// Of epoll_wait(2) what does not sleep.
[[gnu::always_inline]] inline int epoll_look(int fd, epoll_event* events, int count) {
    return static_cast<int>(
        answer(enter(SYS_epoll_pwait, fd, number_of(events), count, 0, 0, sizeof(std::uint64_t))));
}
// At this moment: one of these events, or its end, or it is none of ours any more.
inline bool has_event(int fd, short events) {
    long now[4] = {}; // a timespec of either width
    pollfd asked{fd, events, 0};
    return enter(SYS_ppoll, number_of(&asked), 1, number_of(now), 0, sizeof(std::uint64_t)) > 0;
}
inline bool is_readable(int fd) { return has_event(fd, POLLIN); }
// Of a descriptor of eventfd(2): adds one. False: it is none any more, or holds all that it can.
inline bool raise(int fd) {
    const std::uint64_t one = 1;
    return write(fd, &one, sizeof one) == sizeof one;
}
// Whether it had been raised; not any more. EAGAIN: it had not; any other: it is none any more.
inline bool lower(int fd) {
    std::uint64_t count = 0;
    const ssize_t n = read(fd, &count, sizeof count);
    if (n >= 0 && n != sizeof count) {
        errno = EBADF;
    }
    return n == sizeof count;
}

// As long as it lives, what the thread calls is no point of cancellation: for functions of
// libraries that make system calls of their own. Costs too much for where data moves.
class NoCancel {
  public:
    NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
    NoCancel(const NoCancel&) = delete;
    NoCancel& operator=(const NoCancel&) = delete;

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

// The same for one call.
template <class Function, class... Arguments>
auto uncancelled(Function&& function, Arguments&&... arguments) {
    const NoCancel within;
    return function(std::forward<Arguments>(arguments)...);
}

} // namespace dat::kernel

#endif
