// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the messages of reliable datagram endpoints begin with, as bytes. Each is one DAT
// message between two `dat` endpoints; numbers are little-endian. What a peer sends is copied
// once, and then checked.
//
//   message, tagged              Head [data] [id] payload
//   announced, announced_tagged  Head [data] id, segments times Place: the payload stays with its
//                                sender, who lets it be read until `done` has come
//   done                         Head, whose tag is the id
//   push                         Head, whose tag is the id of what is announced: its receiver has
//                                begun to copy it, from the end on, and takes it in pieces as well;
//                                or it cannot be read, and comes as a piece
//   piece                        Head, whose tag is that id, offset, payload: from the beginning on
//   taken, goodbye, ask, agree, decline    Head
//
// [data] is there with kHasData, [id] with kWantsDone: of a payload that is there already, whose
// receiver is to say when it is where it belongs.
#ifndef DAT_RDM_WIRE_H
#define DAT_RDM_WIRE_H

#include "core/rdm_peer.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dat::rdm {

enum class Kind : std::uint8_t {
    message = 1,
    tagged,
    announced,
    announced_tagged,
    done,
    taken,   // says nothing but Head::taken
    goodbye, // the endpoint is being closed: nothing follows
    ask,     // may the connection be let go? Nothing follows unless it is declined
    agree,   // it may, and nothing follows
    decline,
    push,
    piece,
};

// Of a Head; a bit set.
enum HeadFlags : std::uint8_t {
    kHasData = 1,
    kWantsDone = 2,
};

struct Head {
    Kind kind;
    std::uint8_t flags;
    std::uint8_t segments; // of what is announced
    // Over a device: buffers that messages of the peer were in and that are free again, since the
    // last head said so (links/verbs/message_buffers.h).
    std::uint8_t freed;
    // Of all that the sender of this has taken from its peer, in the units of cost_of().
    std::uint32_t taken;
    std::uint64_t tag;

    // It says nothing by flags or freed.
    bool is_plain() const {
        constexpr bool kLittle = std::endian::native == std::endian::little;
        std::uint32_t first = 0;
        std::memcpy(&first, this, sizeof first);
        return (first & (kLittle ? 0xff00ff00 : 0x00ff00ff)) == 0;
    }
};
static_assert(sizeof(Head) == 16 && std::is_trivial_v<Head>);

// A piece of what is announced: registered memory, which begins at address 0 for whoever reads it
// by its key, and over a device at `at`. `at`: its address in the sender's memory, from where a
// peer on the same host may copy it (engine::Link::copy_from_peer()); 0: it may not, and over a
// device it is not registered either.
struct Place {
    std::uint32_t key;
    std::uint32_t length;
    std::uint64_t at;
};
static_assert(sizeof(Place) == 16 && std::is_trivial_v<Place>);

inline constexpr std::size_t kMaxPlaces = 4;
inline constexpr std::size_t kMaxHead = sizeof(Head) + 2 * sizeof(std::uint64_t);
inline constexpr std::size_t kMaxAnnouncement = kMaxHead + kMaxPlaces * sizeof(Place);

// What a message without a receive takes of the room that its receiver has for those of one
// peer; `size`: of its payload.
constexpr std::uint32_t cost_of(std::size_t size) {
    return size <= 64 ? 128 : static_cast<std::uint32_t>(size) + 64;
}

template <class Number> constexpr Number little_endian(Number number) {
    if constexpr (std::endian::native == std::endian::little) {
        return number;
    } else {
        Number swapped = 0;
        for (std::size_t i = 0; i < sizeof number; ++i) {
            swapped = static_cast<Number>((swapped << 8) | ((number >> (8 * i)) & 0xff));
        }
        return swapped;
    }
}

// These return what follows.
template <class Number> inline std::byte* put(std::byte* to, Number number) {
    number = little_endian(number);
    std::memcpy(to, &number, sizeof number);
    return to + sizeof number;
}
template <class Number> inline const std::byte* get(const std::byte* from, Number& number) {
    std::memcpy(&number, from, sizeof number);
    number = little_endian(number);
    return from + sizeof number;
}

inline std::byte* put(std::byte* to, Place place) {
    return put(put(put(to, place.key), place.length), place.at);
}
inline const std::byte* get(const std::byte* from, Place& place) {
    return get(get(get(from, place.key), place.length), place.at);
}

