// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// MPA: the request and reply frames that set a connection up (RFC 5044 7.1,
// RFC 6581), and the framing of everything after them (RFC 5044 4). Pure
// codecs: no sockets, no allocation, no state; any thread. A decoder reads
// nothing beyond the span that it is given.
#ifndef DAT_LINKS_IWARP_MPA_H
#define DAT_LINKS_IWARP_MPA_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "links/iwarp/big_endian.h"
#include "links/iwarp/crc32c.h"

namespace dat::iwarp {

// ---- Request and reply frames -------------------------------------------
//
//    0                   1                   2                   3
//    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//   +---------------------------------------------------------------+
//   |      key: "MPA ID Req Frame" or "MPA ID Rep Frame" (16)       |
//   +-+-+-+-+---------+-------------+-------------------------------+
//   |M|C|R|S|x|d|e|x x|   revision  |      private data length      |
//   +-+-+-+-+---------+-------------+-------------------------------+
//   |A|B|           IRD             |C|D|           ORD             |  if S
//   +-+-+---------------------------+-+-+---------------------------+
//   |      private data (the length above counts IRD/ORD too)       |
//   +---------------------------------------------------------------+
//
// S exists in revision 2 only. The bits d (0x0400) and e (0x0200) are reserved
// by the RFCs, which tell receivers not to look at them; two `dat` processes
// recognize each other by them (see MpaFrame::from_dat). 0x0100 and the first x, 0x0800,
// only count between those: shared memory, and fields of 8 bytes (MpaFrame::wide). To Linux's siw
// 0x0800 says that frames longer than a TCP segment are taken, which is so here.

inline constexpr std::size_t kMpaKeySize = 16;
inline constexpr std::size_t kMpaHeaderSize = 20;  // key, flags, revision, length
inline constexpr std::size_t kMpaEnhancedSize = 4; // IRD and ORD
inline constexpr std::size_t kMpaMaxPrivateData = 512;
inline constexpr std::size_t kMpaMaxFrameSize = kMpaHeaderSize + kMpaMaxPrivateData;

// What version 0.1 sends behind a reply that offers memory, in bytes.
inline constexpr std::size_t kUnframedOffer = 24;

inline constexpr std::uint8_t kMpaRevision1 = 1; // RFC 5044
inline constexpr std::uint8_t kMpaRevision2 = 2; // RFC 6581

// The 16-bit word of flags and revision.
inline constexpr std::uint16_t kMpaFlagMarkers = 0x8000;
inline constexpr std::uint16_t kMpaFlagCrc = 0x4000;
inline constexpr std::uint16_t kMpaFlagReject = 0x2000;
inline constexpr std::uint16_t kMpaFlagEnhanced = 0x1000;
inline constexpr std::uint16_t kMpaFlagDatRequest = 0x0400;
inline constexpr std::uint16_t kMpaFlagDatReply = 0x0200;
inline constexpr std::uint16_t kMpaFlagMemory = 0x0100;
inline constexpr std::uint16_t kMpaFlagWide = 0x0800;

// IRD or ORD: "not negotiated here" (RFC 6581 9.1); also the largest value
// that fits.
inline constexpr std::uint16_t kMpaNoDepth = 0x3fff;

enum class MpaKind : std::uint8_t { request, reply };

// The enhanced connection data of RFC 6581 9. A ready-to-receive frame is the
// initiator's first FPDU; the flags offer (request) or choose (reply) its form.
struct MpaEnhanced {
    std::uint16_t ird = 0;       // RDMA reads that the sender can serve at once
    std::uint16_t ord = 0;       // RDMA reads that the sender will have outstanding
    bool peer_to_peer = false;   // A: ready-to-receive is wanted
    bool rtr_empty_fpdu = false; // B: as an FPDU of length 0; some read it as an empty Send
    bool rtr_rdma_write = false; // C: as a zero-length RDMA Write
    bool rtr_rdma_read = false;  // D: as a zero-length RDMA Read

