// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// RDMAP segments and control payloads (RFC 5040, RFC 7306), and what `dat`
// peers add to them.
#include "links/iwarp/rdmap.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <iterator>

#include "wire_bytes.h"
#include "wire_opcodes.h"

using namespace dat::iwarp;
using namespace wire;

namespace {

constexpr bool kDat = true;
constexpr bool kOther = false;

// A whole frame without payload, and without pad: both headers leave none.
template <class S> Bytes frame_of(const S& segment, std::size_t header_size) {
    Bytes out(header_size + kFpduCrcSize, std::byte{0xee});
    const std::byte* payload = write_fpdu_header(out.data(), 0, segment);
    cr_assert_eq(payload, out.data() + header_size);
    cr_assert_eq(finish_fpdu(out.data(), false), out.data() + out.size());
    return out;
}

Bytes tagged(unsigned octet, bool last = true) {
    return bytes({last ? 0xc1u : 0x81u, octet}) + filled(12, 0);
}

Bytes untagged(unsigned octet, unsigned queue, bool last = true) {
    return bytes({last ? 0x41u : 0x01u, octet}) + filled(4, 0) +
           bytes({queue >> 24, queue >> 16 & 0xff, queue >> 8 & 0xff, queue & 0xff}) + filled(8, 0);
}

SegmentError decode(const Bytes& ulpdu, bool dat_peer) {
    Segment segment;
    return decode_segment(cut(ulpdu, ulpdu.size()), dat_peer, segment);
}

const Place* place_of(unsigned opcode) {
    const auto* found = std::find_if(std::begin(kPlaces), std::end(kPlaces), [&](const Place& p) {
        return static_cast<unsigned>(p.opcode) == opcode;
    });
    return found == std::end(kPlaces) ? nullptr : found;
}

} // namespace

// RFC 5044 4.1, RFC 5041 4.2, RFC 5040 4.1, 4.3: an RDMA Write of 3 bytes.
Test(wire_rdmap, rdma_write__is_as_the_rfcs_draw_it) {
    const TaggedSegment segment{.opcode = Opcode::rdma_write,
                                .last = true,
                                .ack_wanted = false,
                                .stag = 0xdeadbeef,
                                .to = 0x0000000100000002};
    const Bytes payload = chars("abc");
    Bytes frame(fpdu_size(14 + 3), std::byte{0xee});
    std::byte* at = write_fpdu_header(frame.data(), payload.size(), segment);
    std::copy(payload.begin(), payload.end(), at);
    cr_expect_eq(finish_fpdu(frame.data(), false), frame.data() + frame.size());
    cr_expect_eq(frame,
                 bytes({0x00, 0x11, 0xc1, 0x40, 0xde, 0xad, 0xbe, 0xef, 0x00, 0x00, 0x00, 0x01,
                        0x00, 0x00, 0x00, 0x02, 'a',  'b',  'c',  0x00, 0x00, 0x00, 0x00, 0x00}));

    Segment out;
    const auto ulpdu = std::span(frame).subspan(2, peek_ulpdu_size(frame.data()));
    cr_assert_eq(decode_segment(ulpdu, kOther, out), SegmentError::none);
    const Segment wanted{.opcode = Opcode::rdma_write,
                         .tagged = true,
                         .last = true,
                         .header_size = 14,
                         .stag = 0xdeadbeef,
                         .to = 0x0000000100000002};
    cr_expect(out == wanted);
    cr_expect_eq(copy(ulpdu.subspan(out.header_size)), payload);
}

// RFC 5041 4.3, RFC 5040 4.1, 4.7: the second segment of a Send with
// Solicited Event and Invalidate.
Test(wire_rdmap, send_with_invalidate__is_as_the_rfcs_draw_it) {
    const UntaggedSegment segment{.opcode = Opcode::send_se_invalidate,
                                  .last = false,
                                  .ack_wanted = false,
                                  .ulp_word = 0x01020304,
                                  .queue = kQueueSend,
                                  .msn = 7,
                                  .mo = 0x5a0};
    const Bytes frame = frame_of(segment, kFpduUntaggedHeaderSize);
    cr_expect_eq(frame,
                 bytes({0x00, 0x12, 0x01, 0x46, 0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x00,
                        0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x05, 0xa0, 0x00, 0x00, 0x00, 0x00}));
    Segment out;
    cr_assert_eq(decode_segment(std::span(frame).subspan(2, 18), kOther, out), SegmentError::none);
    const Segment wanted{.opcode = Opcode::send_se_invalidate,
                         .header_size = 18,
                         .ulp_word = 0x01020304,
                         .msn = 7,
                         .mo = 0x5a0};
    cr_expect(out == wanted);
    cr_expect(invalidates(out.opcode));
    cr_expect(is_solicited(out.opcode));
}

