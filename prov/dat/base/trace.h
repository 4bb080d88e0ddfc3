// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The layout of a trace file, and how a record gets into it. A file is a header page and two
// rings of records of one size, all in the byte order of the machine: one ring for what becomes
// of connections, one for operations and frames, so that many operations do not push out how a
// connection came about. A record lies in the file from the moment that it is written, so the
// file of a process that was killed is whole. Nothing here does I/O or reads a clock: the memory
// and the time are the caller's. Version kTraceVersion; what changes the meaning of a byte
// changes that number.
//
//   0                      TraceHeader
//   kTraceHeaderSize       ring `connections`: header.capacity[0] records
//   behind it              ring `operations`:  header.capacity[1] records
//
// Record number n of a ring stands in slot n % capacity, with n + 1 as its stamp. The stamp is 0
// while it is being written. So a slot holds a whole record if its stamp fits it, before and
// after it was read.
#ifndef DAT_BASE_TRACE_H
#define DAT_BASE_TRACE_H

#include "base/fence.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dat::base {

inline constexpr std::array<char, 8> kTraceMagic{'D', 'A', 'T', 'T', 'R', 'A', 'C', 'E'};
inline constexpr std::uint32_t kTraceVersion = 1;
inline constexpr std::size_t kTraceHeaderSize = 4096;

enum class TraceRing : std::uint8_t { connections, operations };
inline constexpr std::size_t kTraceRings = 2;

enum class TraceSource : std::uint32_t { provider, simulator };

// Offsets: 0 magic, 8 version, 12 header_size, 16 record_size, 20 pid, 24 started_ns,
// 32 started_real_ns, 40 capacity, 56 table, 64 source, 72 clock, 136 host, 200 program;
// 256 and 320 how many records were written to each ring.
struct TraceHeader {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t header_size;
    std::uint32_t record_size;
    std::uint32_t pid;
    std::uint64_t started_ns;      // of the clock of the records, when the file was made,
    std::uint64_t started_real_ns; // and what CLOCK_REALTIME said then
    std::array<std::uint64_t, kTraceRings> capacity;
    std::uint64_t table; // stands for the names and numbers of states, stimuli and events
    TraceSource source;
    std::uint32_t reserved;
    std::array<char, 64> clock; // two files with the same text have the same clock
    std::array<char, 64> host;
    std::array<char, 56> program;
    struct alignas(64) Count {
        std::uint64_t written;
    };
    std::array<Count, kTraceRings> count;
};
static_assert(offsetof(TraceHeader, clock) == 72 && offsetof(TraceHeader, count) == 256);
static_assert(sizeof(TraceHeader) <= kTraceHeaderSize);

enum class TraceKind : std::uint8_t {
    none,
    opened,     // an endpoint: TraceOpened
    transition, // a stimulus reached the state table: TraceTransition
    peer,       // the two addresses of a connection: TracePeer
    clock,      // two moments of a handshake, for bringing clocks together: TraceClock
    posted,     // TraceOperation; ring `operations`, as the next three
    completed,  // TraceOperation
    frame_out,  // TraceFrame: built for the wire, or a record for the peer's memory
    frame_in,   // the same, taken from there
    note,       // TraceNote, of the simulator: a rule that is broken; ring `connections`
};

// Of core: State.
struct TraceOpened {
    std::uint8_t state;
    std::array<std::uint8_t, 39> reserved;
};

// Of core: Stimulus, State, Verdict, Event, Flush, Reason. `event` is raised; `recorded` is the
// one that an endpoint in ENDING will raise.
struct TraceTransition {
    std::uint32_t attempt; // before it
    std::uint32_t attempt_after;
    std::uint32_t terminate_code;
    std::uint8_t stimulus;
    std::uint8_t from;
    std::uint8_t to;
    std::uint8_t verdict;
    std::uint8_t event;
    std::uint8_t recorded;
    std::uint8_t flush;
    std::uint8_t reason;
    std::uint8_t late; // of an older attempt: it never reached the table (EP-67)
    std::array<std::uint8_t, 19> reserved;
};

enum class TraceLink : std::uint8_t { tcp, memory, device };

// Addresses as IPv6 has them (IPv4 mapped), ports in host byte order.
struct TracePeer {
    std::array<std::uint8_t, 16> local;
    std::array<std::uint8_t, 16> remote;
    std::uint16_t local_port;
    std::uint16_t remote_port;
    TraceLink link;
    std::array<std::uint8_t, 3> reserved;
};

