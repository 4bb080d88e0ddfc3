// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The calls that fail when scarce.h says so; the dynamic linker finds these before those of
// the C and C++ libraries, for every library of the process. A sanitizer keeps malloc(3),
// mmap(2) and pthread_create(3) to itself.
#include "../transport/sanitized.h"
#include "scarce.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

using dat::test::fails;
using dat::test::gone;
using dat::test::made;
using dat::test::Resource;

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

#ifndef DAT_SANITIZED
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}
#endif

namespace {

void* plain(std::size_t size, std::size_t alignment) {
#ifdef DAT_SANITIZED
    if (alignment <= alignof(std::max_align_t)) {
        return std::malloc(size);
    }
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
#else
    return alignment <= alignof(std::max_align_t) ? __libc_malloc(size)
                                                  : __libc_memalign(alignment, size);
#endif
}

void drop(void* memory) {
    gone(memory);
#ifdef DAT_SANITIZED
    std::free(memory);
#else
    __libc_free(memory);
#endif
}

void* give(std::size_t size, std::size_t alignment, void* caller) {
    if (fails(Resource::memory, caller, "operator new")) {
        return nullptr;
    }
    void* const memory = plain(size, alignment);
    made(memory, caller);
    return memory;
}

void* give_or_throw(std::size_t size, std::size_t alignment, void* caller) {
    void* const memory = give(size ? size : 1, alignment, caller);
    if (!memory) {
        throw std::bad_alloc();
    }
    return memory;
}

constexpr std::size_t kUsual = alignof(std::max_align_t);

template <class Function> Function* real(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool refuses(void* caller, const char* what, int error = EMFILE) {
    if (!fails(Resource::systems, caller, what)) {
        return false;
    }
    errno = error;
    return true;
}

} // namespace

#pragma GCC visibility push(default)

void* operator new(std::size_t size) { return give_or_throw(size, kUsual, CALLER); }
void* operator new[](std::size_t size) { return give_or_throw(size, kUsual, CALLER); }
void* operator new(std::size_t size, std::align_val_t alignment) {
    return give_or_throw(size, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return give_or_throw(size, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return give(size, kUsual, CALLER);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return give(size, kUsual, CALLER);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return give(size, static_cast<std::size_t>(alignment), CALLER);
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return give(size, static_cast<std::size_t>(alignment), CALLER);
}
void operator delete(void* memory) noexcept { drop(memory); }
void operator delete[](void* memory) noexcept { drop(memory); }
void operator delete(void* memory, std::size_t) noexcept { drop(memory); }
void operator delete[](void* memory, std::size_t) noexcept { drop(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { drop(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { drop(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { drop(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { drop(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { drop(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { drop(memory); }

extern "C" {

#ifndef DAT_SANITIZED
void* malloc(std::size_t size) {
    if (fails(Resource::memory, CALLER, "malloc")) {
        errno = ENOMEM;
        return nullptr;
    }
    void* const memory = __libc_malloc(size);
    made(memory, CALLER);
    return memory;
}

void* calloc(std::size_t count, std::size_t size) {
    if (fails(Resource::memory, CALLER, "calloc")) {
        errno = ENOMEM;
        return nullptr;
    }
    void* const memory = __libc_calloc(count, size);
    made(memory, CALLER);
    return memory;
}

void* realloc(void* before, std::size_t size) {
    if (fails(Resource::memory, CALLER, "realloc")) {
        errno = ENOMEM;
        return nullptr;
    }
    gone(before);
    void* const memory = __libc_realloc(before, size);
    made(memory, CALLER);
    return memory;
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
    if (fails(Resource::memory, CALLER, "posix_memalign")) {
        return ENOMEM;
    }
    *memory = __libc_memalign(alignment, size);
    made(*memory, CALLER);
    return *memory ? 0 : ENOMEM;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    void* memory = nullptr;
    if (fails(Resource::memory, CALLER, "aligned_alloc")) {
        errno = ENOMEM;
        return nullptr;
    }
    memory = __libc_memalign(alignment, size);
    made(memory, CALLER);
    return memory;
}

void free(void* memory) { drop(memory); }

void* mmap(void* at, std::size_t size, int protection, int flags, int fd, off_t offset) {
    static auto* const call = real<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
    return refuses(CALLER, "mmap", ENOMEM) ? MAP_FAILED
                                           : call(at, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
    static auto* const call =
        real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
    return refuses(CALLER, "pthread_create") ? EAGAIN : call(thread, attributes, run, argument);
}
#endif

int socket(int domain, int type, int protocol) {
    static auto* const call = real<int(int, int, int)>("socket");
    return refuses(CALLER, "socket") ? -1 : call(domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int pair[2]) {
    static auto* const call = real<int(int, int, int, int*)>("socketpair");
    return refuses(CALLER, "socketpair") ? -1 : call(domain, type, protocol, pair);
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
    static auto* const call = real<int(int, sockaddr*, socklen_t*, int)>("accept4");
    return refuses(CALLER, "accept4") ? -1 : call(fd, address, size, flags);
}

int epoll_create1(int flags) {
    static auto* const call = real<int(int)>("epoll_create1");
    return refuses(CALLER, "epoll_create1") ? -1 : call(flags);
}

int epoll_ctl(int set, int operation, int fd, epoll_event* event) {
    static auto* const call = real<int(int, int, int, epoll_event*)>("epoll_ctl");
    return operation == EPOLL_CTL_ADD && refuses(CALLER, "epoll_ctl", ENOSPC)
               ? -1
               : call(set, operation, fd, event);
}

int eventfd(unsigned int count, int flags) {
    static auto* const call = real<int(unsigned int, int)>("eventfd");
    return refuses(CALLER, "eventfd") ? -1 : call(count, flags);
}

int timerfd_create(int clock, int flags) {
    static auto* const call = real<int(int, int)>("timerfd_create");
    return refuses(CALLER, "timerfd_create") ? -1 : call(clock, flags);
}

int memfd_create(const char* name, unsigned int flags) {
    static auto* const call = real<int(const char*, unsigned int)>("memfd_create");
    return refuses(CALLER, "memfd_create") ? -1 : call(name, flags);
}

int dup(int fd) {
    static auto* const call = real<int(int)>("dup");
    return refuses(CALLER, "dup") ? -1 : call(fd);
}

int pipe2(int pair[2], int flags) {
    static auto* const call = real<int(int*, int)>("pipe2");
    return refuses(CALLER, "pipe2") ? -1 : call(pair, flags);
}

int open(const char* path, int flags, ...) {
    static auto* const call = real<int(const char*, int, ...)>("open");
    va_list rest;
    va_start(rest, flags);
    const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : mode_t{0};
    va_end(rest);
    return refuses(CALLER, "open") ? -1 : call(path, flags, mode);
}

// Where the process has no room for what comes along the kernel drops that, and says so.
ssize_t recvmsg(int fd, msghdr* message, int flags) {
    static auto* const call = real<ssize_t(int, msghdr*, int)>("recvmsg");
    if (message->msg_controllen > 0 && fails(Resource::systems, CALLER, "recvmsg")) {
        message->msg_control = nullptr;
        message->msg_controllen = 0;
    }
    return call(fd, message, flags);
}

} // extern "C"
#pragma GCC visibility pop