// The diagram in rdmap.h.
Test(wire_rdmap, ack__is_as_its_diagram_draws_it) {
    const UntaggedSegment segment{.opcode = Opcode::ack,
                                  .last = true,
                                  .ack_wanted = false,
                                  .ulp_word = 0xfffffffe,
                                  .queue = kQueueAck,
                                  .msn = 3,
                                  .mo = 0};
    const Bytes frame = frame_of(segment, kFpduUntaggedHeaderSize);
    cr_expect_eq(frame,
                 bytes({0x00, 0x12, 0x41, 0x4f, 0xff, 0xff, 0xff, 0xfe, 0x00, 0x00, 0x00, 0x04,
                        0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00}));
    const Bytes ulpdu = copy(std::span(frame).subspan(2, 18));
    Segment out;
    cr_assert_eq(decode_segment(ulpdu, kDat, out), SegmentError::none);
    cr_expect_eq(out.opcode, Opcode::ack);
    cr_expect_eq(out.ulp_word, 0xfffffffeu);
    cr_expect_eq(decode_segment(ulpdu, kOther, out), SegmentError::invalid_queue);
}

Test(wire_rdmap, ack_wanted__is_bit_0x10_and_counts_on_last_segments_of_dat_requests) {
    const Bytes frame = frame_of(TaggedSegment{.ack_wanted = true}, kFpduTaggedHeaderSize);
    cr_expect_eq(frame[3], std::byte{0x50});
    Segment out;
    for (const Place& place : kPlaces) {
        const bool request = place.opcode == Opcode::rdma_write || is_send(place.opcode) ||
                             place.opcode == Opcode::immediate ||
                             place.opcode == Opcode::immediate_se;
        const unsigned octet = 0x50u | static_cast<unsigned>(place.opcode);
        for (const bool last : {false, true}) {
            const Bytes ulpdu =
                place.tagged ? tagged(octet, last) : untagged(octet, place.queue, last);
            cr_assert_eq(decode_segment(ulpdu, kDat, out), SegmentError::none);
            cr_expect_eq(out.ack_wanted, request && last, "%s", text(place.opcode));
            if (place.standard) {
                cr_assert_eq(decode_segment(ulpdu, kOther, out), SegmentError::none);
                cr_expect_not(out.ack_wanted, "%s", text(place.opcode));
            }
        }
    }
}

// RFC 5040 4.1, 4.2, 7.2; RFC 7306 4: every opcode on every model and queue,
// from both kinds of peer.
Test(wire_rdmap, opcode__is_taken_where_it_belongs_and_nowhere_else) {
    for (unsigned opcode = 0; opcode < 16; ++opcode) {
        const Place* place = place_of(opcode);
        for (const bool dat_peer : {kOther, kDat}) {
            const bool known = place != nullptr && (dat_peer || place->standard);
            cr_expect_eq(decode(tagged(0x40 | opcode), dat_peer),
                         known && place->tagged ? SegmentError::none
                                                : SegmentError::unexpected_opcode,
                         "opcode %x", opcode);
            const unsigned queues = dat_peer ? 5 : 3;
            for (unsigned queue = 0; queue < queues; ++queue) {
                const bool right = known && !place->tagged && place->queue == queue;
                cr_expect_eq(decode(untagged(0x40 | opcode, queue), dat_peer),
                             right ? SegmentError::none : SegmentError::unexpected_opcode,
                             "opcode %x queue %u", opcode, queue);
            }
            for (const unsigned queue : {queues, queues + 1, 0x100u, 0xffffffffu}) {
                cr_expect_eq(decode(untagged(0x40 | opcode, queue), dat_peer),
                             SegmentError::invalid_queue, "opcode %x queue %u", opcode, queue);
            }
        }
    }
}

