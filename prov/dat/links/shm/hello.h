// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What two processes say to each other at the local listener (local_listener.h), as bytes. Pure: no
// sockets, no state, no allocation; any thread. Both are of one host, so the byte order is its own.
#ifndef DAT_LINKS_SHM_HELLO_H
#define DAT_LINKS_SHM_HELLO_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace dat::shm {

// Of these messages and of Layout. Who says another one is sent away, and both stay on TCP.
inline constexpr std::uint32_t kMagic = 0x64617435;

// One end of a TCP connection.
struct TcpEnd {
    std::array<std::uint8_t, 16> host{}; // an IPv4 address as IPv6 maps it
    std::uint16_t port = 0;              // host byte order
    std::uint16_t unused = 0;
    friend bool operator==(const TcpEnd&, const TcpEnd&) = default;
};

// A TCP connection, the same seen from either side.
struct TcpEnds {
    TcpEnd initiator;
    TcpEnd responder;
    friend bool operator==(const TcpEnds&, const TcpEnds&) = default;
};

// What one side tells of itself.
struct Self {
    std::uint64_t image_address = 0; // of the word of its image (memory.h)
    std::uint64_t image_word = 0;
    std::uint64_t domain = 0;   // its domain's, which nobody can guess
    std::uint32_t barriers = 0; // its heavy_barrier() reaches others, and theirs reach it
    std::uint32_t unused = 0;
};

// The guest's first message: which offer it takes, and the connection that it is for.
struct Hello {
    static constexpr std::uint32_t kKind = 1;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
    std::uint64_t cookie = 0;
    TcpEnds ends;
    Self self;
};

// The answer; with it comes one descriptor, of the memory.
struct Welcome {
    static constexpr std::uint32_t kKind = 2;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
    Self self;
    std::uint64_t doorbell = 0; // the number of the pair of doorbells that it may use; 0: of none
    std::uint32_t place = 0;    // in them
    std::uint32_t first = 0;    // 1: they are those of this memory, and new
};

// The guest has mapped it, and leaves TCP.
struct Joined {
    static constexpr std::uint32_t kKind = 3;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
    std::uint32_t by_doorbell = 0; // 1: it uses that place
    std::uint32_t unused = 0;
};

static_assert(sizeof(Hello) == 16 + 40 + 32 && sizeof(Welcome) == 8 + 32 + 16 &&
              sizeof(Joined) == 16);
inline constexpr std::size_t kLongestMessage = sizeof(Hello);

// The message that `bytes` are, exactly; none: they are something else.
template <class Message> std::optional<Message> parse(std::span<const std::byte> bytes) {
    static_assert(std::is_trivially_copyable_v<Message>);
    Message message;
    if (bytes.size() != sizeof message) {
        return {};
    }
    std::memcpy(&message, bytes.data(), sizeof message);
    if (message.magic != kMagic || message.kind != Message::kKind) {
        return {};
    }
    return message;
}

} // namespace dat::shm

#endif