    friend bool operator==(const MpaEnhanced&, const MpaEnhanced&) = default;
};

// A request or reply frame.
struct MpaFrame {
    MpaKind kind = MpaKind::request;
    std::uint8_t revision = kMpaRevision1;
    bool markers = false; // M: the sender wants markers in what it receives
    bool crc = false;     // C: asks for CRC32C (request), uses it (reply)
    bool reject = false;  // R: the connection is refused (replies only)
    // The sender is a `dat` process. Request: 0x0400 without 0x0200. Reply:
    // 0x0200 without 0x0400; siw copies the request's flags into its reply,
    // which therefore proves nothing.
    bool from_dat = false;
    // Request: an offer of shared memory would be looked at. Reply: the private data ends
    // with such an offer. False wherever from_dat is. Version 0.1, which has no wide, sent its
    // offer behind the reply instead (kUnframedOffer).
    bool memory = false;
    // The sender is version 0.1, and has shared memory of another layout.
    bool memory_of_0_1() const { return memory && !wide; }
    // The sender understands remote CQ data of 8 bytes with a message, and messages and reads of
    // 4 GiB and more (rdmap.h). False wherever from_dat is.
    bool wide = false;
    std::optional<MpaEnhanced> enhanced; // revision 2 only
    // Decoding: a view into the bytes that were parsed. Encoding: read once,
    // during the call.
    std::span<const std::byte> private_data;
};

// What private data a frame can carry, in bytes.
constexpr std::size_t mpa_max_private_data(bool enhanced) {
    return enhanced ? kMpaMaxPrivateData - kMpaEnhancedSize : kMpaMaxPrivateData;
}

// The wire size of a frame, in bytes.
constexpr std::size_t mpa_frame_size(const MpaFrame& frame) {
    return kMpaHeaderSize + (frame.enhanced ? kMpaEnhancedSize : 0) + frame.private_data.size();
}

// Writes `frame` to the front of `out` and returns its size in bytes. 0, and
// nothing written: `out` is too small, the private data too long, enhanced
// data in another revision than 2, IRD or ORD above kMpaNoDepth, a revision
// other than 1 or 2, or a request that rejects.
std::size_t encode_mpa_frame(const MpaFrame& frame, std::span<std::byte> out);

enum class MpaError : std::uint8_t {
    none,
    wrong_key,             // value: offset of the first byte that differs
    wrong_kind,            // a reply where a request is due, or the reverse
    unknown_revision,      // value: the revision
    private_data_too_long, // value: the length
    enhanced_too_short,    // value: the length, below the 4 bytes of IRD/ORD
    markers_demanded,      // the frame is complete and parsed
};

// A reason for a log line, in lower case without a full stop; it says what
// would be right. Static.
const char* text(MpaError error);

enum class MpaStatus : std::uint8_t { need_more, complete, error };

struct MpaParse {
    MpaStatus status = MpaStatus::need_more;
    MpaError error = MpaError::none;
    // need_more: read that many bytes more, at the least, and no more, and
    // parse again. complete, markers_demanded: the size of the frame.
    // Other errors: 0.
    std::size_t size = 0;
    std::uint32_t value = 0; // what was wrong, see MpaError
    // Valid when complete, and with markers_demanded, so that a reply can be
    // made. With unknown_revision only `revision` is set.
    MpaFrame frame;
};

// Parses all that has come of one frame: `bytes` begins with the frame's first
// byte and may end anywhere; bytes behind the frame are left alone. A wrong key
// is reported at its first wrong byte, other errors when the 20 bytes of the
// header are there. Flags that the RFCs tell receivers to ignore are ignored:
// R in a request, S in revision 1, reserved bits. A reply that rejects is taken
// with markers, and with S without the data of S: it is a rejection all the
// same. Cheap enough to be called again for every byte that arrives.
MpaParse parse_mpa_frame(MpaKind expected, std::span<const std::byte> bytes);

// ---- FPDU (RFC 5044 4.1), without markers --------------------------------
//
//   length (2, of the ULPDU) | ULPDU | pad (0..3, to a multiple of 4) | CRC (4)
//
// The CRC covers all that precedes it. Its bytes go out least significant
// first, unlike all other fields (RFC 5044 4.4). Where CRCs are off the field
// is there, zero, and not looked at.

inline constexpr std::size_t kFpduLengthSize = 2;
inline constexpr std::size_t kFpduCrcSize = 4;
inline constexpr std::size_t kFpduMaxTrailer = 3 + kFpduCrcSize;
inline constexpr std::size_t kFpduMaxUlpdu = 0xffff;

// Bytes of pad behind a ULPDU of `ulpdu` bytes.
constexpr std::size_t fpdu_pad(std::size_t ulpdu) { return (0 - (kFpduLengthSize + ulpdu)) & 3; }

// The wire size of an FPDU that holds a ULPDU of `ulpdu` bytes.
constexpr std::size_t fpdu_size(std::size_t ulpdu) {
    return ((kFpduLengthSize + ulpdu + 3) & ~std::size_t{3}) + kFpduCrcSize;
}

// The largest ULPDU whose FPDU fits in `space` bytes, such as a TCP segment
// (RFC 5044 4.5: the MULPDU); 0 below 8 bytes.
constexpr std::size_t fpdu_max_ulpdu(std::size_t space) {
    constexpr std::size_t kLargest = fpdu_size(kFpduMaxUlpdu);
    if (space < kFpduLengthSize + kFpduCrcSize + 2) {
        return 0;
    }
    if (space >= kLargest) {
        return kFpduMaxUlpdu;
    }
    return (space & ~std::size_t{3}) - kFpduLengthSize - kFpduCrcSize;
}

// The length of the ULPDU of the FPDU that begins at `fpdu`. Reads 2 bytes,
// which the caller has.
inline std::size_t peek_ulpdu_size(const std::byte* fpdu) { return load_be<std::uint16_t>(fpdu); }

// The CRC field at `at`; 4 bytes, written and read in its own byte order.
inline std::byte* store_fpdu_crc(std::byte* at, std::uint32_t crc) {
    if constexpr (std::endian::native == std::endian::big) {
        crc = byte_swap(crc);
    }
    std::memcpy(at, &crc, sizeof crc);
    return at + sizeof crc;
}

inline std::uint32_t load_fpdu_crc(const std::byte* at) {
    std::uint32_t crc;
    std::memcpy(&crc, at, sizeof crc);
    if constexpr (std::endian::native == std::endian::big) {
        crc = byte_swap(crc);
    }
    return crc;
}

// Pad and a zero CRC for a ULPDU of `ulpdu` bytes, for connections without
// CRC. Writes fpdu_pad() + 4 bytes at `at`, returns the place behind them.
inline std::byte* write_fpdu_trailer(std::byte* at, std::size_t ulpdu) {
    const std::size_t pad = fpdu_pad(ulpdu);
    std::memset(at, 0, 4); // pad bytes that are not needed are part of the CRC field
    std::memset(at + pad, 0, kFpduCrcSize);
    return at + pad + kFpduCrcSize;
}

// The same with a CRC: `crc` is the checksum of the length field and the
// ULPDU, wherever those bytes lie; the pad is added to it here.
inline std::byte* write_fpdu_trailer(std::byte* at, std::size_t ulpdu, std::uint32_t crc) {
    const std::size_t pad = fpdu_pad(ulpdu);
    std::memset(at, 0, 4);
    if (pad != 0) {
        crc = crc32c(crc, {at, pad});
    }
    return store_fpdu_crc(at + pad, crc);
}

// Pad and CRC for an FPDU that lies in one piece at `fpdu`, with its length
// field and its ULPDU written. Returns the place behind the FPDU.
inline std::byte* finish_fpdu(std::byte* fpdu, bool with_crc) {
    const std::size_t ulpdu = peek_ulpdu_size(fpdu);
    std::byte* trailer = fpdu + kFpduLengthSize + ulpdu;
    if (!with_crc) {
        return write_fpdu_trailer(trailer, ulpdu);
    }
    return write_fpdu_trailer(trailer, ulpdu, crc32c(0, {fpdu, kFpduLengthSize + ulpdu}));
}

// Whether the CRC of a received FPDU that lies whole, in one piece, at `fpdu`
// (fpdu_size(peek_ulpdu_size(fpdu)) bytes) is right. The pad is covered as it
// came; its value is not looked at. A frame in pieces: compare crc32c() over
// length, ULPDU and pad with load_fpdu_crc().
inline bool fpdu_crc_ok(const std::byte* fpdu) {
    const std::size_t covered = fpdu_size(peek_ulpdu_size(fpdu)) - kFpduCrcSize;
    return crc32c(0, {fpdu, covered}) == load_fpdu_crc(fpdu + covered);
}

} // namespace dat::iwarp

#endif