// RFC 5040 4.1: version 1 in the two highest bits.
Test(wire_rdmap, other_versions__are_refused) {
    for (const unsigned version : {0u, 1u, 2u, 3u}) {
        const SegmentError expected =
            version == 1 ? SegmentError::none : SegmentError::rdmap_version;
        cr_expect_eq(decode(tagged(version << 6), kOther), expected);
        cr_expect_eq(decode(untagged(version << 6 | 3, 0), kDat), expected);
    }
}

// RFC 5040 4.1: reserved, and not checked.
Test(wire_rdmap, reserved_bits__are_ignored) {
    cr_expect_eq(decode(tagged(0x70), kOther), SegmentError::none);
    cr_expect_eq(decode(tagged(0x60), kDat), SegmentError::none);
}

Test(wire_rdmap, ddp_errors__pass_through_and_come_first) {
    for (std::size_t size = 0; size < 14; ++size) {
        cr_expect_eq(decode(cut(tagged(0x40), size), kOther), SegmentError::too_short);
    }
    for (std::size_t size = 0; size < 18; ++size) {
        cr_expect_eq(decode(cut(untagged(0x43, 0), size), kOther), SegmentError::too_short);
    }
    cr_expect_eq(decode(bytes({0x80, 0x00}) + filled(12, 0), kOther), SegmentError::tagged_version);
    cr_expect_eq(decode(bytes({0x02, 0x00}) + filled(16, 0), kOther),
                 SegmentError::untagged_version);
}

Test(wire_rdmap, predicates__name_the_right_opcodes) {
    for (const Place& place : kPlaces) {
        const Opcode op = place.opcode;
        const auto value = static_cast<unsigned>(op);
        cr_expect_eq(is_send(op), (value >= 3 && value <= 6) || value == 12 || value == 13, "%s",
                     text(op));
        cr_expect_eq(is_solicited(op), value == 5 || value == 6 || value == 9 || value == 13, "%s",
                     text(op));
        cr_expect_eq(carries_data(op), value == 12 || value == 13, "%s", text(op));
        cr_expect_eq(invalidates(op), value == 4 || value == 6, "%s", text(op));
        cr_expect_eq(carries_ack_count(op), value == 3 || value == 5 || value == 15, "%s",
                     text(op));
    }
}

// RFC 5040 4.4.
Test(wire_rdmap, read_request__is_as_the_rfc_draws_it) {
    const ReadRequest request{.sink_stag = 0x01020304,
                              .sink_to = 0x1112131415161718,
                              .size = 0x00010000,
                              .source_stag = 0x21222324,
                              .source_to = 0x3132333435363738};
    const Bytes expected =
        bytes({0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x00, 0x01,
               0x00, 0x00, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38});
    Bytes out(kReadRequestSize);
    cr_expect_eq(write_read_request(out.data(), request), out.data() + 28);
    cr_expect_eq(out, expected);
    ReadRequest decoded;
    cr_expect_eq(decode_read_request(expected, decoded), SegmentError::none);
    cr_expect(decoded == request);
}

// RFC 7306 6.2: eight bytes.
Test(wire_rdmap, immediate_data__is_eight_bytes) {
    Bytes out(kImmediateSize);
    cr_expect_eq(write_immediate(out.data(), 0x0102030405060708), out.data() + 8);
    cr_expect_eq(out, bytes({1, 2, 3, 4, 5, 6, 7, 8}));
    std::uint64_t data = 0;
    cr_expect_eq(decode_immediate(out, data), SegmentError::none);
    cr_expect_eq(data, 0x0102030405060708u);
}

