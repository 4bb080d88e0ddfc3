// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// MPA request and reply frames (RFC 5044 7.1, RFC 6581): vectors written out
// by hand, every error from both sides, bytes that trickle in.
#include "links/iwarp/mpa.h"

#include <criterion/criterion.h>

#include <algorithm>
#include <iterator>

#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

namespace {

Bytes request_key() { return chars("MPA ID Req Frame"); }
Bytes reply_key() { return chars("MPA ID Rep Frame"); }

// Key, flags, revision, length of what follows, what follows.
Bytes frame_bytes(MpaKind kind, unsigned flags, unsigned revision, std::size_t length,
                  const Bytes& data) {
    const auto size = static_cast<unsigned>(length);
    return (kind == MpaKind::request ? request_key() : reply_key()) +
           bytes({flags, revision, size >> 8, size & 0xff}) + data;
}

Bytes encode(const MpaFrame& frame) {
    Bytes out(kMpaMaxFrameSize);
    out.resize(encode_mpa_frame(frame, out));
    return out;
}

void expect_error(const MpaParse& parse, MpaError error, std::uint32_t value) {
    cr_expect_eq(parse.status, MpaStatus::error);
    cr_expect_eq(parse.error, error, "got: %s", text(parse.error));
    cr_expect_eq(parse.value, value, "got value %u", parse.value);
}

void expect_complete(const MpaParse& parse, std::size_t size) {
    cr_expect_eq(parse.status, MpaStatus::complete, "got: %s", text(parse.error));
    cr_expect_eq(parse.error, MpaError::none);
    cr_expect_eq(parse.size, size);
}

} // namespace

// RFC 5044 7.1.1: C is the second bit, the revision 1, the length in bytes.
Test(wire_mpa, request_of_revision_1__is_as_the_rfc_draws_it) {
    const Bytes expected = request_key() + bytes({0x40, 0x01, 0x00, 0x02, 'h', 'i'});
    const Bytes data = chars("hi");
    MpaFrame frame;
    frame.crc = true;
    frame.private_data = data;
    cr_assert_eq(encode(frame), expected);

    const MpaParse parse = parse_mpa_frame(MpaKind::request, expected);
    expect_complete(parse, 22);
    cr_expect_eq(parse.frame.revision, 1);
    cr_expect(parse.frame.crc);
    cr_expect_not(parse.frame.markers);
    cr_expect_not(parse.frame.from_dat);
    cr_expect_not(parse.frame.enhanced.has_value());
    cr_expect_eq(copy(parse.frame.private_data), data);
}

// RFC 5044 7.1.1: R is the third bit.
Test(wire_mpa, rejecting_reply__is_as_the_rfc_draws_it) {
    const Bytes expected = reply_key() + bytes({0x20, 0x01, 0x00, 0x00});
    MpaFrame frame;
    frame.kind = MpaKind::reply;
    frame.reject = true;
    cr_assert_eq(encode(frame), expected);
    const MpaParse parse = parse_mpa_frame(MpaKind::reply, expected);
    expect_complete(parse, 20);
    cr_expect(parse.frame.reject);
}

// RFC 6581 6, 9: S is the fourth bit, revision 2; A and B before IRD, C and D
// before ORD; the length counts those 4 bytes. A `dat` request sets 0x0400.
Test(wire_mpa, enhanced_request__is_as_the_rfc_draws_it) {
    const Bytes expected =
        request_key() + bytes({0x54, 0x02, 0x00, 0x05, 0x80, 0x10, 0xc0, 0x08, 0x77});
    const Bytes data = bytes({0x77});
    MpaFrame frame;
    frame.revision = kMpaRevision2;
    frame.crc = true;
    frame.from_dat = true;
    frame.enhanced = MpaEnhanced{.ird = 16,
                                 .ord = 8,
                                 .peer_to_peer = true,
                                 .rtr_empty_fpdu = false,
                                 .rtr_rdma_write = true,
                                 .rtr_rdma_read = true};
    frame.private_data = data;
    cr_assert_eq(encode(frame), expected);

    const MpaParse parse = parse_mpa_frame(MpaKind::request, expected);
    expect_complete(parse, 25);
    cr_expect_eq(parse.frame.revision, 2);
    cr_expect(parse.frame.from_dat);
    cr_expect(parse.frame.enhanced == frame.enhanced);
    cr_expect_eq(copy(parse.frame.private_data), data);
}

