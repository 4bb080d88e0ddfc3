// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// FPDU framing (RFC 5044 4): sizes, padding, CRC.
#include <criterion/criterion.h>

#include "links/iwarp/mpa.h"
#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

// RFC 5044 4.1: length field, ULPDU and pad are a multiple of 4, then the CRC.
Test(wire_fpdu, pad_and_size__follow_the_ulpdu) {
    struct Case {
        std::size_t ulpdu;
        std::size_t pad;
        std::size_t size;
    };
    for (const Case& c : {Case{0, 2, 8}, Case{1, 1, 8}, Case{2, 0, 8}, Case{3, 3, 12},
                          Case{4, 2, 12}, Case{14, 0, 20}, Case{18, 0, 24}, Case{1454, 0, 1460},
                          Case{65534, 0, 65540}, Case{65535, 3, 65544}}) {
        cr_expect_eq(fpdu_pad(c.ulpdu), c.pad, "%zu", c.ulpdu);
        cr_expect_eq(fpdu_size(c.ulpdu), c.size, "%zu", c.ulpdu);
    }
}

// RFC 5044 4.5: EMSS - (6 + EMSS mod 4) where markers are off.
Test(wire_fpdu, largest_ulpdu__fills_the_segment_and_no_more) {
    cr_expect_eq(fpdu_max_ulpdu(0), 0u);
    cr_expect_eq(fpdu_max_ulpdu(7), 0u);
    cr_expect_eq(fpdu_max_ulpdu(8), 2u);
    cr_expect_eq(fpdu_max_ulpdu(1460), 1454u);
    cr_expect_eq(fpdu_max_ulpdu(65543), 65534u);
    cr_expect_eq(fpdu_max_ulpdu(65544), 65535u);
    cr_expect_eq(fpdu_max_ulpdu(1 << 20), 65535u);
    for (std::size_t space = 8; space < 66000; ++space) {
        const std::size_t ulpdu = fpdu_max_ulpdu(space);
        cr_assert(fpdu_size(ulpdu) <= space, "%zu", space);
        cr_assert(ulpdu == kFpduMaxUlpdu || fpdu_size(ulpdu + 1) > space, "%zu", space);
        if (space < 65544) {
            cr_assert_eq(ulpdu, space - (6 + space % 4), "%zu", space);
        }
    }
}

// An FPDU of length 0 is length field, two pad bytes and the CRC of these four
// zero bytes, 0x48674bc7, sent least significant byte first.
Test(wire_fpdu, empty_fpdu__is_eight_known_bytes) {
    Bytes frame(8, std::byte{0xee});
    store_be<std::uint16_t>(frame.data(), 0);
    cr_expect_eq(finish_fpdu(frame.data(), true), frame.data() + 8);
    cr_expect_eq(frame, bytes({0x00, 0x00, 0x00, 0x00, 0xc7, 0x4b, 0x67, 0x48}));
    cr_expect(fpdu_crc_ok(frame.data()));
}

// RFC 5044 4.4: the order of the CRC's bytes is that of RFC 3720 B.4, where
// the CRC of 32 bytes of ones goes out as 43 ab a8 62.
Test(wire_fpdu, crc_field__has_the_byte_order_of_iscsi) {
    Bytes field(4);
    cr_expect_eq(store_fpdu_crc(field.data(), crc32c(0, filled(32, 0xff))), field.data() + 4);
    cr_expect_eq(field, bytes({0x43, 0xab, 0xa8, 0x62}));
    cr_expect_eq(load_fpdu_crc(field.data()), 0x62a8ab43u);
}

Test(wire_fpdu, without_crc__the_field_is_there_and_zero) {
    Bytes frame = bytes({0x00, 0x03, 'a', 'b', 'c'}) + filled(7, 0xee) + filled(1, 0x99);
    cr_expect_eq(finish_fpdu(frame.data(), false), frame.data() + 12);
    cr_expect_eq(frame, bytes({0, 3, 'a', 'b', 'c', 0, 0, 0, 0, 0, 0, 0, 0x99}));
}

Test(wire_fpdu, every_pad__writes_its_bytes_and_nothing_behind) {
    for (std::size_t ulpdu = 0; ulpdu < 9; ++ulpdu) {
        for (const bool with_crc : {false, true}) {
            Bytes frame(fpdu_size(ulpdu) + 1, std::byte{0xee});
            store_be(frame.data(), static_cast<std::uint16_t>(ulpdu));
            std::byte* end = finish_fpdu(frame.data(), with_crc);
            cr_expect_eq(end, frame.data() + fpdu_size(ulpdu));
            cr_expect_eq(*end, std::byte{0xee});
            for (std::size_t i = 0; i < fpdu_pad(ulpdu); ++i) {
                cr_expect_eq(frame[2 + ulpdu + i], std::byte{0});
            }
            cr_expect_eq(fpdu_crc_ok(frame.data()), with_crc);
        }
    }
}

// The pad is covered by the CRC as it came, whatever its value.
Test(wire_fpdu, pad_of_a_peer__may_have_any_value) {
    Bytes frame = bytes({0x00, 0x01, 0x61, 0x77});
    const std::uint32_t crc = crc32c(0, frame);
    frame.resize(8);
    store_fpdu_crc(&frame[4], crc);
    cr_expect(fpdu_crc_ok(frame.data()));
}

Test(wire_fpdu, each_flipped_bit__spoils_the_crc) {
    Bytes frame = bytes({0x00, 0x05, 'h', 'e', 'l', 'l', 'o'}) + filled(5, 0);
    finish_fpdu(frame.data(), true);
    cr_assert(fpdu_crc_ok(frame.data()));
    // Not the length field: it says where the CRC is.
    for (std::size_t bit = 16; bit < 8 * frame.size(); ++bit) {
        frame[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        cr_expect_not(fpdu_crc_ok(frame.data()), "bit %zu", bit);
        frame[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
}