// Of the side that asked: when the request was given to the network, and when the reply had come.
// Of the one that was asked: when the request had come, and when the reply was given.
struct TraceClock {
    std::uint64_t first_ns;
    std::uint64_t second_ns;
    std::uint32_t attempt;
    std::uint8_t asked; // 1: this side sent the request
    std::array<std::uint8_t, 19> reserved;
};

enum class TraceOp : std::uint8_t {
    send,
    send_invalidate,
    write,
    bind,
    read,
    fetch_add,
    compare_swap,
    receive,
};

inline constexpr std::uint64_t kTraceNoMessage = ~std::uint64_t{0};

struct TraceOperation {
    std::uint64_t seq;     // of its direction of its endpoint
    std::uint64_t length;  // posted: of all segments; completed: bytes moved
    std::uint64_t context; // the program's
    // The how-many-th message of its direction on this attempt, from 0: of a send when it is
    // posted, of a receive when it completes. kTraceNoMessage: none.
    std::uint64_t message;
    std::uint32_t attempt;
    TraceOp op;
    std::uint8_t status; // completed: DtoStatus
    std::uint8_t silent; // its success is not reported
    std::uint8_t reserved;
};

struct TraceFrame {
    std::uint64_t place;  // tagged: the address; untagged: the offset in its message
    std::uint64_t length; // of the payload
    std::uint32_t stag;   // tagged
    std::uint32_t number; // untagged: of its message
    TraceLink link;
    std::uint8_t opcode; // of RDMAP, or of a record of shared memory
    std::uint8_t tagged;
    std::uint8_t last;
    std::array<std::uint8_t, 12> reserved;
};

// A text of up to 40 bytes; the rest of a longer one is in the next record.
struct TraceNote {
    std::array<char, 40> text;
};

inline constexpr std::size_t kTraceBodySize = 40;

struct TraceRecord {
    std::uint64_t stamp;
    std::uint64_t time_ns;
    std::uint32_t endpoint; // counted in the file, from 1
    TraceKind kind;
    std::array<std::uint8_t, 3> reserved;
    std::array<std::byte, kTraceBodySize> body;

    template <class Body> Body as() const {
        static_assert(sizeof(Body) == kTraceBodySize && std::is_trivially_copyable_v<Body>);
        Body out;
        std::memcpy(&out, body.data(), sizeof out);
        return out;
    }
};
static_assert(sizeof(TraceRecord) == 64);

// How large a file is.
inline std::uint64_t trace_file_size(const TraceHeader& header) {
    std::uint64_t records = 0;
    for (const std::uint64_t capacity : header.capacity) {
        records += capacity;
    }
    return header.header_size + records * header.record_size;
}

// Writes records into the memory of a file. Several threads may.
class TraceWriter {
  public:
    TraceWriter() = default;
    // The memory begins with a header that is filled in.
    explicit TraceWriter(std::byte* memory) : header_(reinterpret_cast<TraceHeader*>(memory)) {
        std::byte* at = memory + header_->header_size;
        for (std::size_t i = 0; i < kTraceRings; ++i) {
            ring_[i] = reinterpret_cast<TraceRecord*>(at);
            at += header_->capacity[i] * sizeof(TraceRecord);
        }
    }

    template <class Body>
    void write(TraceRing ring, TraceKind kind, std::uint32_t endpoint, std::uint64_t time_ns,
               const Body& body) {
        static_assert(sizeof(Body) == kTraceBodySize && std::is_trivially_copyable_v<Body>);
        const auto i = static_cast<std::size_t>(ring);
        const std::uint64_t number =
            std::atomic_ref(header_->count[i].written).fetch_add(1, std::memory_order_relaxed);
        TraceRecord& record = ring_[i][number % header_->capacity[i]];
        std::atomic_ref(record.stamp).store(0, std::memory_order_relaxed);
        release_fence();
        record.time_ns = time_ns;
        record.endpoint = endpoint;
        record.kind = kind;
        record.reserved = {};
        std::memcpy(record.body.data(), &body, sizeof body);
        std::atomic_ref(record.stamp).store(number + 1, std::memory_order_release);
    }

  private:
    TraceHeader* header_ = nullptr;
    std::array<TraceRecord*, kTraceRings> ring_{};
};

} // namespace dat::base

#endif