// RFC 6581 9.1, 9.2: each control bit and the 14 bits of IRD and ORD.
Test(wire_mpa, enhanced_fields__each_have_their_bits) {
    const auto parse = [](const Bytes& data) {
        const Bytes frame = frame_bytes(MpaKind::reply, 0x10, 2, 4, data);
        return *parse_mpa_frame(MpaKind::reply, frame).frame.enhanced;
    };
    cr_expect(parse(bytes({0x80, 0, 0, 0})) == MpaEnhanced{.peer_to_peer = true});
    cr_expect(parse(bytes({0x40, 0, 0, 0})) == MpaEnhanced{.rtr_empty_fpdu = true});
    cr_expect(parse(bytes({0, 0, 0x80, 0})) == MpaEnhanced{.rtr_rdma_write = true});
    cr_expect(parse(bytes({0, 0, 0x40, 0})) == MpaEnhanced{.rtr_rdma_read = true});
    cr_expect(parse(bytes({0x3f, 0xff, 0, 0})) == MpaEnhanced{.ird = kMpaNoDepth});
    cr_expect(parse(bytes({0, 0, 0x3f, 0xff})) == MpaEnhanced{.ord = kMpaNoDepth});
}

// RFC 6581 6: revision 2 without S carries no IRD and ORD.
Test(wire_mpa, revision_2_without_s__has_private_data_only) {
    const Bytes data = chars("wxyz");
    const MpaParse parse =
        parse_mpa_frame(MpaKind::request, frame_bytes(MpaKind::request, 0, 2, 4, data));
    expect_complete(parse, 24);
    cr_expect_not(parse.frame.enhanced.has_value());
}

// RFC 5044 7.1.1: reserved bits are not checked; in revision 1, S is one.
Test(wire_mpa, bits_that_receivers_must_ignore__are_ignored) {
    MpaParse parse =
        parse_mpa_frame(MpaKind::request, frame_bytes(MpaKind::request, 0x19, 1, 0, {}));
    expect_complete(parse, 20);
    cr_expect_not(parse.frame.enhanced.has_value());

    parse = parse_mpa_frame(MpaKind::request, frame_bytes(MpaKind::request, 0x20, 1, 0, {}));
    expect_complete(parse, 20);
    cr_expect_not(parse.frame.reject, "R has no meaning in a request");
}

Test(wire_mpa, dat_bits__count_only_in_their_own_frame_and_alone) {
    struct Case {
        MpaKind kind;
        unsigned flags;
        bool from_dat;
    };
    for (const Case& c : {Case{MpaKind::request, 0x04, true}, Case{MpaKind::request, 0x02, false},
                          Case{MpaKind::request, 0x06, false}, Case{MpaKind::request, 0x00, false},
                          Case{MpaKind::request, 0x4c, true}, Case{MpaKind::reply, 0x02, true},
                          Case{MpaKind::reply, 0x04, false}, Case{MpaKind::reply, 0x06, false},
                          Case{MpaKind::reply, 0x4a, true}}) {
        const Bytes frame = frame_bytes(c.kind, c.flags, 1, 0, {});
        cr_expect_eq(parse_mpa_frame(c.kind, frame).frame.from_dat, c.from_dat, "flags %02x",
                     c.flags);
    }
}

// 0x0800 is siw's own towards others.
Test(wire_mpa, wide__counts_from_a_dat_process_alone) {
    struct Case {
        MpaKind kind;
        unsigned flags;
        bool wide;
    };
    for (const Case& c : {Case{MpaKind::request, 0x0c, true}, Case{MpaKind::request, 0x04, false},
                          Case{MpaKind::request, 0x08, false}, Case{MpaKind::request, 0x0e, false},
                          Case{MpaKind::reply, 0x0a, true}, Case{MpaKind::reply, 0x02, false},
                          Case{MpaKind::reply, 0x08, false}, Case{MpaKind::reply, 0x0c, false}}) {
        const Bytes bytes = frame_bytes(c.kind, c.flags, 1, 0, {});
        const MpaFrame frame = parse_mpa_frame(c.kind, bytes).frame;
        cr_expect_eq(frame.wide, c.wide, "flags %02x", c.flags);
        if (c.wide)
            cr_expect_eq(encode(frame), bytes);
    }
}

// siw answers a request with its flags as they came: no proof of a `dat` peer.
Test(wire_mpa, echoed_request_flags__do_not_make_a_dat_reply) {
    MpaFrame request;
    request.from_dat = true;
    Bytes echo = encode(request);
    const Bytes key = reply_key();
    std::copy(key.begin(), key.end(), echo.begin());
    const MpaParse parse = parse_mpa_frame(MpaKind::reply, echo);
    expect_complete(parse, 20);
    cr_expect_not(parse.frame.from_dat);
}

