// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a connection that has ended still has to send, in memory that is not the program's: the
// records that had no room in the ring, and the payload of those in it that the peer has not
// copied yet.
#ifndef DAT_LINKS_SHM_REMAINDER_H
#define DAT_LINKS_SHM_REMAINDER_H

#include "links/shm/segment.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::shm {

// The fields of a record that do not say where its payload is.
struct Head {
    Kind kind = Kind::send;
    std::uint8_t flags = 0;
    std::uint64_t data = 0;
    std::uint32_t key = 0;
    std::uint64_t address = 0;
};

inline void write_head(Record& to, const Head& from) {
    to.kind = from.kind;
    to.flags = from.flags;
    to.places = 0;
    to.data = from.data;
    to.key = from.key;
    to.address = from.address;
}

// Where the two rings of a side stand.
struct Position {
    std::uint64_t number = 0; // records in all
    std::uint64_t bytes = 0;  // of the byte ring in all
};

struct Remainder {
    // A record to come.
    struct Piece {
        Head head; // with all flags
        std::uint32_t size;
        std::size_t offset;    // of its payload in `bytes`
        std::uint64_t answers; // to reads and atomics that have to come first
    };
    std::vector<std::byte> bytes;
    std::vector<Piece> pieces;
    // The record behind the last one whose payload lies in `bytes`; 0: there is none.
    std::uint64_t moved_until = 0;
    Position sent;
    Position taken; // of it, by the peer
    // More is owed than is kept: the connection may not end in order.
    bool too_much = false;

    bool empty() const { return pieces.empty() && moved_until == 0 && !too_much; }
};

// Whether the next piece of `size` bytes has to lie in the byte ring, and how many bytes of that
// it takes, at that position.
constexpr std::size_t ring_bytes(std::uint64_t position, std::size_t size) {
    return ring_skip(position, size) + ring_size(size);
}

} // namespace dat::shm

#endif
