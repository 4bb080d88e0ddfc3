// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// RDMAP messages (RFC 5040), immediate data and atomics (RFC 7306), and what
// two `dat` peers add to them. Pure codecs: no allocation, no state; any
// thread. A decoder reads nothing beyond the span that it is given.
// The Terminate message has a header of its own, terminate.h.
#ifndef DAT_LINKS_IWARP_RDMAP_H
#define DAT_LINKS_IWARP_RDMAP_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "links/iwarp/big_endian.h"
#include "links/iwarp/ddp.h"
#include "links/iwarp/mpa.h"
#include "links/iwarp/terminate.h"

namespace dat::iwarp {

// ---- The control octet (RFC 5040 4.1) ------------------------------------
//
//     0   1   2   3   4   5   6   7
//   +---+---+---+---+---+---+---+---+
//   | version | x | a |   opcode    |
//   +---+---+---+---+---+---+---+---+
//
// It is the octet that DDP leaves to its upper layer. RFC 5040 reserves x
// (0x20) and a (0x10): zero, and not looked at.
//
// ---- What two `dat` peers add --------------------------------------------
//
// Only where both sides recognized each other (MpaFrame::from_dat); towards
// any other peer none of it is sent, and the decoder refuses it.
//
// 1. `a` (0x10) in the control octet of the last segment of a Send, an
//    immediate data message or an RDMA Write asks for an acknowledgement soon.
//    On other segments it means nothing.
//
// 2. The 4-byte upper layer's word of Send and of Send with Solicited Event
//    (every segment of them), which RFC 5040 4.1 has as zero, is a cumulative
//    count, modulo 2^32: the request messages (sends and RDMA writes) of the
//    receiver of this segment that its sender has placed. (The Invalidate
//    variants keep their STag there and carry no count.)
//
// 3. The Ack message carries the same count when there is no Send to carry it, and again where a
//    sender wants other bytes before a long payload (Sender::move_on()):
//
//        0       1       2       3
//    +-------+-------+-------+-------+
//    | ULPDU length: 18  | 0x41  | 0x4F |   DDP: untagged, last, version 1
//    +-------+-------+-------+-------+   RDMAP: version 1, opcode 0xF
//    |       count of messages       |
//    +-------------------------------+
//    |      queue number: 4          |
//    +-------------------------------+
//    |      MSN: 1, 2, 3 ..          |   counts the Acks
//    +-------------------------------+
//    |      message offset: 0        |   no payload
//    +-------------------------------+
//
// 4. Send with Data, opcode 0xC, and with Solicited Event as well, 0xD: a Send
//    whose upper layer's word is 4 bytes of the sender's program for the
//    receiver's completion (every segment carries them), and so no count.
//
// 5. An Immediate Data message (RFC 7306) belongs to the RDMA Write before it.
//
// 6. Where both said so in their MPA frames (MpaFrame::wide): the High Data message,
//    opcode 0xE, otherwise like Ack and numbered with it. Its word is the upper half of 8
//    bytes of data, whose lower half is in the next Send with Data; before others there is
//    none, and the upper half is 0.
//
// 7. Between the same: an untagged message may have 4 GiB and more, and its offset (MO) goes on
//    from 0 there. A Read Request's sink tagged offset is the upper half of its size, and that
//    of its response counts from 0.

inline constexpr std::uint8_t kRdmapVersion = 1;
inline constexpr std::uint8_t kRdmapVersionMask = 0xc0;
inline constexpr std::uint8_t kRdmapVersionBits = kRdmapVersion << 6;
inline constexpr std::uint8_t kRdmapAckWanted = 0x10;
inline constexpr std::uint8_t kRdmapOpcodeMask = 0x0f;

enum class Opcode : std::uint8_t {
    rdma_write = 0x0, // tagged
    read_request = 0x1,
    read_response = 0x2, // tagged
    send = 0x3,
    send_invalidate = 0x4,
    send_se = 0x5, // with solicited event
    send_se_invalidate = 0x6,
    terminate = 0x7,
    immediate = 0x8,       // RFC 7306
    immediate_se = 0x9,    // RFC 7306
    atomic_request = 0xa,  // RFC 7306
    atomic_response = 0xb, // RFC 7306
    send_data = 0xc,       // `dat`
    send_data_se = 0xd,    // `dat`
    high_data = 0xe,       // `dat`
    ack = 0xf,             // `dat`
};

// Static; "unknown" for a value that is none of them.
const char* text(Opcode opcode);

// Queue numbers of untagged messages (RFC 5040 4.2, RFC 7306 4.2).
inline constexpr std::uint32_t kQueueSend = 0;        // sends and immediate data
inline constexpr std::uint32_t kQueueReadRequest = 1; // and atomic requests
inline constexpr std::uint32_t kQueueTerminate = 2;
inline constexpr std::uint32_t kQueueAtomicResponse = 3; // RFC 7306
inline constexpr std::uint32_t kQueueAck = 4;            // `dat`: also high data
inline constexpr std::uint32_t kQueueCount = 5;

constexpr std::uint8_t rdmap_octet(Opcode opcode, bool ack_wanted = false) {
    return static_cast<std::uint8_t>(kRdmapVersionBits | (ack_wanted ? kRdmapAckWanted : 0) |
                                     static_cast<std::uint8_t>(opcode));
}

// Sends in all variants, not immediate data.
constexpr bool is_send(Opcode opcode) {
    return (opcode >= Opcode::send && opcode <= Opcode::send_se_invalidate) ||
           opcode == Opcode::send_data || opcode == Opcode::send_data_se;
}

// The receiver's completion is a solicited one.
constexpr bool is_solicited(Opcode opcode) {
    return opcode == Opcode::send_se || opcode == Opcode::send_se_invalidate ||
           opcode == Opcode::immediate_se || opcode == Opcode::send_data_se;
}

// The upper layer's word is an STag to invalidate (RFC 5040 4.1).
constexpr bool invalidates(Opcode opcode) {
    return opcode == Opcode::send_invalidate || opcode == Opcode::send_se_invalidate;
}

// The upper layer's word is for the receiver's completion.
constexpr bool carries_data(Opcode opcode) {
    return opcode == Opcode::send_data || opcode == Opcode::send_data_se;
}

// Between `dat` peers the upper layer's word is a count of placed messages.
constexpr bool carries_ack_count(Opcode opcode) {
    return opcode == Opcode::send || opcode == Opcode::send_se || opcode == Opcode::ack;
}

// ---- Writing frames ------------------------------------------------------

// MPA length field and DDP header together.
inline constexpr std::size_t kFpduTaggedHeaderSize = kFpduLengthSize + kDdpTaggedHeaderSize;
inline constexpr std::size_t kFpduUntaggedHeaderSize = kFpduLengthSize + kDdpUntaggedHeaderSize;

// What a segment says of itself; `last` and `ack_wanted` as in the wire format
// above, `opcode` one that belongs to the model.
struct TaggedSegment {
    Opcode opcode = Opcode::rdma_write;
    bool last = true;
    bool ack_wanted = false;
    std::uint32_t stag = 0;
    std::uint64_t to = 0;
};

struct UntaggedSegment {
    Opcode opcode = Opcode::send;
    bool last = true;
    bool ack_wanted = false;
    std::uint32_t ulp_word = 0; // STag to invalidate, count, data, or 0
    std::uint32_t queue = kQueueSend;
    std::uint32_t msn = 0;
    std::uint32_t mo = 0;
};

// Write the beginning of an FPDU at `fpdu`: 16 bytes (tagged) or 20
// (untagged), and return where its `payload_size` bytes of payload belong. The
// trailer follows them: finish_fpdu(), write_fpdu_trailer().
// Precondition: header and payload fit a ULPDU, 65535 bytes.
inline std::byte* write_fpdu_header(std::byte* fpdu, std::size_t payload_size,
                                    const TaggedSegment& segment) {
    const auto ulpdu = static_cast<std::uint32_t>(kDdpTaggedHeaderSize + payload_size);
    const std::uint32_t control =
        ddp_control(true, segment.last, rdmap_octet(segment.opcode, segment.ack_wanted));
    std::byte* at = store_be(fpdu, ulpdu << 16 | control);
    at = store_be(at, segment.stag);
    return store_be(at, segment.to);
}

inline std::byte* write_fpdu_header(std::byte* fpdu, std::size_t payload_size,
                                    const UntaggedSegment& segment) {
    const auto ulpdu = static_cast<std::uint32_t>(kDdpUntaggedHeaderSize + payload_size);
    const std::uint32_t control =
        ddp_control(false, segment.last, rdmap_octet(segment.opcode, segment.ack_wanted));
    std::byte* at = store_be(fpdu, ulpdu << 16 | control);
    at = store_be(at, segment.ulp_word);
    at = store_be(at, segment.queue);
    at = store_be(at, segment.msn);
    return store_be(at, segment.mo);
}

// ---- Reading segments ----------------------------------------------------

// Why a segment or the payload of a control message cannot be taken.
enum class SegmentError : std::uint8_t {
    none,
    too_short,         // not even a DDP header
    tagged_version,    // DDP version of a tagged segment
    untagged_version,  // DDP version of an untagged segment
    rdmap_version,     // RDMAP version
    unexpected_opcode, // unknown, not for this peer, or not on this model or queue
    invalid_queue,     // a queue number that does not exist (towards this peer)
    message_too_long,  // the payload is longer than its message may be
    message_too_short, // the payload is shorter than its header
};

// Static, for a log line.
const char* text(SegmentError error);

// The Terminate that answers it (RFC 5040 7.2, RFC 5041 7.2). For too_short and
// message_too_short the RFCs have no code: DDP's catastrophic error and RDMAP's
// unspecified one. Not for `none`.
TerminateCode terminate_code(SegmentError error);

// A decoded segment. Of a tagged one `stag` and `to` hold, of an untagged one
// the other four; those that do not hold are 0.
struct Segment {
    Opcode opcode = Opcode::rdma_write;
    bool tagged = false;
    bool last = false;
    bool ack_wanted = false;      // only from `dat` peers
    std::uint8_t header_size = 0; // the payload is what follows
    std::uint32_t stag = 0;
    std::uint64_t to = 0;
    std::uint32_t ulp_word = 0;
    std::uint32_t queue = 0;
    std::uint32_t msn = 0;
    std::uint32_t mo = 0;

