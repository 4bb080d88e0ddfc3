// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// DDP headers and RDMAP segments with arbitrary fields (RFC 5041, RFC 5040,
// RFC 7306).
#include "links/iwarp/rdmap.h"

#include <criterion/criterion.h>
#include <rapidcheck.h>

#include <iterator>

#include "wire_bytes.h"
#include "wire_opcodes.h"

using namespace dat::iwarp;
using namespace wire;

Test(wire_ddp, any_header__survives_the_wire) {
    cr_expect(rc::check([] {
        const DdpTagged tagged{.ulp_octet = *rc::gen::arbitrary<std::uint8_t>(),
                               .last = *rc::gen::arbitrary<bool>(),
                               .stag = *rc::gen::arbitrary<std::uint32_t>(),
                               .to = *rc::gen::arbitrary<std::uint64_t>()};
        const DdpUntagged untagged{.ulp_octet = *rc::gen::arbitrary<std::uint8_t>(),
                                   .last = *rc::gen::arbitrary<bool>(),
                                   .ulp_word = *rc::gen::arbitrary<std::uint32_t>(),
                                   .queue = *rc::gen::arbitrary<std::uint32_t>(),
                                   .msn = *rc::gen::arbitrary<std::uint32_t>(),
                                   .mo = *rc::gen::arbitrary<std::uint32_t>()};
        Bytes tagged_bytes(kDdpTaggedHeaderSize);
        write_ddp_header(tagged_bytes.data(), tagged);
        Bytes untagged_bytes(kDdpUntaggedHeaderSize);
        write_ddp_header(untagged_bytes.data(), untagged);
        DdpHeader h;
        RC_ASSERT(decode_ddp_header(tagged_bytes, h) == DdpError::none);
        RC_ASSERT(h.tagged);
        RC_ASSERT((DdpTagged{h.ulp_octet, h.last, h.stag, h.to} == tagged));
        RC_ASSERT(decode_ddp_header(untagged_bytes, h) == DdpError::none);
        RC_ASSERT(!h.tagged);
        RC_ASSERT((DdpUntagged{h.ulp_octet, h.last, h.ulp_word, h.queue, h.msn, h.mo} == untagged));
    }));
}

Test(wire_rdmap, any_segment__survives_the_wire) {
    cr_expect(rc::check([] {
        const Place& place = kPlaces[*rc::gen::inRange<std::size_t>(0, std::size(kPlaces))];
        const Segment sent{
            .opcode = place.opcode,
            .tagged = place.tagged,
            .last = *rc::gen::arbitrary<bool>(),
            .header_size = static_cast<std::uint8_t>(place.tagged ? 14 : 18),
            .stag = place.tagged ? *rc::gen::arbitrary<std::uint32_t>() : 0,
            .to = place.tagged ? *rc::gen::arbitrary<std::uint64_t>() : 0,
            .ulp_word = place.tagged ? 0 : *rc::gen::arbitrary<std::uint32_t>(),
            .queue = place.queue,
            .msn = place.tagged ? 0 : *rc::gen::arbitrary<std::uint32_t>(),
            .mo = place.tagged ? 0 : *rc::gen::arbitrary<std::uint32_t>(),
        };
        const auto payload = *rc::gen::inRange<std::size_t>(0, 65536 - sent.header_size);
        Bytes out(kFpduUntaggedHeaderSize);
        if (place.tagged) {
            write_fpdu_header(
                out.data(), payload,
                TaggedSegment{
                    .opcode = sent.opcode, .last = sent.last, .stag = sent.stag, .to = sent.to});
        } else {
            write_fpdu_header(out.data(), payload,
                              UntaggedSegment{.opcode = sent.opcode,
                                              .last = sent.last,
                                              .ulp_word = sent.ulp_word,
                                              .queue = sent.queue,
                                              .msn = sent.msn,
                                              .mo = sent.mo});
        }
        RC_ASSERT(peek_ulpdu_size(out.data()) == payload + sent.header_size);
        Segment got;
        const auto header = cut(std::span(out).subspan(2), sent.header_size);
        RC_ASSERT(decode_segment(header, true, got) == SegmentError::none);
        RC_ASSERT(got == sent);
        if (place.standard) {
            RC_ASSERT(decode_segment(header, false, got) == SegmentError::none);
            RC_ASSERT(got == sent);
        }
    }));
}

// Whatever comes, decoding stays inside it and gives what is consistent.
Test(wire_rdmap, arbitrary_bytes__give_a_consistent_segment_or_an_error) {
    cr_expect(rc::check([] {
        const Bytes ulpdu = from_octets(*rc::gen::arbitrary<std::vector<std::uint8_t>>());
        // Half of them with control octets that are right.
        Bytes exact = cut(ulpdu, ulpdu.size());
        if (exact.size() >= 2 && *rc::gen::arbitrary<bool>()) {
            exact[0] = (exact[0] & std::byte{0xfc}) | std::byte{1};
            exact[1] = (exact[1] & std::byte{0x3f}) | std::byte{0x40};
        }
        const bool dat_peer = *rc::gen::arbitrary<bool>();
        Segment segment;
        if (decode_segment(exact, dat_peer, segment) == SegmentError::none) {
            RC_ASSERT(segment.header_size <= exact.size());
            RC_ASSERT(segment.tagged || segment.queue < kQueueCount);
            RC_ASSERT(dat_peer || segment.opcode <= Opcode::terminate);
            RC_ASSERT(dat_peer || !segment.ack_wanted);
        }
    }));
}
