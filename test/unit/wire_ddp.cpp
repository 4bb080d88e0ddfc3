// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// DDP headers (RFC 5041 4).
#include "links/iwarp/ddp.h"

#include <criterion/criterion.h>

#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

namespace {

template <class Header> Bytes encode(const Header& header, std::size_t size) {
    Bytes out(size + 1, std::byte{0xee});
    const std::byte* end = write_ddp_header(out.data(), header);
    cr_assert_eq(end, out.data() + size);
    cr_assert_eq(out.back(), std::byte{0xee});
    out.pop_back();
    return out;
}

} // namespace

// RFC 5041 4.1, 4.2: T, L, four reserved bits, version 1; the upper layer's
// octet; STag; TO.
Test(wire_ddp, tagged_header__is_as_the_rfc_draws_it) {
    const DdpTagged tagged{
        .ulp_octet = 0x40, .last = true, .stag = 0x01020304, .to = 0x1112131415161718};
    const Bytes expected =
        bytes({0xc1, 0x40, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18});
    cr_assert_eq(encode(tagged, kDdpTaggedHeaderSize), expected);

    DdpHeader header;
    cr_assert_eq(decode_ddp_header(expected, header), DdpError::none);
    const DdpHeader wanted{.tagged = true,
                           .last = true,
                           .ulp_octet = 0x40,
                           .size = 14,
                           .stag = 0x01020304,
                           .to = 0x1112131415161718};
    cr_expect(header == wanted);
}

// RFC 5041 4.3: the upper layer has five bytes; QN, MSN, MO.
Test(wire_ddp, untagged_header__is_as_the_rfc_draws_it) {
    const DdpUntagged untagged{.ulp_octet = 0x43,
                               .last = false,
                               .ulp_word = 0xa1a2a3a4,
                               .queue = 2,
                               .msn = 0x01020304,
                               .mo = 0x11121314};
    const Bytes expected = bytes({0x01, 0x43, 0xa1, 0xa2, 0xa3, 0xa4, 0x00, 0x00, 0x00, 0x02, 0x01,
                                  0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14});
    cr_assert_eq(encode(untagged, kDdpUntaggedHeaderSize), expected);

    DdpHeader header;
    cr_assert_eq(decode_ddp_header(expected, header), DdpError::none);
    const DdpHeader wanted{.ulp_octet = 0x43,
                           .size = 18,
                           .ulp_word = 0xa1a2a3a4,
                           .queue = 2,
                           .msn = 0x01020304,
                           .mo = 0x11121314};
    cr_expect(header == wanted);
}

Test(wire_ddp, header_cut_anywhere__is_too_short) {
    const Bytes tagged = encode(DdpTagged{}, kDdpTaggedHeaderSize);
    const Bytes untagged = encode(DdpUntagged{}, kDdpUntaggedHeaderSize);
    DdpHeader header;
    for (std::size_t size = 0; size < 14; ++size) {
        cr_expect_eq(decode_ddp_header(cut(tagged, size), header), DdpError::too_short);
    }
    cr_expect_eq(decode_ddp_header(cut(tagged, 14), header), DdpError::none);
    for (std::size_t size = 0; size < 18; ++size) {
        cr_expect_eq(decode_ddp_header(cut(untagged, size), header), DdpError::too_short);
    }
    cr_expect_eq(decode_ddp_header(cut(untagged, 18), header), DdpError::none);
}

// RFC 5041 7.1: another version than 1 is an error of the model used.
Test(wire_ddp, other_versions__are_errors_of_their_model) {
    DdpHeader header;
    for (unsigned version = 0; version < 4; ++version) {
        const Bytes tagged = bytes({0x80 | version}) + filled(13, 0);
        const Bytes untagged = bytes({version}) + filled(17, 0);
        cr_expect_eq(decode_ddp_header(tagged, header),
                     version == 1 ? DdpError::none : DdpError::tagged_version);
        cr_expect_eq(decode_ddp_header(untagged, header),
                     version == 1 ? DdpError::none : DdpError::untagged_version);
    }
}

// RFC 5041 4.1: reserved bits are not checked.
Test(wire_ddp, reserved_bits__are_ignored) {
    DdpHeader plain;
    DdpHeader noisy;
    cr_assert_eq(decode_ddp_header(bytes({0x41}) + filled(17, 0x21), plain), DdpError::none);
    cr_assert_eq(decode_ddp_header(bytes({0x7d}) + filled(17, 0x21), noisy), DdpError::none);
    cr_expect(plain == noisy);
}
