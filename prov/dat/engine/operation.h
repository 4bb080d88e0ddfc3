// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an endpoint's operations are: requests and receives in their slots, and their segments.
#ifndef DAT_ENGINE_OPERATION_H
#define DAT_ENGINE_OPERATION_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dat::engine {

inline constexpr std::size_t kMaxIov = 4;
// Pieces of memory that a part of a message goes to: the segments of a receive, and beside them the
// head of the message, and what there is no room for.
inline constexpr std::size_t kMaxPieces = kMaxIov + 2;
inline constexpr std::size_t kInjectSize = 128; // bytes that a post may copy

struct Iov {
    std::byte* base;
    std::size_t length;
};

enum class OpCode : std::uint8_t {
    send,
    send_invalidate,
    write,
    bind, // of a memory window: done on this side, in its turn; the peer sees nothing
    read,
    fetch_add,    // the atomics (RFC 7306): on 8 bytes, operands in the inline area,
    compare_swap, // the old value goes to the segments, if there are any
};

// The peer answers it: its completion waits for that, whatever the level.
constexpr bool is_answered(OpCode op) { return op >= OpCode::read; }
constexpr bool is_atomic(OpCode op) { return op >= OpCode::fetch_add; }

// The operands of an atomic. fetch_add: `data` is added, and no carry goes beyond a
// bit that is set in `mask`. compare_swap: where the bits of `compare_mask` equal
// those of `compare`, the bits of `mask` become those of `data`.
struct AtomicOperands {
    std::uint64_t data;
    std::uint64_t mask;
    std::uint64_t compare;
    std::uint64_t compare_mask;
};

// The only segment of an operation stands in its slot. Several lie aside, in memory
// that belongs to the slot and that most slots never touch; the slot's `iov` says
// where.
template <class Slot> std::span<const Iov> segments_of(const Slot& slot) {
    return {slot.iov_count > 1 ? reinterpret_cast<const Iov*>(slot.iov.base) : &slot.iov,
            slot.iov_count};
}

// Announces `count` segments; they are to be written where this returns. `extra_segments`: the
// slot's room for kMaxIov.
template <class Slot> Iov* set_segments(Slot& slot, std::size_t count, Iov* extra_segments) {
    slot.iov_count = static_cast<std::uint8_t>(count);
    if (count <= 1) [[likely]] {
        return &slot.iov;
    }
    slot.iov = {reinterpret_cast<std::byte*>(extra_segments), 0};
    return extra_segments;
}

// When a request is complete (U-61).
enum class Level : std::uint8_t {
    taken,     // the kernel has its bytes
    left,      // the same, but its bytes lie where they were until the peer has copied them
    placed,    // the peer has placed the data
    delivered, // and, for a message, its receive has completed
};

// What of a request's end is reported. An operation of several requests, posted together, completes
// as its last one does.
enum class Role : std::uint8_t {
    alone,
    silent,    // nothing, ever (fi_inject)
    part,      // of an operation, before its last one
    owed_part, // the same, where the operation's success is not reported
    last,      // of an operation of several
    own,       // of the endpoint's MessageSink, which alone is told
};

// A request in its slot, from the post until its completion. Not initialized, so
// that slots which are never used are never touched: a post sets every member.
struct Request {
    void* context;
    std::uint64_t completion_flags;
    std::uint64_t length; // of all segments
    std::uint64_t remote_address;
    std::uint32_t remote_key; // or, for send_invalidate, the key to invalidate; of a bind, its own
    std::uint32_t ordinal;    // the link's to set: position among what the peer confirms
    std::uint64_t data;       // for the receiver's completion, if has_data
    // What most posts have alike stands together, and is one store.
    OpCode op;
    std::uint8_t iov_count;
    bool solicited; // DTO-22
    bool fence;     // DTO-24
    Role role;
    bool inlined;  // the payload was copied: iov is in the inline area
    bool has_data; // of a send or write
    bool signaled; // a success is reported (DTO-21)
    Level level;
    Iov iov; // as set_segments() left it

    std::span<const Iov> segments() const { return segments_of(*this); }
};

// It changes something at the peer, and brings nothing back.
inline bool only_acts(const Request& r) {
    return r.op == OpCode::send || r.op == OpCode::send_invalidate || r.op == OpCode::write ||
           (is_atomic(r.op) && r.iov_count == 0);
}

// A posted receive in its slot.
struct Receive {
    void* context;
    std::uint64_t completion_flags;
    std::uint64_t posted_flags; // of a `multi` one: completion_flags as posted
    std::uint64_t capacity;     // of all segments
    std::uint8_t iov_count;
    bool signaled; // a success is reported
    bool multi;    // serves several messages, one behind the other; one segment
    Iov iov;       // as set_segments() left it
    // What came of it, set by complete_receive().
    std::uint64_t length;
    std::uint64_t data;
    std::uint64_t overflow;

    std::span<const Iov> segments() const { return segments_of(*this); }
    // Where a message begins.
    std::byte* address() const {
        if (iov_count == 1) [[likely]] {
            return iov.base;
        }
        return iov_count > 0 ? segments()[0].base : nullptr;
    }
};

// Moves a receive to another slot, whose room for segments is `extra_segments`.
inline void move_receive(const Receive& from, Receive& to, Iov* extra_segments) {
    to = from;
    const auto segments = from.segments();
    std::copy(segments.begin(), segments.end(), set_segments(to, segments.size(), extra_segments));
}

} // namespace dat::engine

#endif
