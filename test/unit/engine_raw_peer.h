// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A TCP peer made of plain bytes, for tests that attack the iWARP link: frames are
// put together here from the RFCs, with nothing of the provider's codecs. Everything
// runs in one thread; whoever waits drives the domain meanwhile.
#ifndef TEST_UNIT_ENGINE_RAW_PEER_H
#define TEST_UNIT_ENGINE_RAW_PEER_H

#include "wire_bytes.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace engine_test {

using wire::Bytes;
using wire::operator+;

inline Bytes be(std::uint64_t value, int size) {
    Bytes out;
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
        out.push_back(static_cast<std::byte>(value >> shift));
    }
    return out;
}

inline std::uint64_t get(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
    }
    return value;
}

// --- DDP segments (RFC 5041 4, RFC 5040 4): the control octets, then the rest ---

inline constexpr unsigned kTaggedLast = 0xc1;
inline constexpr unsigned kUntaggedLast = 0x41;
inline constexpr unsigned kUntaggedMore = 0x01;

inline Bytes tagged(unsigned opcode, std::uint32_t stag, std::uint64_t to, const Bytes& payload,
                    unsigned ddp = kTaggedLast) {
    return wire::bytes({ddp, 0x40 | opcode}) + be(stag, 4) + be(to, 8) + payload;
}

inline Bytes untagged(unsigned opcode, std::uint32_t queue, std::uint32_t msn, std::uint32_t mo,
                      const Bytes& payload, unsigned ddp = kUntaggedLast, std::uint32_t word = 0) {
    return wire::bytes({ddp, 0x40 | opcode}) + be(word, 4) + be(queue, 4) + be(msn, 4) + be(mo, 4) +
           payload;
}

inline Bytes send_segment(std::uint32_t msn, const Bytes& payload) {
    return untagged(3, 0, msn, 0, payload);
}

inline Bytes read_request(std::uint32_t msn, std::uint32_t size, std::uint32_t source_stag,
                          std::uint64_t source_to) {
    return untagged(1, 1, msn, 0,
                    be(0x51d4, 4) + be(0, 8) + be(size, 4) + be(source_stag, 4) + be(source_to, 8));
}

inline Bytes terminate_segment(std::uint32_t code) {
    return untagged(7, 2, 1, 0, be(code, 2) + be(0, 2));
}

// An FPDU (RFC 5044 4.1). `length` stands in its length field.
inline Bytes fpdu(const Bytes& ulpdu, bool crc, std::size_t length) {
    Bytes frame = be(length, 2) + ulpdu;
    while (frame.size() % 4 != 0) {
        frame.push_back({});
    }
    const std::uint32_t sum = crc ? wire::plain_crc32c(frame) : 0;
    const Bytes field = be(sum, 4); // its least significant byte goes first
    return frame + Bytes(field.rbegin(), field.rend());
}

// A frame that came: its ULPDU.
struct Came {
    Bytes ulpdu;
    unsigned opcode() const { return std::to_integer<unsigned>(ulpdu[1]) & 0xf; }
};

class RawPeer {
  public:
    RawPeer() = default;
    ~RawPeer() { close(); }
    RawPeer(RawPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    RawPeer& operator=(RawPeer&&) = delete;

    // Begins a connection to a port of this host; what is written waits for it.
    bool connect(std::uint16_t port) {
        close();
        in_.clear();
        fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int on = 1;
        setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd_ >= 0 &&
               (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
                errno == EINPROGRESS);
    }

    // How many of the bytes the socket took.
    std::size_t write_some(std::span<const std::byte> bytes) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        return n > 0 ? static_cast<std::size_t>(n) : 0;
    }

    // Takes what is there. False: the peer's end.
    bool listen() {
        static Bytes room(1 << 18);
        for (;;) {
            const ssize_t n = ::recv(fd_, room.data(), room.size(), 0);
            if (n <= 0) {
                return n < 0 && errno == EAGAIN;
            }
            in_.insert(in_.end(), room.begin(), room.begin() + n);
        }
    }
    // The MPA reply, without its key; nothing: not there yet.
    std::optional<Bytes> take_reply() {
        constexpr std::size_t kKey = 16;
        if (in_.size() < kKey + 4 || in_.size() < kKey + 4 + get(in_, kKey + 2, 2)) {
            return {};
        }
        const std::size_t size = kKey + 4 + get(in_, kKey + 2, 2);
        Bytes reply(in_.begin() + kKey, in_.begin() + static_cast<std::ptrdiff_t>(size));
        in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(size));
        return reply;
    }
    // The next frame; nothing: not there yet.
    std::optional<Came> take_frame() {
        if (in_.size() < 2) {
            return {};
        }
        const std::size_t length = get(in_, 0, 2);
        const std::size_t whole = (length + 2 + 3) / 4 * 4 + 4;
        if (in_.size() < whole) {
            return {};
        }
        Came came{Bytes(in_.begin() + 2, in_.begin() + 2 + static_cast<std::ptrdiff_t>(length))};
        in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(whole));
        return came;
    }

    void shutdown_write() { ::shutdown(fd_, SHUT_WR); }
    // Closes so that the other side's connection is reset.
    void reset() {
        const linger now{1, 0};
        setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close();
    }
    void close() {
        if (fd_ >= 0) {
            ::close(std::exchange(fd_, -1));
        }
    }

  private:
    int fd_ = -1;
    Bytes in_;
};

} // namespace engine_test

#endif
