// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What two processes say to each other at the local listener (local_listener.h), by the socket of
// their peering from then on (peering.h), and around the handshake of a connection that begins on a
// local stream (proposing.h), as bytes. Pure: no sockets, no state, no allocation;
// any thread. Both are of one host, so the byte order is its own.
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
inline constexpr std::uint32_t kMagic = 0x64617437;

// Of an abstract Unix socket that listens, random; all zero: none.
using Name = std::array<std::uint64_t, 2>;

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
    std::uint64_t peering = 0; // what the guest calls the peering by, in a Proposal
    Name listener{};           // as in Note
};

// The guest has mapped it, and leaves TCP.
struct Joined {
    static constexpr std::uint32_t kKind = 3;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
};

// A guest that shares memory already: which offer it takes, and the connection that it is for.
struct Ask {
    static constexpr std::uint32_t kKind = 4;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
    std::uint64_t cookie = 0;
    TcpEnds ends;
};

// What else is said about that, and about memory.
enum class Topic : std::uint32_t {
    grant = 1, // of the host: `value`: the cookie; `place`
    refuse,    // `value`: the cookie; `place`: 1: there are no more places
    need,      // room for a chunk more is to be made
    chunk,     // `value`: its number; with it comes one descriptor, or none: there is none
    take,      // of the guest, behind a grant: `value`: the cookie
    decline,   // the same
    grow,      // it waits for the chunk
    mapped,    // it has it
    no_room,   // it has not
};
struct Note {
    static constexpr std::uint32_t kKind = 5;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
    Topic topic{};
    std::uint32_t place = 0;
    std::uint64_t value = 0;
    Name listener{}; // of a grant: of the port that the connection was asked for at
};

// What the initiator of a connection says on a local stream, ahead of its MPA request.
struct Proposal {
    static constexpr std::uint32_t kKind = 6;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
    TcpEnds ends;              // that the connection is to have
    std::uint64_t peering = 0; // by which memory is wanted
    std::uint64_t cookie = 0;  // for the answer to what is placed
};

// What comes behind the MPA reply there, where that says that it offers memory.
struct Placed {
    static constexpr std::uint32_t kKind = 7;
    std::uint32_t magic = kMagic;
    std::uint32_t kind = kKind;
    std::uint32_t has_place = 0; // in the peering; the guest answers by take or decline
    std::uint32_t place = 0;
    Name name{};              // else an offer: of the local listener,
    std::uint64_t cookie = 0; // and what to take it by
};

// A ring is one byte, of any value.
inline constexpr std::size_t kRingSize = 1;

static_assert(sizeof(Hello) == 16 + 40 + 24 && sizeof(Welcome) == 8 + 24 + 24 &&
              sizeof(Joined) == 8 && sizeof(Ask) == 16 + 40 && sizeof(Note) == 24 + 16 &&
              sizeof(Proposal) == 8 + 40 + 16 && sizeof(Placed) == 16 + 24);
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