Test(wire_mpa, wrong_key__is_found_at_its_first_wrong_byte) {
    for (std::size_t i = 0; i < kMpaKeySize; ++i) {
        Bytes frame = frame_bytes(MpaKind::request, 0, 1, 0, {});
        frame[i] ^= std::byte{0x80};
        const MpaParse before = parse_mpa_frame(MpaKind::request, cut(frame, i));
        cr_expect_eq(before.status, MpaStatus::need_more, "%zu bytes", i);
        expect_error(parse_mpa_frame(MpaKind::request, cut(frame, i + 1)), MpaError::wrong_key,
                     static_cast<std::uint32_t>(i));
        expect_error(parse_mpa_frame(MpaKind::request, frame), MpaError::wrong_key,
                     static_cast<std::uint32_t>(i));
    }
}

Test(wire_mpa, frame_of_the_other_kind__is_named) {
    const Bytes request = frame_bytes(MpaKind::request, 0, 1, 0, {});
    const Bytes reply = frame_bytes(MpaKind::reply, 0, 1, 0, {});
    expect_error(parse_mpa_frame(MpaKind::reply, request), MpaError::wrong_kind, 0);
    expect_error(parse_mpa_frame(MpaKind::request, reply), MpaError::wrong_kind, 0);
    // The keys differ in their tenth byte.
    cr_expect_eq(parse_mpa_frame(MpaKind::reply, cut(request, 9)).status, MpaStatus::need_more);
    expect_error(parse_mpa_frame(MpaKind::reply, cut(request, 10)), MpaError::wrong_kind, 0);
}

Test(wire_mpa, revisions__only_1_and_2_are_known) {
    for (const unsigned revision : {0u, 3u, 255u}) {
        const MpaParse parse =
            parse_mpa_frame(MpaKind::request, frame_bytes(MpaKind::request, 0, revision, 0, {}));
        expect_error(parse, MpaError::unknown_revision, revision);
        cr_expect_eq(parse.frame.revision, revision);
    }
    for (const unsigned revision : {1u, 2u}) {
        expect_complete(
            parse_mpa_frame(MpaKind::request, frame_bytes(MpaKind::request, 0, revision, 0, {})),
            20);
    }
}

// RFC 5044 7.1.1: 512 bytes at most, and the length field is not trusted
// before it has been checked.
Test(wire_mpa, private_data__may_have_512_bytes_and_no_more) {
    expect_complete(parse_mpa_frame(MpaKind::request,
                                    frame_bytes(MpaKind::request, 0, 1, 512, filled(512, 0x11))),
                    532);
    expect_error(parse_mpa_frame(MpaKind::request, frame_bytes(MpaKind::request, 0, 1, 513, {})),
                 MpaError::private_data_too_long, 513);
    expect_error(parse_mpa_frame(MpaKind::request, frame_bytes(MpaKind::request, 0, 1, 65535, {})),
                 MpaError::private_data_too_long, 65535);
}

Test(wire_mpa, s_without_room_for_ird_and_ord__is_an_error_unless_it_rejects) {
    expect_error(parse_mpa_frame(MpaKind::request,
                                 frame_bytes(MpaKind::request, 0x10, 2, 3, bytes({1, 2, 3}))),
                 MpaError::enhanced_too_short, 3);
    expect_complete(parse_mpa_frame(MpaKind::request,
                                    frame_bytes(MpaKind::request, 0x10, 2, 4, bytes({0, 1, 0, 2}))),
                    24);
    expect_error(parse_mpa_frame(MpaKind::reply, frame_bytes(MpaKind::reply, 0x10, 2, 0, {})),
                 MpaError::enhanced_too_short, 0);
    const MpaParse reject =
        parse_mpa_frame(MpaKind::reply, frame_bytes(MpaKind::reply, 0x30, 2, 0, {}));
    expect_complete(reject, 20);
    cr_expect(reject.frame.reject);
    cr_expect_not(reject.frame.enhanced.has_value());
}

