// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See local_socket.h.
#include "links/shm/local_socket.h"

#include "base/log.h"
#include "engine/kernel.h"
#include "engine/proc.h"
#include "engine/random.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

namespace dat::shm {

namespace {

// As many descriptors as one message can have (SCM_MAX_FD), so that the kernel drops none
// of them here.
constexpr std::size_t kMostRights = 253;

union Ancillary {
    cmsghdr header;
    std::array<char, CMSG_SPACE(kMostRights * sizeof(int))> room;
};

msghdr message_of(iovec& bytes) {
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    return message;
}

// All that came, in every control message; how many.
std::size_t take_rights(msghdr& message, std::span<net::Socket> into) {
    std::size_t count = 0;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const std::size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < here && count < into.size(); ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            into[count++] = net::Socket(fd);
        }
    }
    return count;
}

// That the peer has closed with something unread is told once, ahead of what it had said, which
// comes all the same.
template <class Call> ssize_t past_reset(Call&& call) {
    const ssize_t n = call();
    return n < 0 && errno == ECONNRESET ? call() : n;
}

// Looking takes no reference away, and says whether there is one. Where it fails nothing is known
// of the message behind. False: errno, EPROTO where descriptors have come with it.
bool may_be_read(const net::Socket& socket, std::span<std::byte> room) {
    iovec bytes{room.data(), room.size()};
    msghdr message = message_of(bytes);
    if (past_reset(
            [&] { return kernel::recvmsg(socket.fd(), &message, MSG_PEEK | MSG_DONTWAIT); }) < 0) {
        return false;
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        errno = EPROTO;
        return false;
    }
    return true;
}

} // namespace

bool credentials_of(const net::Socket& socket, Credentials& who) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
        return false;
    }
    who = {credentials.pid, credentials.uid};
    return true;
}

bool is_permitted(const net::Socket& socket, engine::ShmPeers peers) {
    Credentials who;
    return credentials_of(socket, who) && (peers == engine::ShmPeers::any || who.user == geteuid());
}

void say_sent_away(const net::Socket& socket, const char* where) {
    Credentials who;
    credentials_of(socket, who);
    DAT_INFO(ep_ctrl,
             "process %d of user %u is sent away from %s: it is for user %u; "
             "FI_DAT_SHM_PEERS=any lets in all",
             static_cast<int>(who.process), static_cast<unsigned>(who.user), where,
             static_cast<unsigned>(geteuid()));
}

bool may_be_read(const Credentials& who, bool refuses) { return refuses || who.user == geteuid(); }

net::Socket local_socket(int type) {
    net::Socket socket(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket) {
        accept_rights(socket, false);
    }
    return socket;
}

// It begins with a zero byte.
socklen_t address_of(const Name& name, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                     "dat-%016llx%016llx", static_cast<unsigned long long>(name[0]),
                                     static_cast<unsigned long long>(name[1]));
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                  static_cast<std::size_t>(length));
}

net::Socket listen_locally(int type, int backlog, Name& name) {
    net::Socket socket = local_socket(type);
    const Name chosen = {engine::random_bits(), engine::random_bits()};
    sockaddr_un address;
    const socklen_t size = address_of(chosen, address);
    if (!socket || ::bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(socket.fd(), backlog) != 0) {
        const int error = errno;
        socket.close();
        errno = error;
        return {};
    }
    name = chosen;
    return socket;
}

void accept_rights(const net::Socket& socket, bool on) {
    const int value = on ? 1 : 0;
    setsockopt(socket.fd(), SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof value);
}

bool refuses_rights(const net::Socket& socket) {
    int value = 1;
    socklen_t size = sizeof value;
    return getsockopt(socket.fd(), SOL_SOCKET, SO_PASSRIGHTS, &value, &size) == 0 && value == 0;
}

bool holds_rights(const net::Socket& socket) {
    std::array<char, 40> file;
    std::snprintf(file.data(), file.size(), "/proc/thread-self/fdinfo/%d", socket.fd());
    return engine::number_in(file.data(), "scm_fds:") != 0;
}

ssize_t receive(const net::Socket& socket, std::span<std::byte> into, bool refuses) {
    if (!refuses && !may_be_read(socket, into)) {
        return -1;
    }
    return past_reset(
        [&] { return kernel::recv(socket.fd(), into.data(), into.size(), MSG_DONTWAIT); });
}

ssize_t receive(const net::Socket& socket, std::span<std::byte> into) {
    return receive(socket, into, refuses_rights(socket));
}

ssize_t receive_with(const net::Socket& socket, std::span<std::byte> into, net::Socket& fd,
                     Reaper& reaper) {
    iovec bytes{into.data(), into.size()};
    msghdr message = message_of(bytes);
    Ancillary ancillary;
    message.msg_control = ancillary.room.data();
    message.msg_controllen = ancillary.room.size();
    const ssize_t n = past_reset(
        [&] { return kernel::recvmsg(socket.fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC); });
    if (n < 0) {
        return n;
    }
    // An empty message may bring some as well.
    std::array<net::Socket, kMostRights> all;
    const std::size_t count = take_rights(message, all);
    if (n == 0 && count == 0) {
        return 0;
    }
    if (count <= 1 && (message.msg_flags & MSG_CTRUNC) == 0) {
        fd = std::move(all[0]);
        return n;
    }
    for (std::size_t i = 0; i < count; ++i) {
        reaper.take(std::move(all[i]));
    }
    errno = EPROTO;
    return -1;
}

bool send_with(const net::Socket& socket, std::span<const std::byte> bytes, int fd) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message = message_of(part);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> room{};
    if (fd >= 0) {
        message.msg_control = room.data();
        message.msg_controllen = room.size();
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return kernel::sendmsg(socket.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(bytes.size());
}

bool is_silent(const net::Socket& socket) {
    std::byte one{};
    return !may_be_read(socket, {&one, 1}) && errno == EAGAIN;
}

void let_go(net::Socket socket, Reaper& reaper) {
    if (socket && !refuses_rights(socket)) {
        reaper.take(std::move(socket));
    }
}

void hang_up(net::Socket socket, Reaper& reaper) {
    if (!socket || refuses_rights(socket)) {
        return;
    }
    // Once it has ended for both sides nobody puts more into it.
    ::shutdown(socket.fd(), SHUT_RDWR);
    if (holds_rights(socket)) {
        reaper.take(std::move(socket));
    }
}

} // namespace dat::shm
