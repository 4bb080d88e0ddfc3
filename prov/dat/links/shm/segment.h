// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The memory that two processes share: for each connection, and each of its directions, a ring
// of records, a ring of bytes for what does not fit into a record, and a page part
// with what its owner has taken. It has no name; its descriptor is passed and closed.
// Nothing that the peer writes here is trusted: values are copied once and checked.
//
//   one writer a direction                     reader
//   record n: payload, fields, then stamp -->  polls the stamp of the record that it
//                                              expects
//   Control::records_taken, bytes_taken   <--  where it stands
#ifndef DAT_LINKS_SHM_SEGMENT_H
#define DAT_LINKS_SHM_SEGMENT_H

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dat::shm {

inline constexpr std::uint32_t kRecords = 128;              // a direction; a power of two
inline constexpr std::size_t kInline = 96;                  // bytes of payload in a record
inline constexpr std::size_t kRing = std::size_t{1} << 16;  // bytes of a direction's byte ring
inline constexpr std::size_t kPiece = std::size_t{1} << 14; // of them at most for one record
inline constexpr std::size_t kRingAlign = 64;               // a piece begins at a multiple of that

enum class Kind : std::uint8_t {
    send = 1,
    write,
    read,            // key, address; the payload is ReadRequest
    response,        // of a read
    atomic,          // key, address; the payload is AtomicRequest
    atomic_response, // the payload is the old value, 8 bytes
};

// Of a record; a bit set.
enum Flags : std::uint8_t {
    kFirst = 1,     // of its message, write or response
    kLast = 2,      //
    kInRing = 4,    // the payload is the next piece of the byte ring
    kElsewhere = 8, // the payload stays in the sender's memory: Place, as many as `places`
    kSolicited = 16,
    kInvalidate = 32, // `data` is the key
    kHasData = 64,    // `data` is for the receiver's completion
};

// One record, two cache lines, of which a short message needs one.
struct alignas(128) Record {
    // The low 32 bits of the record's number, plus 1: it is there. Written last.
    std::atomic<std::uint32_t> stamp;
    Kind kind;
    std::uint8_t flags;
    std::uint16_t places;
    std::uint32_t size; // bytes of payload: here, or in the ring
    std::uint32_t key;  // of a response: the number of its read
    std::uint64_t data;
    std::uint64_t address; // of a write, read, atomic. Of a response elsewhere: regions_gone
    std::array<std::byte, kInline> payload;
};
static_assert(sizeof(Record) == 128 && offsetof(Record, payload) == 32);

// A piece of the sender's memory.
struct Place {
    std::uint64_t base;
    std::uint64_t length;
};

struct ReadRequest {
    std::uint64_t length;
    std::uint32_t number; // of the reads of this direction
    std::uint32_t unused;
};

struct AtomicRequest {
    std::uint64_t data;
    std::uint64_t mask;
    std::uint64_t compare;
    std::uint64_t compare_mask;
    std::uint32_t number;
    std::uint32_t swap; // 1: compare and swap; 0: fetch and add
};

enum class End : std::uint32_t {
    none,
    closed,  // in order
    faulted, // for the reason in end_code, a TerminateCode of RFC 5040
};

// What one side tells the other; one writer, the owner.
struct Control {
    // What the owner has taken of the peer's.
    alignas(64) std::atomic<std::uint64_t> records_taken;
    std::atomic<std::uint64_t> bytes_taken;
    std::atomic<std::uint32_t> placed; // messages and writes (U-61)
    // What the owner, asleep, is to be woken for; of Wake. The peer clears it as it rings.
    alignas(64) std::atomic<std::uint32_t> asleep;
    // Seldom written.
    alignas(64) std::atomic<End> end;
    std::atomic<std::uint32_t> end_code;
    // Of Revoked. What was copied from the owner's memory, and not looked at since, counts
    // only if this has not changed.
    std::atomic<std::uint32_t> revoked;
    // The owner copies from its peer's memory: kElsewhere may be used.
    std::atomic<std::uint32_t> pulls;
    // How many regions the owner has closed: a read of one may be void.
    std::atomic<std::uint64_t> regions_gone;
    // 1: the owner's endpoint has nothing to do with the connection any more. What was copied from
    // an address that a message named (engine::Link::copy_from_peer()) is void.
    std::atomic<std::uint32_t> parted;
    // Of Stage: how much of the owner's is still there.
    std::atomic<std::uint32_t> stage;
    // 1: the owner is copying from its peer's memory at this moment, and takes nothing else.
    std::atomic<std::uint32_t> copying;
};

// What its owner has of a connection. It goes up.
enum Stage : std::uint32_t {
    kThere = 0,
    kGone = 1, // nothing comes any more, and nothing of the owner's is copied
    kLeft = 2, // nobody looks at it: its memory may become another connection's
};

// A bit set.
enum Revoked : std::uint32_t {
    kVoid = 1,  // the owner's buffers are its program's again
    kMoved = 2, // the same, but messages and writes lie elsewhere, where their records say now
};

enum Wake : std::uint32_t {
    kForRecords = 1,
    kForRoom = 2,    // or for what was placed
    kByDoorbell = 4, // it does not sleep, but looks at its doorbell: that is rung in place of
                     // the socket, and the word left as it is
};

// Which of the connections between two domains have something for the owner, who looks at one
// word for all of them (doorbell.h). The peer sets bits, the owner takes them.
struct Doorbell {
    static constexpr std::size_t kWords = 64;
    static constexpr std::size_t kPlaces = 64 * kWords;
    alignas(64) std::atomic<std::uint64_t> words; // bit i: places[i] has some
    // The owner sleeps: who sets a bit wakes it, by the peering's socket.
    alignas(64) std::atomic<std::uint32_t> asleep;
    // 1 + the number of the processor that the owner polls on; 0: it does not, or does not say.
    std::atomic<std::uint32_t> processor;
    alignas(64) std::array<std::atomic<std::uint64_t>, kWords> places;
};

// The first records of either direction lie in the page of what both tell each other, so that a
// connection of few messages touches no other.
inline constexpr std::size_t kFirstRecords = 14; // of each
inline constexpr std::size_t kPage = 4096;

struct Layout {
    alignas(kPage) std::array<std::byte, kFirstRecords * sizeof(Record)> unused;
    std::array<Record, kRecords> of_initiator; // the first are the last of these
    std::array<Control, 2> control;            // of the initiator, of the responder
    std::array<Record, kRecords> of_responder;
    std::array<std::array<std::byte, kRing>, 2> bytes;
    // Of the first place of a peering, of its guest and of its host, for all connections. Else they
    // are never touched.
    std::array<Doorbell, 2> doorbells;
};
static_assert(sizeof(Layout) % kPage == 0 &&
              offsetof(Layout, control) % kPage == kFirstRecords * sizeof(Record) &&
              2 * kFirstRecords * sizeof(Record) + sizeof(Layout::control) <= kPage);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The records of one direction, by their number among all that were sent.
template <class R> class Records {
  public:
    Records() = default;
    Records(R* all, std::size_t first) : all_(all), first_(first) {}
    // The same to be read alone.
    operator Records<const R>() const { return {all_, first_}; } // NOLINT: as a pointer does
    R& operator[](std::uint64_t number) const { return all_[(number + first_) % kRecords]; }

  private:
    R* all_ = nullptr;
    std::size_t first_ = 0;
};

// How one side sees it.
struct Side {
    Control* mine = nullptr;
    Control* peers = nullptr;
    Records<Record> out;
    Records<const Record> in; // of the peer
    std::byte* out_bytes = nullptr;
    const std::byte* in_bytes = nullptr;
};

// A mapping of so many of them, one behind the other, which lasts as long as any copy of this.
class Segment {
  public:
    // A new one, zeroed, and in `fd` a descriptor for the peer, the caller's to close.
    // Without one -errno in `error`.
    static Segment create(int& fd, int& error, std::size_t count = 1);
    // The peer's, by its descriptor. Refused with -EBADF where that is not of the right
    // size, or could be made smaller while it is used.
    static Segment adopt(int fd, int& error, std::size_t count = 1);

    explicit operator bool() const { return layouts_ != nullptr; }
    Side side(bool initiator, std::size_t index = 0) const;
    Doorbell& doorbell(bool of_guest) const { return layouts_.get()->doorbells[of_guest ? 0 : 1]; }
    // Nobody uses that one: what a connection relies on is zero, and what was seldom touched is
    // given back. The doorbells stay.
    void renew(std::size_t index) const;

  private:
    static Segment map(int fd, int& error, std::size_t count);

    std::shared_ptr<Layout> layouts_; // the first
};

// Chunks of a peering's memory, and the places in them: each makes four times as many of those
// that there were, up to Doorbell::kPlaces.
inline constexpr std::size_t kChunks = 7;
constexpr std::size_t chunk_of(std::uint32_t place) {
    return (static_cast<std::size_t>(std::bit_width(place)) + 1) / 2;
}
constexpr std::uint32_t first_of(std::size_t chunk) {
    return chunk == 0 ? 0 : std::uint32_t{1} << 2 * (chunk - 1);
}
constexpr std::size_t places_in(std::size_t chunk) { return first_of(chunk + 1) - first_of(chunk); }
static_assert(first_of(kChunks) == Doorbell::kPlaces && chunk_of(0) == 0 && chunk_of(1) == 1 &&
              chunk_of(3) == 1 && chunk_of(4) == 2 && chunk_of(Doorbell::kPlaces - 1) == 6);

// The place of a piece of `size` bytes behind `position` bytes in all: `skip` bytes are
// left out so that it is in one piece.
constexpr std::size_t ring_skip(std::uint64_t position, std::size_t size) {
    const std::size_t at = position % kRing;
    return at + size > kRing ? kRing - at : 0;
}

constexpr std::size_t ring_size(std::size_t size) {
    return (size + kRingAlign - 1) & ~(kRingAlign - 1);
}

} // namespace dat::shm

#endif
