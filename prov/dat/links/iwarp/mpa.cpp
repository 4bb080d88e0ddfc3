// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// MPA request and reply frames.
#include "links/iwarp/mpa.h"

#include <algorithm>

namespace dat::iwarp {

namespace {

constexpr char kRequestKey[] = "MPA ID Req Frame";
constexpr char kReplyKey[] = "MPA ID Rep Frame";
static_assert(sizeof kRequestKey == kMpaKeySize + 1 && sizeof kReplyKey == kMpaKeySize + 1);

// Offsets in a frame.
constexpr std::size_t kFlags = kMpaKeySize;
constexpr std::size_t kLength = kFlags + 2;

constexpr std::uint16_t kRevisionMask = 0x00ff;
constexpr std::uint16_t kDatFlags = kMpaFlagDatRequest | kMpaFlagDatReply;

// The two highest bits of the IRD and ORD fields.
constexpr std::uint16_t kControlHigh = 0x8000; // A and C
constexpr std::uint16_t kControlLow = 0x4000;  // B and D

const char* key_of(MpaKind kind) { return kind == MpaKind::request ? kRequestKey : kReplyKey; }

std::uint16_t dat_flag(MpaKind kind) {
    return kind == MpaKind::request ? kMpaFlagDatRequest : kMpaFlagDatReply;
}

// How many of the first bytes, 16 at most, are those of the key of `kind`.
std::size_t matching_key_bytes(MpaKind kind, std::span<const std::byte> bytes) {
    const char* key = key_of(kind);
    const std::size_t size = std::min(bytes.size(), kMpaKeySize);
    std::size_t i = 0;
    while (i < size && std::to_integer<char>(bytes[i]) == key[i]) {
        ++i;
    }
    return i;
}

bool encodable(const MpaFrame& frame) {
    if (frame.revision != kMpaRevision1 && frame.revision != kMpaRevision2) {
        return false;
    }
    if (frame.reject && frame.kind == MpaKind::request) {
        return false;
    }
    if (frame.private_data.size() > mpa_max_private_data(frame.enhanced.has_value())) {
        return false;
    }
    return !frame.enhanced ||
           (frame.revision == kMpaRevision2 && frame.enhanced->ird <= kMpaNoDepth &&
            frame.enhanced->ord <= kMpaNoDepth);
}

std::uint16_t flags_of(const MpaFrame& frame) {
    return static_cast<std::uint16_t>(
        (frame.markers ? kMpaFlagMarkers : 0) | (frame.crc ? kMpaFlagCrc : 0) |
        (frame.reject ? kMpaFlagReject : 0) | (frame.enhanced ? kMpaFlagEnhanced : 0) |
        (frame.from_dat ? dat_flag(frame.kind) : 0) |
        (frame.from_dat && frame.memory ? kMpaFlagMemory : 0) |
        (frame.from_dat && frame.wide ? kMpaFlagWide : 0) | frame.revision);
}

std::byte* write_enhanced(std::byte* at, const MpaEnhanced& data) {
    at = store_be(at, static_cast<std::uint16_t>(data.ird | (data.peer_to_peer ? kControlHigh : 0) |
                                                 (data.rtr_empty_fpdu ? kControlLow : 0)));
    return store_be(at,
                    static_cast<std::uint16_t>(data.ord | (data.rtr_rdma_write ? kControlHigh : 0) |
                                               (data.rtr_rdma_read ? kControlLow : 0)));
}

MpaEnhanced load_enhanced(const std::byte* at) {
    const auto ird = load_be<std::uint16_t>(at);
    const auto ord = load_be<std::uint16_t>(at + 2);
    return {
        .ird = static_cast<std::uint16_t>(ird & kMpaNoDepth),
        .ord = static_cast<std::uint16_t>(ord & kMpaNoDepth),
        .peer_to_peer = (ird & kControlHigh) != 0,
        .rtr_empty_fpdu = (ird & kControlLow) != 0,
        .rtr_rdma_write = (ord & kControlHigh) != 0,
        .rtr_rdma_read = (ord & kControlLow) != 0,
    };
}

MpaParse need_more(std::size_t bytes) {
    return {.status = MpaStatus::need_more,
            .error = MpaError::none,
            .size = bytes,
            .value = 0,
            .frame = {}};
}

MpaParse fail(MpaError error, std::size_t value) {
    return {.status = MpaStatus::error,
            .error = error,
            .size = 0,
            .value = static_cast<std::uint32_t>(value),
            .frame = {}};
}

MpaParse check_key(MpaKind expected, std::span<const std::byte> bytes) {
    const std::size_t size = std::min(bytes.size(), kMpaKeySize);
    const std::size_t same = matching_key_bytes(expected, bytes);
    if (same == size) {
        return need_more(0);
    }
    const MpaKind other = expected == MpaKind::request ? MpaKind::reply : MpaKind::request;
    return matching_key_bytes(other, bytes) == size ? fail(MpaError::wrong_kind, 0)
                                                    : fail(MpaError::wrong_key, same);
}

// What the 4 bytes behind the key say.
struct Header {
    std::uint16_t flags;
    std::uint8_t revision;
    bool reject;
    bool enhanced;
    std::size_t length;
};

Header load_header(MpaKind kind, std::span<const std::byte> bytes) {
    const auto flags = load_be<std::uint16_t>(&bytes[kFlags]);
    const auto revision = static_cast<std::uint8_t>(flags & kRevisionMask);
    return {.flags = flags,
            .revision = revision,
            .reject = kind == MpaKind::reply && (flags & kMpaFlagReject) != 0,
            .enhanced = revision == kMpaRevision2 && (flags & kMpaFlagEnhanced) != 0,
            .length = load_be<std::uint16_t>(&bytes[kLength])};
}

MpaFrame take_frame(MpaKind kind, const Header& header, std::span<const std::byte> data) {
    MpaFrame frame;
    frame.kind = kind;
    frame.revision = header.revision;
    frame.markers = (header.flags & kMpaFlagMarkers) != 0;
    frame.crc = (header.flags & kMpaFlagCrc) != 0;
    frame.reject = header.reject;
    frame.from_dat = (header.flags & kDatFlags) == dat_flag(kind);
    frame.memory = frame.from_dat && (header.flags & kMpaFlagMemory) != 0;
    frame.wide = frame.from_dat && (header.flags & kMpaFlagWide) != 0;
    if (header.enhanced && data.size() >= kMpaEnhancedSize) {
        frame.enhanced = load_enhanced(data.data());
        data = data.subspan(kMpaEnhancedSize);
    }
    frame.private_data = data;
    return frame;
}

} // namespace

std::size_t encode_mpa_frame(const MpaFrame& frame, std::span<std::byte> out) {
    const std::size_t size = mpa_frame_size(frame);
    if (!encodable(frame) || out.size() < size) {
        return 0;
    }
    std::byte* at = out.data();
    std::memcpy(at, key_of(frame.kind), kMpaKeySize);
    store_be(at + kFlags, flags_of(frame));
    store_be(at + kLength, static_cast<std::uint16_t>(size - kMpaHeaderSize));
    at += kMpaHeaderSize;
    if (frame.enhanced) {
        at = write_enhanced(at, *frame.enhanced);
    }
    if (!frame.private_data.empty()) {
        std::memcpy(at, frame.private_data.data(), frame.private_data.size());
    }
    return size;
}

MpaParse parse_mpa_frame(MpaKind expected, std::span<const std::byte> bytes) {
    if (const MpaParse key = check_key(expected, bytes); key.status == MpaStatus::error) {
        return key;
    }
    if (bytes.size() < kMpaHeaderSize) {
        return need_more(kMpaHeaderSize - bytes.size());
    }
    const Header header = load_header(expected, bytes);
    if (header.revision != kMpaRevision1 && header.revision != kMpaRevision2) {
        MpaParse parse = fail(MpaError::unknown_revision, header.revision);
        parse.frame.revision = header.revision;
        return parse;
    }
    if (header.length > kMpaMaxPrivateData) {
        return fail(MpaError::private_data_too_long, header.length);
    }
    if (header.enhanced && header.length < kMpaEnhancedSize && !header.reject) {
        return fail(MpaError::enhanced_too_short, header.length);
    }
    const std::size_t size = kMpaHeaderSize + header.length;
    if (bytes.size() < size) {
        return need_more(size - bytes.size());
    }
    const bool demands_markers = (header.flags & kMpaFlagMarkers) != 0 && !header.reject;
    return {.status = demands_markers ? MpaStatus::error : MpaStatus::complete,
            .error = demands_markers ? MpaError::markers_demanded : MpaError::none,
            .size = size,
            .value = 0,
            .frame = take_frame(expected, header, bytes.subspan(kMpaHeaderSize, header.length))};
}

const char* text(MpaError error) {
    switch (error) {
    case MpaError::none:
        return "no error";
    case MpaError::wrong_key:
        return "the peer does not speak MPA: the key of its first frame is wrong";
    case MpaError::wrong_kind:
        return "an MPA request came where a reply is due, or a reply where a request is due";
    case MpaError::unknown_revision:
        return "the MPA revision is neither 1 nor 2";
    case MpaError::private_data_too_long:
        return "the MPA private data is longer than 512 bytes";
    case MpaError::enhanced_too_short:
        return "MPA flag S is set, and the private data has not the 4 bytes of IRD and ORD";
    case MpaError::markers_demanded:
        return "the peer demands MPA markers, which are not supported; it must clear flag M";
    }
    return "unknown MPA error";
}

} // namespace dat::iwarp
