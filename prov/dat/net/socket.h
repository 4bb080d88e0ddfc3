// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A TCP socket and a socket address, as values.
#ifndef DAT_NET_SOCKET_H
#define DAT_NET_SOCKET_H

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>

namespace dat::net {

// IPv4 or IPv6; family AF_UNSPEC: none.
class SocketAddress {
  public:
    SocketAddress() = default;
    // Copies; anything but AF_INET and AF_INET6 of at least their size gives none.
    SocketAddress(const sockaddr* address, std::size_t size);
    // What bytes() gave, of that family; `port` in host byte order; `scope`: of a link-local
    // address.
    static SocketAddress of(int family, const std::array<std::uint8_t, 16>& bytes,
                            std::uint16_t port, std::uint32_t scope = 0);

    int family() const { return storage_.base.sa_family; }
    bool valid() const { return family() != AF_UNSPEC; }
    const sockaddr* get() const { return &storage_.base; }
    socklen_t size() const;
    std::uint16_t port() const; // host byte order
    void set_port(std::uint16_t port);
    bool wildcard() const;
    bool loopback() const;
    bool link_local() const; // fe80::/10: which interface it is of it does not say
    // As IPv6 has it, an IPv4 address mapped; the port is not in it.
    std::array<std::uint8_t, 16> bytes() const;
    bool same_host(const SocketAddress& other) const; // whatever the ports are
    bool multicast_or_broadcast() const;
    // 192.0.2.1:80, [2001:db8::1]:80; takes no memory.
    class Text {
      public:
        const char* c_str() const { return chars_.data(); }
        operator std::string_view() const { return c_str(); }
        friend bool operator==(const Text& text, std::string_view other) {
            return std::string_view(text) == other;
        }
        // Of its own: by the one above, with its arguments either way round, clang finds it
        // ambiguous.
        friend bool operator==(const Text& text, const Text& other) {
            return std::string_view(text) == std::string_view(other);
        }

      private:
        friend class SocketAddress;
        std::array<char, INET6_ADDRSTRLEN + 8> chars_{};
    };
    Text text() const;

  private:
    union {
        sockaddr base;
        sockaddr_in v4;
        sockaddr_in6 v6;
    } storage_{};
};

// Owns a descriptor. Move-only.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    ~Socket() { close(); }
    Socket(Socket&& other) noexcept : fd_(other.release()) {}
    Socket& operator=(Socket&& other) noexcept;

    int fd() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release();
    void close();

    SocketAddress local() const;
    SocketAddress peer() const;
    // TCP_NODELAY.
    void no_delay() const;
    // A peer that is silent for so long is dead (0: never).
    void keep_alive(std::chrono::seconds limit) const;
    // SO_REUSEADDR: a listener may have its port as well.
    void share_port() const;

    // A non-blocking, close-on-exec TCP socket; without one, -errno in `error`.
    static Socket open(int family, int& error);

  private:
    int fd_ = -1;
};

// Whether a connection from `local` to `peer` stays within this host, and its network
// namespace: the peer's address is one of its own.
bool on_this_host(const SocketAddress& local, const SocketAddress& peer);

} // namespace dat::net

#endif
