// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// DDP segment headers (RFC 5041 4). The bytes that DDP leaves to the layer
// above are carried along untouched; rdmap.h gives them their meaning. Pure
// codecs: no allocation, no state; any thread. A decoder reads nothing beyond
// the span that it is given.
#ifndef DAT_LINKS_IWARP_DDP_H
#define DAT_LINKS_IWARP_DDP_H

#include <cstddef>
#include <cstdint>
#include <span>

#include "links/iwarp/big_endian.h"

namespace dat::iwarp {

// Tagged (14 bytes)                       Untagged (18 bytes)
//   0  control: T=1 L rsvd(4) DV(2)         0  control: T=0 L rsvd(4) DV(2)
//   1  upper layer's octet                  1  upper layer's octet
//   2  STag (4)                             2  upper layer's word (4)
//   6  TO: tagged offset (8)                6  QN: queue number (4)
//                                          10  MSN: message sequence number (4)
//                                          14  MO: message offset (4)

inline constexpr std::size_t kDdpTaggedHeaderSize = 14;
inline constexpr std::size_t kDdpUntaggedHeaderSize = 18;
inline constexpr std::size_t kDdpMaxHeaderSize = kDdpUntaggedHeaderSize;

inline constexpr std::uint8_t kDdpTagged = 0x80;
inline constexpr std::uint8_t kDdpLast = 0x40;
inline constexpr std::uint8_t kDdpVersionMask = 0x03;
inline constexpr std::uint8_t kDdpVersion = 1;

// RFC 5041 4.2.
struct DdpTagged {
    std::uint8_t ulp_octet = 0;
    bool last = false; // the message's last segment
    std::uint32_t stag = 0;
    std::uint64_t to = 0;

    friend bool operator==(const DdpTagged&, const DdpTagged&) = default;
};

// RFC 5041 4.3.
struct DdpUntagged {
    std::uint8_t ulp_octet = 0;
    bool last = false; // the message's last segment
    std::uint32_t ulp_word = 0;
    std::uint32_t queue = 0;
    std::uint32_t msn = 0; // 1 for the first message of a queue
    std::uint32_t mo = 0;  // bytes of the message before this segment

    friend bool operator==(const DdpUntagged&, const DdpUntagged&) = default;
};

// The first two bytes of a header, as a big-endian number.
constexpr std::uint16_t ddp_control(bool tagged, bool last, std::uint8_t ulp_octet) {
    return static_cast<std::uint16_t>(
        ((tagged ? kDdpTagged : 0) | (last ? kDdpLast : 0) | kDdpVersion) << 8 | ulp_octet);
}

// Write a header at `at` (14 or 18 bytes) and return the place behind it.
inline std::byte* write_ddp_header(std::byte* at, const DdpTagged& header) {
    at = store_be(at, ddp_control(true, header.last, header.ulp_octet));
    at = store_be(at, header.stag);
    return store_be(at, header.to);
}

inline std::byte* write_ddp_header(std::byte* at, const DdpUntagged& header) {
    at = store_be(at, ddp_control(false, header.last, header.ulp_octet));
    at = store_be(at, header.ulp_word);
    at = store_be(at, header.queue);
    at = store_be(at, header.msn);
    return store_be(at, header.mo);
}

// Why a header cannot be taken (RFC 5041 7.1). terminate_code() in rdmap.h
// says which Terminate that is.
enum class DdpError : std::uint8_t {
    none,
    too_short,        // not even a header
    tagged_version,   // DV is not 1
    untagged_version, // DV is not 1
};

// Static, for a log line.
const char* text(DdpError error);

// A decoded header. Of a tagged one `stag` and `to` hold, of an untagged one
// the other four; those that do not hold are 0.
struct DdpHeader {
    bool tagged = false;
    bool last = false;
    std::uint8_t ulp_octet = 0;
    std::uint8_t size = 0; // of the header; the payload is what follows
    std::uint32_t stag = 0;
    std::uint64_t to = 0;
    std::uint32_t ulp_word = 0;
    std::uint32_t queue = 0;
    std::uint32_t msn = 0;
    std::uint32_t mo = 0;

    friend bool operator==(const DdpHeader&, const DdpHeader&) = default;
};

// Decodes the header at the front of a ULPDU. Reserved bits are not looked at.
// `out` holds nothing of use after an error.
inline DdpError decode_ddp_header(std::span<const std::byte> ulpdu, DdpHeader& out) {
    if (ulpdu.size() < kDdpTaggedHeaderSize) [[unlikely]] {
        return DdpError::too_short;
    }
    const std::byte* at = ulpdu.data();
    const auto control = load_be<std::uint8_t>(at);
    const bool tagged = (control & kDdpTagged) != 0;
    if ((control & kDdpVersionMask) != kDdpVersion) [[unlikely]] {
        return tagged ? DdpError::tagged_version : DdpError::untagged_version;
    }
    out = {};
    out.tagged = tagged;
    out.last = (control & kDdpLast) != 0;
    out.ulp_octet = load_be<std::uint8_t>(at + 1);
    if (tagged) {
        out.size = kDdpTaggedHeaderSize;
        out.stag = load_be<std::uint32_t>(at + 2);
        out.to = load_be<std::uint64_t>(at + 6);
        return DdpError::none;
    }
    if (ulpdu.size() < kDdpUntaggedHeaderSize) [[unlikely]] {
        return DdpError::too_short;
    }
    out.size = kDdpUntaggedHeaderSize;
    out.ulp_word = load_be<std::uint32_t>(at + 2);
    out.queue = load_be<std::uint32_t>(at + 6);
    out.msn = load_be<std::uint32_t>(at + 10);
    out.mo = load_be<std::uint32_t>(at + 14);
    return DdpError::none;
}

} // namespace dat::iwarp

#endif
