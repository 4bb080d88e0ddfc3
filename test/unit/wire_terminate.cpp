// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The Terminate message (RFC 5040 4.8).
#include "links/iwarp/terminate.h"

#include <criterion/criterion.h>

#include <array>
#include <iterator>

#include "links/iwarp/rdmap.h"
#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

namespace {

Bytes encode(const Terminate& terminate) {
    std::array<std::byte, kTerminateMaxSize> out{};
    const std::size_t size = encode_terminate(terminate, out);
    return cut(out, size);
}

// Last segment of an RDMA Write, STag 0x01020304, TO 5, and a byte of payload.
Bytes write_segment() { return bytes({0xc1, 0x40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0x77}); }

// A Read Request, MSN 1, whose 28 bytes are 0x5a.
Bytes read_request_segment() {
    return bytes({0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}) + filled(28, 0x5a);
}

constexpr TerminateCode kCodes[] = {
    TerminateCode::rdmap_catastrophic,
    TerminateCode::rdmap_invalid_stag,
    TerminateCode::rdmap_base_bounds,
    TerminateCode::rdmap_access_rights,
    TerminateCode::rdmap_stag_not_associated,
    TerminateCode::rdmap_to_wrap,
    TerminateCode::rdmap_protection_cannot_invalidate,
    TerminateCode::rdmap_protection_unspecified,
    TerminateCode::rdmap_version,
    TerminateCode::rdmap_unexpected_opcode,
    TerminateCode::rdmap_catastrophic_stream,
    TerminateCode::rdmap_catastrophic_global,
    TerminateCode::rdmap_cannot_invalidate,
    TerminateCode::rdmap_unspecified,
    TerminateCode::ddp_catastrophic,
    TerminateCode::ddp_tagged_invalid_stag,
    TerminateCode::ddp_tagged_base_bounds,
    TerminateCode::ddp_tagged_stag_not_associated,
    TerminateCode::ddp_tagged_to_wrap,
    TerminateCode::ddp_tagged_version,
    TerminateCode::ddp_untagged_invalid_queue,
    TerminateCode::ddp_untagged_no_buffer,
    TerminateCode::ddp_untagged_msn_range,
    TerminateCode::ddp_untagged_invalid_mo,
    TerminateCode::ddp_untagged_too_long,
    TerminateCode::ddp_untagged_version,
    TerminateCode::mpa_stream_lost,
    TerminateCode::mpa_crc,
    TerminateCode::mpa_marker_mismatch,
    TerminateCode::mpa_invalid_frame,
    TerminateCode::mpa_catastrophic,
    TerminateCode::mpa_insufficient_ird,
    TerminateCode::mpa_no_matching_rtr,
};

} // namespace

// Layer 2, type 0, code 2; no copies, no header control bits.
Test(wire_terminate, crc_error__is_the_control_field_alone) {
    const Bytes segment = write_segment();
    const Terminate terminate = make_terminate(TerminateCode::mpa_crc, segment, segment.size());
    cr_expect_eq(encode(terminate), bytes({0x20, 0x02, 0x00, 0x00}));
}

// Layer 1, type 1, code 1; M and D; the length of the segment; its header.
Test(wire_terminate, tagged_buffer_error__copies_the_ddp_header) {
    const Bytes segment = write_segment();
    const Terminate terminate =
        make_terminate(TerminateCode::ddp_tagged_base_bounds, segment, segment.size());
    cr_expect_eq(encode(terminate), bytes({0x11, 0x01, 0xc0, 0x00, 0x00, 0x0f}) + cut(segment, 14));
}

// Layer 0, type 1, code 2; M, D and R.
Test(wire_terminate, refused_read__copies_the_read_request_too) {
    const Bytes segment = read_request_segment();
    const Terminate terminate =
        make_terminate(TerminateCode::rdmap_access_rights, segment, segment.size());
    cr_expect_eq(encode(terminate), bytes({0x01, 0x02, 0xe0, 0x00, 0x00, 0x2e}) + segment);
}

Test(wire_terminate, read_request__is_copied_for_errors_of_rdmap_only_and_only_if_whole) {
    const Bytes segment = read_request_segment();
    const auto copied = [](TerminateCode code, const Bytes& ulpdu) {
        return !make_terminate(code, ulpdu, ulpdu.size()).read_request.empty();
    };
    cr_expect(copied(TerminateCode::rdmap_invalid_stag, segment));
    cr_expect_not(copied(TerminateCode::ddp_untagged_msn_range, segment));
    cr_expect_not(copied(TerminateCode::rdmap_invalid_stag, cut(segment, segment.size() - 1)));
    Bytes send = segment;
    send[1] = std::byte{0x43};
    cr_expect_not(copied(TerminateCode::rdmap_invalid_stag, send));
    cr_expect_not(copied(TerminateCode::rdmap_invalid_stag, write_segment() + filled(40, 0)));
}

Test(wire_terminate, header_of_unknown_layout__is_not_copied) {
    const auto has_header = [](const Bytes& ulpdu) {
        return make_terminate(TerminateCode::rdmap_version, ulpdu, ulpdu.size()).has_ddp_length;
    };
    Bytes segment = write_segment();
    cr_expect(has_header(cut(segment, 14)));
    cr_expect_not(has_header(cut(segment, 13)));
    cr_expect_not(has_header({}));
    segment[0] = std::byte{0xc2};
    cr_expect_not(has_header(segment));
}

