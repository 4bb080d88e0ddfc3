// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The Terminate message (RFC 5040 4.8): the last message of a stream that
// failed, saying why. Pure codecs: no allocation, no state; any thread. A
// decoder reads nothing beyond the span that it is given.
#ifndef DAT_LINKS_IWARP_TERMINATE_H
#define DAT_LINKS_IWARP_TERMINATE_H

#include <cstddef>
#include <cstdint>
#include <span>

#include "links/iwarp/ddp.h"

namespace dat::iwarp {

// Terminate is one untagged message on queue 2, MSN 1, with this payload:
//
//    0                   1                   2                   3
//    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//   +-------+-------+---------------+-+-+-+-------------------------+
//   | layer | etype |  error code   |M|D|R|        reserved         |
//   +-------+-------+---------------+-+-+-+-------------------------+
//   | DDP segment length (if M)     |                               |
//   +-------------------------------+                               +
//   |    DDP header of the segment concerned (if D), 14 or 18 bytes |
//   +---------------------------------------------------------------+
//   |    RDMA Read Request header, 28 bytes (if R)                  |
//   +---------------------------------------------------------------+

inline constexpr std::size_t kTerminateControlSize = 4;
inline constexpr std::size_t kTerminateReadRequestSize = 28;
inline constexpr std::size_t kTerminateMaxSize =
    kTerminateControlSize + 2 + kDdpMaxHeaderSize + kTerminateReadRequestSize;

enum class TerminateLayer : std::uint8_t { rdmap = 0, ddp = 1, llp = 2 };

// Layer (4 bits), error type (4), error code (8): the first 16 bits of the
// payload. A peer may send values that are not listed.
enum class TerminateCode : std::uint16_t {
    // RDMAP (RFC 5040 4.8, 7.2): local catastrophic, remote protection, remote
    // operation.
    rdmap_catastrophic = 0x0000,
    rdmap_invalid_stag = 0x0100,
    rdmap_base_bounds = 0x0101,
    rdmap_access_rights = 0x0102,
    rdmap_stag_not_associated = 0x0103,
    rdmap_to_wrap = 0x0104,
    rdmap_protection_cannot_invalidate = 0x0109,
    rdmap_protection_unspecified = 0x01ff,
    rdmap_version = 0x0205,
    rdmap_unexpected_opcode = 0x0206,
    rdmap_catastrophic_stream = 0x0207,
    rdmap_catastrophic_global = 0x0208,
    rdmap_cannot_invalidate = 0x0209,
    rdmap_unspecified = 0x02ff,
    // DDP (RFC 5041 7.2): local catastrophic, tagged, untagged buffer.
    ddp_catastrophic = 0x1000,
    ddp_tagged_invalid_stag = 0x1100,
    ddp_tagged_base_bounds = 0x1101,
    ddp_tagged_stag_not_associated = 0x1102,
    ddp_tagged_to_wrap = 0x1103,
    ddp_tagged_version = 0x1104,
    ddp_untagged_invalid_queue = 0x1201,
    ddp_untagged_no_buffer = 0x1202, // MSN without a buffer
    ddp_untagged_msn_range = 0x1203,
    ddp_untagged_invalid_mo = 0x1204,
    ddp_untagged_too_long = 0x1205,
    ddp_untagged_version = 0x1206,
    // MPA (RFC 5044 8, RFC 6581 8).
    mpa_stream_lost = 0x2001,
    mpa_crc = 0x2002,
    mpa_marker_mismatch = 0x2003,
    mpa_invalid_frame = 0x2004, // request or reply frame
    mpa_catastrophic = 0x2005,
    mpa_insufficient_ird = 0x2006,
    mpa_no_matching_rtr = 0x2007,
};

constexpr TerminateCode make_terminate_code(std::uint8_t layer, std::uint8_t etype,
                                            std::uint8_t code) {
    return static_cast<TerminateCode>((layer & 0xf) << 12 | (etype & 0xf) << 8 | code);
}

constexpr std::uint8_t terminate_layer(TerminateCode code) {
    return static_cast<std::uint8_t>(static_cast<std::uint16_t>(code) >> 12);
}

// Static, for a log line; a value that is not listed is named by its layer.
const char* text(TerminateCode code);

// What a Terminate says. The spans are read once by the encoder, and view the
// decoder's input.
struct Terminate {
    TerminateCode code = TerminateCode::rdmap_unspecified;
    bool has_ddp_length = false;             // M
    std::uint16_t ddp_length = 0;            // of the segment concerned: its ULPDU length
    std::span<const std::byte> ddp_header;   // D; 14 or 18 bytes, empty: none
    std::span<const std::byte> read_request; // R; 28 bytes, empty: none
};

// The Terminate with which to answer the segment `ulpdu` (empty: no segment is
// concerned), with the copies that `code` asks for: of the DDP header for
// errors of RDMAP and DDP that are not catastrophic, and of the Read Request
// where the segment is one and the error is RDMAP's. A header whose layout is
// not known (another DDP version, too short) is not copied. `ulpdu` may hold
// anything; it must hold still until the result is encoded, and may be cut
// behind its headers: `ulpdu_size` is the length that its FPDU announced.
Terminate make_terminate(TerminateCode code, std::span<const std::byte> ulpdu,
                         std::size_t ulpdu_size);

// Writes the payload, at most kTerminateMaxSize bytes, and returns its size.
// Precondition: spans of the sizes above, and no read_request without a
// ddp_header, no ddp_header without has_ddp_length.
std::size_t encode_terminate(const Terminate& terminate,
                             std::span<std::byte, kTerminateMaxSize> out);

// Decodes a payload. False: not even the control field is there. Copies that
// the control field announces and that are not whole in the payload are left
// out, since what counts is the code. Bytes behind are not looked at.
bool decode_terminate(std::span<const std::byte> payload, Terminate& out);

} // namespace dat::iwarp

#endif
