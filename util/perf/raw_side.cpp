// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See raw_side.h.
#include "raw_side.h"

#include "case.h"
#include "net.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace dat::perf {
namespace {

constexpr std::size_t kReadAtOnce = 128 * 1024; // as much as the provider reads

int made(int fd, const char* call) {
    if (fd < 0) {
        fail("%s: %s", call, std::strerror(errno));
    }
    return fd;
}

void wait_for(int fd, short events) {
    pollfd waiting{fd, events, 0};
    if (!comes([&] { return ::poll(&waiting, 1, 0) == 1; })) {
        fail("a socket waited in vain");
    }
}

} // namespace

RawSide::RawSide(std::size_t size, bool waits, std::string address, std::size_t bulk)
    : size_(std::max<std::size_t>(size, 1)), waits_(waits), address_(std::move(address)),
      bulk_(bulk), out_(std::max(size_, bulk)), in_(std::max({size_, bulk, kReadAtOnce})) {}

RawSide::~RawSide() {
    while (!connections_.empty()) {
        end();
    }
    if (listener_ >= 0) {
        ::close(listener_);
    }
}

void RawSide::no_rdma() { throw NotOffered("a socket has no RDMA"); }

Address RawSide::open(Role role) {
    if (role == Role::client) {
        return {};
    }
    listener_ = listen_on(address_, "0");
    return address_ + " " + std::to_string(own_port(listener_));
}

void RawSide::add_connection(int fd) {
    const int on = 1;
    made(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "setsockopt");
    const bool second = connections_.size() == 1;
    connections_.push_back({.fd = fd, .size = second && bulk_ > 0 ? bulk_ : size_});
}

void RawSide::join(Role role, const Address& peer) {
    if (role == Role::server) {
        wait_for(listener_, POLLIN);
        add_connection(
            made(::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC), "accept"));
        return;
    }
    const std::size_t space = peer.find(' ');
    const Resolved there = resolve(peer.substr(0, space), peer.substr(space + 1));
    const int fd =
        made(::socket(there->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket");
    if (::connect(fd, there->ai_addr, there->ai_addrlen) != 0 && errno != EINPROGRESS) {
        fail("connect: %s", std::strerror(errno));
    }
    wait_for(fd, POLLOUT);
    add_connection(fd);
}

void RawSide::end() {
    ::close(connections_.back().fd);
    connections_.pop_back();
}

void RawSide::ended() {
    char byte;
    wait_for(connections_.back().fd, POLLIN);
    if (::recv(connections_.back().fd, &byte, 1, 0) != 0) {
        fail("the peer did not end the connection");
    }
    end();
}

// What is left of a message that the socket took in part. False: still some.
bool RawSide::flush(Connection& c) {
    while (c.left > 0) {
        const ssize_t n =
            ::send(c.fd, out_.data() + (c.size - c.left), c.left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                fail("send: %s", std::strerror(errno));
            }
            return false;
        }
        c.left -= static_cast<std::size_t>(n);
    }
    ++c.sent;
    ++sent_;
    return true;
}

// True: the socket has at least begun with it.
bool RawSide::send(std::size_t connection) {
    Connection& c = connections_[connection];
    if (c.left > 0) {
        return false;
    }
    c.left = c.size;
    if (!flush(c) && c.left == c.size) {
        c.left = 0;
        return false;
    }
    return true;
}

Done RawSide::poll(std::size_t connection) {
    const Connection& c = connections_[connection];
    if (waits_ && sent_ == 0) {
        constexpr int kSleep_ms = 1000;
        pollfd waiting{c.fd, static_cast<short>(POLLIN | (c.left > 0 ? POLLOUT : 0)), 0};
        ::poll(&waiting, 1, kSleep_ms);
    }
    return look(connection);
}

Done RawSide::look(std::size_t connection) {
    Connection& c = connections_[connection];
    if (c.left > 0) {
        flush(c);
    }
    const std::uint64_t received = take(c);
    return {.sent = std::exchange(sent_, 0), .received = received};
}

void RawSide::poll_each(std::span<Done> done) {
    for (std::size_t i = 0; i < done.size(); ++i) {
        Connection& c = connections_[i];
        if (c.left > 0) {
            flush(c);
        }
        done[i] += {.sent = std::exchange(c.sent, 0), .received = take(c)};
    }
}

// Messages that have come whole since it was called.
std::uint64_t RawSide::take(Connection& c) {
    const bool small = c.size < kReadAtOnce;
    const ssize_t n = ::recv(c.fd, in_.data() + (small ? 0 : c.arrived),
                             small ? in_.size() : c.size - c.arrived, 0);
    if (n > 0) {
        c.arrived += static_cast<std::size_t>(n);
        const std::uint64_t received = c.arrived / c.size;
        c.arrived %= c.size;
        return received;
    }
    if (n == 0 && sent_ == 0) { // behind the last message the peer may end
        fail("recv: the peer has ended");
    }
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        fail("recv: %s", std::strerror(errno));
    }
    return 0;
}

} // namespace dat::perf