// RFC 7306 5.2.1: 28 reserved bits, operation, identifier, STag, TO, data and
// mask to add or swap, data and mask to compare.
Test(wire_rdmap, atomic_request__is_as_the_rfc_draws_it) {
    const AtomicRequest request{.op = static_cast<std::uint8_t>(AtomicOp::compare_swap),
                                .request_id = 0x01020304,
                                .stag = 0x11121314,
                                .to = 0x2122232425262728,
                                .data = 0x3132333435363738,
                                .mask = 0xffffffffffffffff,
                                .compare = 0x4142434445464748,
                                .compare_mask = 0xffffffff00000000};
    const Bytes expected =
        bytes({0x00, 0x00, 0x00, 0x02, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x21,
               0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36,
               0x37, 0x38, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x41, 0x42, 0x43,
               0x44, 0x45, 0x46, 0x47, 0x48, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00});
    Bytes out(kAtomicRequestSize);
    cr_expect_eq(write_atomic_request(out.data(), request), out.data() + 52);
    cr_expect_eq(out, expected);
    AtomicRequest decoded;
    cr_expect_eq(decode_atomic_request(expected, decoded), SegmentError::none);
    cr_expect(decoded == request);

    Bytes noisy = expected;
    noisy[0] = noisy[1] = noisy[2] = std::byte{0xff};
    noisy[3] = std::byte{0xf2};
    cr_expect_eq(decode_atomic_request(noisy, decoded), SegmentError::none);
    cr_expect(decoded == request, "reserved bits are ignored");
}

// RFC 7306 5.2.2.
Test(wire_rdmap, atomic_response__is_as_the_rfc_draws_it) {
    const AtomicResponse response{.request_id = 0x01020304, .original = 0x1112131415161718};
    const Bytes expected = bytes({1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18});
    Bytes out(kAtomicResponseSize);
    cr_expect_eq(write_atomic_response(out.data(), response), out.data() + 12);
    cr_expect_eq(out, expected);
    AtomicResponse decoded;
    cr_expect_eq(decode_atomic_response(expected, decoded), SegmentError::none);
    cr_expect(decoded == response);
}

Test(wire_rdmap, control_payload_of_every_other_size__is_refused) {
    ReadRequest read;
    AtomicRequest request;
    AtomicResponse response;
    std::uint64_t immediate = 0;
    for (std::size_t size = 0; size < 80; ++size) {
        const Bytes payload = filled(size, 0x5a);
        const auto expected = [&](std::size_t right) {
            return size < right   ? SegmentError::message_too_short
                   : size > right ? SegmentError::message_too_long
                                  : SegmentError::none;
        };
        cr_expect_eq(decode_read_request(payload, read), expected(28), "%zu", size);
        cr_expect_eq(decode_immediate(payload, immediate), expected(8), "%zu", size);
        cr_expect_eq(decode_atomic_request(payload, request), expected(52), "%zu", size);
        cr_expect_eq(decode_atomic_response(payload, response), expected(12), "%zu", size);
    }
}

// RFC 5040 4.8, RFC 5041 7.2: layer, type and code on the wire.
Test(wire_rdmap, segment_errors__have_their_terminate_codes) {
    const auto code = [](SegmentError error) {
        return static_cast<unsigned>(terminate_code(error));
    };
    cr_expect_eq(code(SegmentError::too_short), 0x1000u);
    cr_expect_eq(code(SegmentError::tagged_version), 0x1104u);
    cr_expect_eq(code(SegmentError::untagged_version), 0x1206u);
    cr_expect_eq(code(SegmentError::rdmap_version), 0x0205u);
    cr_expect_eq(code(SegmentError::unexpected_opcode), 0x0206u);
    cr_expect_eq(code(SegmentError::invalid_queue), 0x1201u);
    cr_expect_eq(code(SegmentError::message_too_long), 0x1205u);
    cr_expect_eq(code(SegmentError::message_too_short), 0x02ffu);
}

Test(wire_rdmap, every_opcode_and_error__has_its_own_words) {
    for (const Place& a : kPlaces) {
        for (const Place* b = &a + 1; b != std::end(kPlaces); ++b) {
            cr_expect_str_neq(text(a.opcode), text(b->opcode));
        }
        cr_expect_str_neq(text(a.opcode), text(static_cast<Opcode>(0x10)));
    }
    constexpr int kErrors = static_cast<int>(SegmentError::message_too_short) + 2;
    for (int a = 0; a < kErrors; ++a) {
        for (int b = a + 1; b < kErrors; ++b) {
            cr_expect_str_neq(text(static_cast<SegmentError>(a)),
                              text(static_cast<SegmentError>(b)));
        }
    }
}