    friend bool operator==(const Segment&, const Segment&) = default;
};

namespace detail {

// What an opcode demands of its segment.
struct OpcodeRule {
    bool standard; // known to RFC 5040
    bool dat;      // taken from a `dat` peer
    bool tagged;
    bool request; // may ask for an acknowledgement
    std::uint8_t queue;
};

inline constexpr std::array<OpcodeRule, 16> kOpcodeRules{{
    {true, true, true, true, 0},                       // rdma_write
    {true, true, false, false, kQueueReadRequest},     // read_request
    {true, true, true, false, 0},                      // read_response
    {true, true, false, true, kQueueSend},             // send
    {true, true, false, true, kQueueSend},             // send_invalidate
    {true, true, false, true, kQueueSend},             // send_se
    {true, true, false, true, kQueueSend},             // send_se_invalidate
    {true, true, false, false, kQueueTerminate},       // terminate
    {false, true, false, true, kQueueSend},            // immediate
    {false, true, false, true, kQueueSend},            // immediate_se
    {false, true, false, false, kQueueReadRequest},    // atomic_request
    {false, true, false, false, kQueueAtomicResponse}, // atomic_response
    {false, true, false, true, kQueueSend},            // send_data
    {false, true, false, true, kQueueSend},            // send_data_se
    {false, true, false, false, kQueueAck},            // high_data
    {false, true, false, false, kQueueAck},            // ack
}};

} // namespace detail

// Decodes the header of a ULPDU and checks all that can be checked without
// knowing the connection: versions, that the opcode is one that this kind of
// peer may send, and that it stands on the right model and queue. Reserved
// bits are not looked at. MSN, MO, STag and TO are the caller's to check.
// `out` holds nothing of use after an error.
inline SegmentError decode_segment(std::span<const std::byte> ulpdu, bool dat_peer, Segment& out) {
    DdpHeader ddp;
    if (const DdpError error = decode_ddp_header(ulpdu, ddp); error != DdpError::none)
        [[unlikely]] {
        return static_cast<SegmentError>(error);
    }
    if ((ddp.ulp_octet & kRdmapVersionMask) != kRdmapVersionBits) [[unlikely]] {
        return SegmentError::rdmap_version;
    }
    const detail::OpcodeRule& rule = detail::kOpcodeRules[ddp.ulp_octet & kRdmapOpcodeMask];
    if (ddp.queue > (dat_peer ? kQueueAck : kQueueTerminate)) [[unlikely]] {
        return SegmentError::invalid_queue;
    }
    if (!(dat_peer ? rule.dat : rule.standard) || rule.tagged != ddp.tagged ||
        rule.queue != ddp.queue) [[unlikely]] {
        return SegmentError::unexpected_opcode;
    }
    out.opcode = static_cast<Opcode>(ddp.ulp_octet & kRdmapOpcodeMask);
    out.tagged = ddp.tagged;
    out.last = ddp.last;
    out.ack_wanted = dat_peer && ddp.last && rule.request && (ddp.ulp_octet & kRdmapAckWanted) != 0;
    out.header_size = ddp.size;
    out.stag = ddp.stag;
    out.to = ddp.to;
    out.ulp_word = ddp.ulp_word;
    out.queue = ddp.queue;
    out.msn = ddp.msn;
    out.mo = ddp.mo;
    return SegmentError::none;
}

static_assert(static_cast<int>(SegmentError::too_short) == static_cast<int>(DdpError::too_short));
static_assert(static_cast<int>(SegmentError::tagged_version) ==
              static_cast<int>(DdpError::tagged_version));
static_assert(static_cast<int>(SegmentError::untagged_version) ==
              static_cast<int>(DdpError::untagged_version));

// ---- Payloads of control messages ----------------------------------------
//
// A writer puts the payload at `at`, as many bytes as its constant says, and
// returns the place behind it. A decoder wants exactly that many; `out` holds
// nothing of use after an error.

inline constexpr std::size_t kReadRequestSize = 28;
inline constexpr std::size_t kImmediateSize = 8;
inline constexpr std::size_t kAtomicRequestSize = 52;
inline constexpr std::size_t kAtomicResponseSize = 12;

// RDMA Read Request (RFC 5040 4.4). The sink is the reader's buffer, the
// source the memory that is read.
struct ReadRequest {
    std::uint32_t sink_stag = 0;
    std::uint64_t sink_to = 0;
    std::uint32_t size = 0; // bytes to read
    std::uint32_t source_stag = 0;
    std::uint64_t source_to = 0;

