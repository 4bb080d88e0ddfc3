// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How one gets the page of a domain (prov/dat/engine/statistics_page.h): one connects to its
// abstract socket, and is given a descriptor. What comes is not trusted.
#ifndef UTIL_TOP_PAGE_SOCKET_H
#define UTIL_TOP_PAGE_SOCKET_H

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace dat::top {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~Descriptor() { reset(); }
    void reset(int fd = -1) {
        if (fd_ >= 0) {
            ::close(fd_);
        }
        fd_ = fd;
    }
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_ = -1;
};

// A connection to the socket of that name, which does not block. None: errno says why.
inline Descriptor connect_to_domain(const std::string& name) {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
        const int error = errno;
        socket.reset();
        errno = error;
    }
    return socket;
}

// What has come over it.
struct Given {
    ssize_t length = -1; // of the message; -1 and errno: none yet, or trouble; 0: the end
    std::uint64_t hello = 0;
    Descriptor memory; // the last that came
    bool one = false;  // it is the only one
};
inline Given receive_page(const Descriptor& socket) {
    Given given;
    iovec bytes{&given.hello, sizeof given.hello};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    given.length = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (given.length < 0) {
        return given;
    }
    std::size_t count = 0;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header;
         header = CMSG_NXTHDR(&message, header)) {
        const bool rights = header->cmsg_type == SCM_RIGHTS;
        const std::size_t here = rights ? (header->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
        for (std::size_t i = 0; i < here; ++i, ++count) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            given.memory.reset(fd);
        }
    }
    given.one = count == 1 && (message.msg_flags & MSG_CTRUNC) == 0;
    return given;
}

} // namespace dat::top

#endif
