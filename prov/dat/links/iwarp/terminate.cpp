// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The Terminate message.
#include "links/iwarp/terminate.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "links/iwarp/rdmap.h"

namespace dat::iwarp {

namespace {

static_assert(kTerminateReadRequestSize == kReadRequestSize);

// The header control bits, in the third byte of the control field.
constexpr std::uint8_t kHasLength = 0x80;      // M
constexpr std::uint8_t kHasDdpHeader = 0x40;   // D
constexpr std::uint8_t kHasReadRequest = 0x20; // R

constexpr std::size_t kLengthSize = 2;

// Layer and error type.
constexpr std::uint8_t kind_of(TerminateCode code) {
    return static_cast<std::uint8_t>(static_cast<std::uint16_t>(code) >> 8);
}

// A segment is at fault, and the peer is to be told which.
bool concerns_segment(TerminateCode code) {
    switch (kind_of(code)) {
    case kind_of(TerminateCode::rdmap_invalid_stag):
    case kind_of(TerminateCode::ddp_tagged_invalid_stag):
    case kind_of(TerminateCode::ddp_untagged_invalid_queue):
        return true;
    case kind_of(TerminateCode::rdmap_version):
        return code != TerminateCode::rdmap_catastrophic_stream &&
               code != TerminateCode::rdmap_catastrophic_global;
    default:
        return false;
    }
}

bool is_read_request(const DdpHeader& header) {
    return !header.tagged && header.queue == kQueueReadRequest &&
           (header.ulp_octet & (kRdmapVersionMask | kRdmapOpcodeMask)) ==
               rdmap_octet(Opcode::read_request);
}

void copy(std::byte*& at, std::span<const std::byte> bytes) {
    at = std::copy(bytes.begin(), bytes.end(), at);
}

// Takes `size` bytes from the front of `rest`; empty, and nothing taken, where
// there are not as many.
std::span<const std::byte> take(std::span<const std::byte>& rest, std::size_t size) {
    if (rest.size() < size) {
        return {};
    }
    const auto front = rest.first(size);
    rest = rest.subspan(size);
    return front;
}

struct Words {
    TerminateCode code;
    const char* text;
};

constexpr Words kWords[] = {
    {TerminateCode::rdmap_catastrophic, "RDMAP: local catastrophic error"},
    {TerminateCode::rdmap_invalid_stag, "RDMAP: invalid STag"},
    {TerminateCode::rdmap_base_bounds, "RDMAP: base or bounds violation"},
    {TerminateCode::rdmap_access_rights, "RDMAP: access rights violation"},
    {TerminateCode::rdmap_stag_not_associated, "RDMAP: the STag does not belong to this stream"},
    {TerminateCode::rdmap_to_wrap, "RDMAP: the tagged offset wraps"},
    {TerminateCode::rdmap_protection_cannot_invalidate, "RDMAP: the STag cannot be invalidated"},
    {TerminateCode::rdmap_cannot_invalidate, "RDMAP: the STag cannot be invalidated"},
    {TerminateCode::rdmap_protection_unspecified, "RDMAP: unspecified protection error"},
    {TerminateCode::rdmap_version, "RDMAP: invalid RDMAP version"},
    {TerminateCode::rdmap_unexpected_opcode, "RDMAP: unexpected opcode"},
    {TerminateCode::rdmap_catastrophic_stream, "RDMAP: catastrophic error of this stream"},
    {TerminateCode::rdmap_catastrophic_global, "RDMAP: catastrophic error of all streams"},
    {TerminateCode::rdmap_unspecified, "RDMAP: unspecified error"},
    {TerminateCode::ddp_catastrophic, "DDP: local catastrophic error"},
    {TerminateCode::ddp_tagged_invalid_stag, "DDP, tagged: invalid STag"},
    {TerminateCode::ddp_tagged_base_bounds, "DDP, tagged: base or bounds violation"},
    {TerminateCode::ddp_tagged_stag_not_associated,
     "DDP, tagged: the STag does not belong to this stream"},
    {TerminateCode::ddp_tagged_to_wrap, "DDP, tagged: the tagged offset wraps"},
    {TerminateCode::ddp_tagged_version, "DDP, tagged: invalid DDP version"},
    {TerminateCode::ddp_untagged_invalid_queue, "DDP, untagged: invalid queue number"},
    {TerminateCode::ddp_untagged_no_buffer,
     "DDP, untagged: no buffer for this message sequence number"},
    {TerminateCode::ddp_untagged_msn_range, "DDP, untagged: message sequence number out of range"},
    {TerminateCode::ddp_untagged_invalid_mo, "DDP, untagged: invalid message offset"},
    {TerminateCode::ddp_untagged_too_long, "DDP, untagged: the message is too long for its buffer"},
    {TerminateCode::ddp_untagged_version, "DDP, untagged: invalid DDP version"},
    {TerminateCode::mpa_stream_lost, "MPA: the TCP connection was closed or lost"},
    {TerminateCode::mpa_crc, "MPA: CRC error"},
    {TerminateCode::mpa_marker_mismatch, "MPA: marker and length field do not match"},
    {TerminateCode::mpa_invalid_frame, "MPA: invalid request or reply frame"},
    {TerminateCode::mpa_catastrophic, "MPA: local catastrophic error"},
    {TerminateCode::mpa_insufficient_ird, "MPA: insufficient IRD"},
    {TerminateCode::mpa_no_matching_rtr, "MPA: no matching ready-to-receive"},
};

} // namespace

Terminate make_terminate(TerminateCode code, std::span<const std::byte> ulpdu,
                         std::size_t ulpdu_size) {
    Terminate result{.code = code,
                     .has_ddp_length = false,
                     .ddp_length = 0,
                     .ddp_header = {},
                     .read_request = {}};
    DdpHeader header;
    if (!concerns_segment(code) || decode_ddp_header(ulpdu, header) != DdpError::none) {
        return result;
    }
    result.has_ddp_length = true;
    result.ddp_length = static_cast<std::uint16_t>(ulpdu_size);
    result.ddp_header = ulpdu.first(header.size);
    const auto payload = ulpdu.subspan(header.size);
    if (terminate_layer(code) == static_cast<std::uint8_t>(TerminateLayer::rdmap) &&
        is_read_request(header) && payload.size() >= kReadRequestSize) {
        result.read_request = payload.first(kReadRequestSize);
    }
    return result;
}

std::size_t encode_terminate(const Terminate& terminate,
                             std::span<std::byte, kTerminateMaxSize> out) {
    DAT_ASSERT(terminate.ddp_header.empty() || terminate.has_ddp_length);
    DAT_ASSERT(terminate.ddp_header.size() <= kDdpMaxHeaderSize);
    DAT_ASSERT(
        terminate.read_request.empty() ||
        (terminate.read_request.size() == kReadRequestSize && !terminate.ddp_header.empty()));
    const int control = (terminate.has_ddp_length ? kHasLength : 0) |
                        (terminate.ddp_header.empty() ? 0 : kHasDdpHeader) |
                        (terminate.read_request.empty() ? 0 : kHasReadRequest);
    std::byte* at = store_be(out.data(), static_cast<std::uint16_t>(terminate.code));
    at = store_be(at, static_cast<std::uint16_t>(control << 8));
    if (terminate.has_ddp_length) {
        at = store_be(at, terminate.ddp_length);
    }
    copy(at, terminate.ddp_header);
    copy(at, terminate.read_request);
    return static_cast<std::size_t>(at - out.data());
}

bool decode_terminate(std::span<const std::byte> payload, Terminate& out) {
    out = {};
    if (payload.size() < kTerminateControlSize) {
        return false;
    }
    out.code = static_cast<TerminateCode>(load_be<std::uint16_t>(payload.data()));
    const auto control = load_be<std::uint8_t>(&payload[2]);
    auto rest = payload.subspan(kTerminateControlSize);
    if ((control & (kHasLength | kHasDdpHeader)) != 0) {
        const auto length = take(rest, kLengthSize);
        if (length.empty()) {
            return true;
        }
        out.has_ddp_length = (control & kHasLength) != 0;
        out.ddp_length = out.has_ddp_length ? load_be<std::uint16_t>(length.data()) : 0;
    }
    if ((control & kHasDdpHeader) != 0) {
        const bool tagged = !rest.empty() && (rest[0] & std::byte{kDdpTagged}) != std::byte{0};
        out.ddp_header = take(rest, tagged ? kDdpTaggedHeaderSize : kDdpUntaggedHeaderSize);
        if (out.ddp_header.empty()) {
            return true;
        }
    }
    if ((control & kHasReadRequest) != 0) {
        out.read_request = take(rest, kReadRequestSize);
    }
    return true;
}

const char* text(TerminateCode code) {
    for (const Words& words : kWords) {
        if (words.code == code) {
            return words.text;
        }
    }
    constexpr const char* kLayers[] = {"RDMAP: unknown error", "DDP: unknown error",
                                       "MPA: unknown error"};
    const std::uint8_t layer = terminate_layer(code);
    return layer < std::size(kLayers) ? kLayers[layer] : "error of an unknown layer";
}

} // namespace dat::iwarp