inline std::byte* put(std::byte* to, Head head) {
    head.taken = little_endian(head.taken);
    head.tag = little_endian(head.tag);
    std::memcpy(to, &head, sizeof head);
    return to + sizeof head;
}
inline const std::byte* get(const std::byte* from, Head& head) {
    std::memcpy(&head, from, sizeof head);
    head.taken = little_endian(head.taken);
    head.tag = little_endian(head.tag);
    return from + sizeof head;
}

// What two endpoints say of themselves as they connect, as the private data of a request, an
// accept and a rejection. See core/rdm_peer.h.
struct Hello {
    static constexpr std::uint64_t kMagic = 0x324d4452'2d746164; // "dat-RDM2"
    static constexpr std::uint32_t kBriefMagic = 0x32746164;     // "dat2"
    std::uint64_t magic = kMagic;
    core::RdmIdentity from;
    core::RdmIdentity to;
    std::uint64_t number = 0; // of the attempt; of an answer: the last that was given up
    std::uint32_t window = 0; // what the peer may send before it hears of `taken`
    std::uint16_t port = 0;   // where the endpoint listens
    std::uint8_t family = 4;  // or 6; 0: at the address that it asks from, of a brief one
    core::RdmRefusal refusal = core::RdmRefusal::none;
    std::uint32_t scope = 0;             // of a link-local address
    std::array<std::uint8_t, 16> host{}; // as IPv6 has it
};
inline constexpr std::size_t kHelloSize = 6 * 8 + 4 + 2 + 1 + 1 + 4 + 16;

// Over a device, whose connection manager has room for 52 bytes in a request: an endpoint is at the
// address of its device, which the connection manager tells.
inline constexpr std::size_t kBriefHelloSize = 4 + 5 * 8 + 4 + 2 + 1;

// What both forms have behind their magic number, in that order.
template <class AHello> constexpr auto numbers_of(AHello& hello) {
    return std::array{&hello.from.began, &hello.from.drawn, &hello.to.began, &hello.to.drawn,
                      &hello.number};
}

inline void put_brief(std::byte* to, const Hello& hello) {
    to = put(to, Hello::kBriefMagic);
    for (const std::uint64_t* const number : numbers_of(hello)) {
        to = put(to, *number);
    }
    put(put(put(to, hello.window), hello.port), static_cast<std::uint8_t>(hello.refusal));
}

inline void put(std::byte* to, const Hello& hello) {
    to = put(to, hello.magic);
    for (const std::uint64_t* const number : numbers_of(hello)) {
        to = put(to, *number);
    }
    to = put(to, hello.window);
    to = put(put(to, hello.port), hello.family);
    to = put(put(to, static_cast<std::uint8_t>(hello.refusal)), hello.scope);
    std::memcpy(to, hello.host.data(), hello.host.size());
}
// False: it is no hello.
inline bool get_brief(const std::byte* from, Hello& hello) {
    std::uint32_t magic = 0;
    std::uint8_t refusal = 0;
    from = get(from, magic);
    for (std::uint64_t* const number : numbers_of(hello)) {
        from = get(from, *number);
    }
    get(get(get(from, hello.window), hello.port), refusal);
    hello.family = 0;
    hello.refusal = static_cast<core::RdmRefusal>(refusal);
    return magic == Hello::kBriefMagic && hello.from.known() &&
           refusal <= static_cast<std::uint8_t>(core::RdmRefusal::other);
}

inline bool get(const std::byte* from, std::size_t size, Hello& hello) {
    if (size != kHelloSize) { // where a device pads it there is more behind
        return size >= kBriefHelloSize && get_brief(from, hello);
    }
    from = get(from, hello.magic);
    for (std::uint64_t* const number : numbers_of(hello)) {
        from = get(from, *number);
    }
    from = get(from, hello.window);
    std::uint8_t refusal = 0;
    from = get(get(from, hello.port), hello.family);
    from = get(get(from, refusal), hello.scope);
    std::memcpy(hello.host.data(), from, hello.host.size());
    if (refusal > static_cast<std::uint8_t>(core::RdmRefusal::other)) {
        return false;
    }
    hello.refusal = static_cast<core::RdmRefusal>(refusal);
    return hello.magic == Hello::kMagic && hello.from.known() &&
           (hello.family == 4 || hello.family == 6);
}

} // namespace dat::rdm

#endif