    friend bool operator==(const ReadRequest&, const ReadRequest&) = default;
};

inline std::byte* write_read_request(std::byte* at, const ReadRequest& request) {
    at = store_be(at, request.sink_stag);
    at = store_be(at, request.sink_to);
    at = store_be(at, request.size);
    at = store_be(at, request.source_stag);
    return store_be(at, request.source_to);
}

SegmentError decode_read_request(std::span<const std::byte> payload, ReadRequest& out);

// Immediate data (RFC 7306 6.2): 8 bytes, here as a number whose most
// significant byte goes first.
inline std::byte* write_immediate(std::byte* at, std::uint64_t data) { return store_be(at, data); }

SegmentError decode_immediate(std::span<const std::byte> payload, std::uint64_t& out);

// The atomic operations of RFC 7306 5.1, on 64 bits.
enum class AtomicOp : std::uint8_t {
    fetch_add = 0,
    compare_swap = 2,
};

// Atomic Request (RFC 7306 5.2.1). For fetch_add `data` is added, in fields
// whose most significant bits are set in `mask` (no carry leaves a field), and
// the compare members are 0. For compare_swap the bits in `mask` are replaced
// by those of `data` where the bits in `compare_mask` equal `compare`.
struct AtomicRequest {
    std::uint8_t op = 0; // AtomicOp; 4 bits, others can arrive and are not checked here
    std::uint32_t request_id = 0;
    std::uint32_t stag = 0;
    std::uint64_t to = 0;
    std::uint64_t data = 0;
    std::uint64_t mask = 0;
    std::uint64_t compare = 0;
    std::uint64_t compare_mask = 0;

    friend bool operator==(const AtomicRequest&, const AtomicRequest&) = default;
};

std::byte* write_atomic_request(std::byte* at, const AtomicRequest& request);
SegmentError decode_atomic_request(std::span<const std::byte> payload, AtomicRequest& out);

// Atomic Response (RFC 7306 5.2.2).
struct AtomicResponse {
    std::uint32_t request_id = 0; // of the request it answers
    std::uint64_t original = 0;   // the value before the operation

    friend bool operator==(const AtomicResponse&, const AtomicResponse&) = default;
};

std::byte* write_atomic_response(std::byte* at, const AtomicResponse& response);
SegmentError decode_atomic_response(std::span<const std::byte> payload, AtomicResponse& out);

} // namespace dat::iwarp

#endif
