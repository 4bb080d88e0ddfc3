// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// MPA frames and FPDUs: what goes in comes out, and arbitrary bytes do no harm
// (RFC 5044, RFC 6581).
#include "links/iwarp/mpa.h"

#include <criterion/criterion.h>
#include <rapidcheck.h>

#include <algorithm>

#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

Test(wire_mpa, any_frame__survives_the_wire) {
    cr_expect(rc::check([] {
        const Bytes data =
            from_octets(*rc::gen::resize(508, rc::gen::arbitrary<std::vector<std::uint8_t>>()));
        MpaFrame frame;
        frame.kind = *rc::gen::element(MpaKind::request, MpaKind::reply);
        frame.crc = *rc::gen::arbitrary<bool>();
        frame.reject = frame.kind == MpaKind::reply && *rc::gen::arbitrary<bool>();
        frame.from_dat = *rc::gen::arbitrary<bool>();
        frame.revision = *rc::gen::element(kMpaRevision1, kMpaRevision2);
        if (frame.revision == kMpaRevision2 && *rc::gen::arbitrary<bool>()) {
            frame.enhanced = MpaEnhanced{
                .ird = *rc::gen::inRange<std::uint16_t>(0, kMpaNoDepth + 1),
                .ord = *rc::gen::inRange<std::uint16_t>(0, kMpaNoDepth + 1),
                .peer_to_peer = *rc::gen::arbitrary<bool>(),
                .rtr_empty_fpdu = *rc::gen::arbitrary<bool>(),
                .rtr_rdma_write = *rc::gen::arbitrary<bool>(),
                .rtr_rdma_read = *rc::gen::arbitrary<bool>(),
            };
        }
        frame.private_data = data;

        Bytes wire(kMpaMaxFrameSize);
        wire.resize(encode_mpa_frame(frame, wire));
        RC_ASSERT(wire.size() == mpa_frame_size(frame));
        const MpaParse parse = parse_mpa_frame(frame.kind, wire);
        RC_ASSERT(parse.status == MpaStatus::complete);
        RC_ASSERT(parse.size == wire.size());
        RC_ASSERT(parse.frame.kind == frame.kind);
        RC_ASSERT(parse.frame.revision == frame.revision);
        RC_ASSERT(parse.frame.crc == frame.crc);
        RC_ASSERT(parse.frame.reject == frame.reject);
        RC_ASSERT(parse.frame.from_dat == frame.from_dat);
        RC_ASSERT(parse.frame.enhanced == frame.enhanced);
        RC_ASSERT(copy(parse.frame.private_data) == data);
    }));
}

// Whatever comes, the parser stays inside it and keeps its own promises.
Test(wire_mpa, arbitrary_bytes_behind_a_key__give_a_consistent_answer) {
    cr_expect(rc::check([] {
        const auto kind = *rc::gen::element(MpaKind::request, MpaKind::reply);
        const Bytes frame =
            chars(kind == MpaKind::request ? "MPA ID Req Frame" : "MPA ID Rep Frame") +
            from_octets(*rc::gen::arbitrary<std::vector<std::uint8_t>>());
        const MpaParse parse = parse_mpa_frame(kind, cut(frame, frame.size()));
        RC_ASSERT((parse.status == MpaStatus::error) == (parse.error != MpaError::none));
        if (parse.status == MpaStatus::complete) {
            RC_ASSERT(parse.size <= frame.size());
        }
        if (parse.status == MpaStatus::need_more) {
            RC_ASSERT(parse.size > 0u);
            RC_ASSERT(frame.size() + parse.size <= kMpaMaxFrameSize);
        }
    }));
}

// A frame whose payload lies elsewhere has the same trailer.
Test(wire_fpdu, any_payload_in_pieces__gets_the_trailer_of_the_whole) {
    cr_expect(rc::check([] {
        const Bytes ulpdu = from_octets(*rc::gen::arbitrary<std::vector<std::uint8_t>>());
        Bytes whole(fpdu_size(ulpdu.size()));
        store_be(whole.data(), static_cast<std::uint16_t>(ulpdu.size()));
        std::copy(ulpdu.begin(), ulpdu.end(), whole.begin() + 2);
        finish_fpdu(whole.data(), true);
        RC_ASSERT(fpdu_crc_ok(whole.data()));
        RC_ASSERT(peek_ulpdu_size(whole.data()) == ulpdu.size());

        const auto split = *rc::gen::inRange<std::size_t>(0, ulpdu.size() + 1);
        const auto view = std::span(whole);
        std::uint32_t crc = crc32c(0, view.first(2 + split));
        crc = crc32c(crc, view.subspan(2 + split, ulpdu.size() - split));
        Bytes trailer(kFpduMaxTrailer, std::byte{0xee});
        const std::byte* end = write_fpdu_trailer(trailer.data(), ulpdu.size(), crc);
        trailer.resize(static_cast<std::size_t>(end - trailer.data()));
        RC_ASSERT(copy(view.subspan(2 + ulpdu.size())) == trailer);
    }));
}