Test(wire_terminate, catastrophic_and_mpa_errors__concern_no_segment) {
    const Bytes segment = write_segment();
    for (const TerminateCode code : kCodes) {
        const bool none = code == TerminateCode::rdmap_catastrophic ||
                          code == TerminateCode::rdmap_catastrophic_stream ||
                          code == TerminateCode::rdmap_catastrophic_global ||
                          code == TerminateCode::ddp_catastrophic || terminate_layer(code) == 2;
        const Terminate terminate = make_terminate(code, segment, segment.size());
        cr_expect_eq(terminate.ddp_header.empty(), none, "%s", text(code));
        cr_expect_eq(terminate.has_ddp_length, !none, "%s", text(code));
    }
}

// A segment that is still coming in has its announced length.
Test(wire_terminate, length__is_that_of_the_whole_segment) {
    const Bytes segment = write_segment();
    const Terminate terminate =
        make_terminate(TerminateCode::ddp_tagged_invalid_stag, segment, 65535);
    cr_expect_eq(terminate.ddp_length, 65535);
}

Test(wire_terminate, largest__fits_the_size_promised) {
    const Bytes segment = read_request_segment();
    const Terminate terminate =
        make_terminate(TerminateCode::rdmap_base_bounds, segment, segment.size());
    cr_expect_eq(encode(terminate).size(), kTerminateMaxSize);
}

// Whatever was cut off, the code arrives; copies arrive whole or not at all.
Test(wire_terminate, payload_cut_anywhere__keeps_the_code) {
    const Bytes segment = read_request_segment();
    const Bytes whole =
        encode(make_terminate(TerminateCode::rdmap_to_wrap, segment, segment.size()));
    cr_assert_eq(whole.size(), 52u);
    Terminate out;
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        const Bytes part = cut(whole, size);
        cr_assert_eq(decode_terminate(part, out), size >= 4, "%zu", size);
        if (size < 4) {
            continue;
        }
        cr_expect_eq(out.code, TerminateCode::rdmap_to_wrap);
        cr_expect_eq(out.has_ddp_length, size >= 6, "%zu", size);
        cr_expect_eq(out.ddp_length, size >= 6 ? 46 : 0, "%zu", size);
        cr_expect_eq(out.ddp_header.size(), size >= 24 ? 18u : 0u, "%zu", size);
        cr_expect_eq(out.read_request.size(), size >= 52 ? 28u : 0u, "%zu", size);
    }
}

// RFC 5040 4.8: the length is there when the DDP header is, valid or not.
Test(wire_terminate, header_without_valid_length__is_found_behind_the_length) {
    const Bytes header = cut(write_segment(), 14);
    const Bytes payload = bytes({0x11, 0x00, 0x40, 0x00, 0xff, 0xff}) + header;
    Terminate out;
    cr_assert(decode_terminate(payload, out));
    cr_expect_not(out.has_ddp_length);
    cr_expect_eq(out.ddp_length, 0);
    cr_expect_eq(copy(out.ddp_header), header);
}

Test(wire_terminate, read_request_without_ddp_header__follows_the_control_field) {
    Terminate out;
    const Bytes payload = bytes({0x01, 0x00, 0x20, 0x00}) + filled(28, 0x5a);
    cr_assert(decode_terminate(payload, out));
    cr_expect(out.ddp_header.empty());
    cr_expect_eq(copy(out.read_request), filled(28, 0x5a));
}

Test(wire_terminate, parts_of_a_code__go_where_the_rfc_puts_them) {
    cr_expect_eq(make_terminate_code(1, 2, 5), TerminateCode::ddp_untagged_too_long);
    cr_expect_eq(terminate_layer(TerminateCode::rdmap_unspecified), 0);
    cr_expect_eq(terminate_layer(TerminateCode::ddp_catastrophic), 1);
    cr_expect_eq(terminate_layer(TerminateCode::mpa_no_matching_rtr), 2);
}

// Cannot-invalidate is one error with two types; others differ in words.
Test(wire_terminate, every_code__has_its_own_words) {
    const auto alike = [](TerminateCode a, TerminateCode b) {
        return a == TerminateCode::rdmap_protection_cannot_invalidate &&
               b == TerminateCode::rdmap_cannot_invalidate;
    };
    for (const TerminateCode& a : kCodes) {
        for (const TerminateCode* b = &a + 1; b != std::end(kCodes); ++b) {
            if (!alike(a, *b)) {
                cr_expect_str_neq(text(a), text(*b));
            }
        }
    }
    cr_expect_str_eq(text(make_terminate_code(0, 7, 7)), "RDMAP: unknown error");
    cr_expect_str_eq(text(make_terminate_code(1, 7, 7)), "DDP: unknown error");
    cr_expect_str_eq(text(make_terminate_code(2, 7, 7)), "MPA: unknown error");
    cr_expect_str_eq(text(make_terminate_code(15, 7, 7)), "error of an unknown layer");
}