// RFC 5044 7.1.1: M states what the sender wants to receive. The frame is
// there for the reply that refuses, and for the bytes to be read up.
Test(wire_mpa, markers__are_refused_once_the_frame_is_whole) {
    const Bytes frame = frame_bytes(MpaKind::request, 0xc0, 1, 2, chars("hi"));
    cr_expect_eq(parse_mpa_frame(MpaKind::request, cut(frame, 21)).status, MpaStatus::need_more);
    const MpaParse parse = parse_mpa_frame(MpaKind::request, frame);
    expect_error(parse, MpaError::markers_demanded, 0);
    cr_expect_eq(parse.size, 22);
    cr_expect(parse.frame.crc);
    cr_expect_eq(copy(parse.frame.private_data), chars("hi"));

    expect_error(parse_mpa_frame(MpaKind::reply, frame_bytes(MpaKind::reply, 0x80, 1, 0, {})),
                 MpaError::markers_demanded, 0);
    const Bytes rejecting = frame_bytes(MpaKind::reply, 0xa0, 1, 0, {});
    expect_complete(parse_mpa_frame(MpaKind::reply, rejecting), 20);
}

// A stream gives as many bytes as it likes: what is asked for is never more
// than the frame, and leads to it.
Test(wire_mpa, bytes_that_trickle_in__give_the_frame_with_its_last_byte) {
    const Bytes frame =
        frame_bytes(MpaKind::request, 0x50, 2, 9, bytes({0, 1, 0, 2, 'a', 'b', 'c', 'd', 'e'}));
    for (std::size_t have = 0; have < frame.size(); ++have) {
        const MpaParse parse = parse_mpa_frame(MpaKind::request, cut(frame, have));
        cr_assert_eq(parse.status, MpaStatus::need_more, "%zu bytes", have);
        cr_assert_eq(parse.size, (have < 20 ? 20 : frame.size()) - have, "%zu bytes", have);
    }
    expect_complete(parse_mpa_frame(MpaKind::request, frame), frame.size());
}

Test(wire_mpa, bytes_behind_the_frame__are_left_alone) {
    const Bytes frame = frame_bytes(MpaKind::reply, 0, 1, 2, chars("hi")) + chars("next");
    const MpaParse parse = parse_mpa_frame(MpaKind::reply, frame);
    expect_complete(parse, 22);
    cr_expect_eq(copy(parse.frame.private_data), chars("hi"));
}

Test(wire_mpa, encoder__refuses_what_no_frame_can_hold) {
    const Bytes data = filled(513, 1);
    const auto view = std::span(data);
    Bytes out(kMpaMaxFrameSize, std::byte{0xee});
    MpaFrame frame;

    frame.private_data = view.first(512);
    cr_expect_eq(encode_mpa_frame(frame, out), 532u);
    cr_expect_eq(encode_mpa_frame(frame, std::span(out).first(531)), 0u);
    frame.private_data = view;
    cr_expect_eq(encode_mpa_frame(frame, out), 0u);

    frame.revision = kMpaRevision2;
    frame.enhanced = MpaEnhanced{.ird = kMpaNoDepth, .ord = kMpaNoDepth};
    frame.private_data = view.first(508);
    cr_expect_eq(encode_mpa_frame(frame, out), 532u);
    frame.private_data = view.first(509);
    cr_expect_eq(encode_mpa_frame(frame, out), 0u);

    frame.private_data = {};
    frame.enhanced->ird = kMpaNoDepth + 1;
    cr_expect_eq(encode_mpa_frame(frame, out), 0u);
    frame.enhanced->ird = 0;
    frame.enhanced->ord = kMpaNoDepth + 1;
    cr_expect_eq(encode_mpa_frame(frame, out), 0u);
    frame.enhanced->ord = 0;
    frame.revision = kMpaRevision1;
    cr_expect_eq(encode_mpa_frame(frame, out), 0u, "IRD and ORD need revision 2");

    frame.enhanced.reset();
    cr_expect_eq(encode_mpa_frame(frame, out), 20u);
    frame.reject = true;
    cr_expect_eq(encode_mpa_frame(frame, out), 0u, "a request cannot reject");
    frame.reject = false;
    for (const std::uint8_t revision : {std::uint8_t{0}, std::uint8_t{3}}) {
        frame.revision = revision;
        cr_expect_eq(encode_mpa_frame(frame, out), 0u);
    }
}

Test(wire_mpa, every_error__has_its_own_words) {
    constexpr MpaError kErrors[] = {MpaError::none,
                                    MpaError::wrong_key,
                                    MpaError::wrong_kind,
                                    MpaError::unknown_revision,
                                    MpaError::private_data_too_long,
                                    MpaError::enhanced_too_short,
                                    MpaError::markers_demanded,
                                    static_cast<MpaError>(200)};
    for (const MpaError& a : kErrors) {
        for (const MpaError* b = &a + 1; b != std::end(kErrors); ++b) {
            cr_expect_str_neq(text(a), text(*b));
        }
    }
}
