// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// CRC32C: published vectors, and both implementations against a plain one.
#include "links/iwarp/crc32c.h"

#include <criterion/criterion.h>

#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

namespace {

void expect(const Bytes& data, std::uint32_t crc) {
    cr_expect_eq(crc32c(0, data), crc, "instruction: %08x", crc32c(0, data));
    cr_expect_eq(crc32c_portable(0, data), crc, "tables: %08x", crc32c_portable(0, data));
    cr_expect_eq(plain_crc32c(data), crc, "definition: %08x", plain_crc32c(data));
}

Bytes counting(int from, int step) {
    Bytes out;
    for (int i = 0; i < 32; ++i) {
        out.push_back(static_cast<std::byte>(from + i * step));
    }
    return out;
}

} // namespace

// RFC 3720 B.4. The appendix lists the bytes as they are sent, the least
// significant one first: aa 36 91 8a is 0x8a9136aa.
Test(wire_crc32c, rfc3720_vectors__all_implementations_agree) {
    expect(filled(32, 0x00), 0x8a9136aa);
    expect(filled(32, 0xff), 0x62a8ab43);
    expect(counting(0, 1), 0x46dd794e);
    expect(counting(31, -1), 0x113fdb5c);
    expect(bytes({0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                  0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
                  0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
                  0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00}),
           0xd9963a56);
}

// The check value that catalogues give for CRC-32C.
Test(wire_crc32c, check_string__has_the_catalogue_value) { expect(chars("123456789"), 0xe3069283); }

Test(wire_crc32c, no_bytes__leave_the_value_alone) {
    cr_expect_eq(crc32c(0, {}), 0u);
    cr_expect_eq(crc32c(0x12345678, {}), 0x12345678u);
    cr_expect_eq(crc32c_portable(0x12345678, {}), 0x12345678u);
}

// Lengths on both sides of every block size inside: 8, 3 x 128, 3 x 1024.
Test(wire_crc32c, every_length_around_a_block__agrees_with_the_definition) {
    Bytes data;
    for (unsigned i = 0; i < 2 * 3072 + 64; ++i) {
        data.push_back(static_cast<std::byte>(i * 2654435761u >> 13));
    }
    for (const std::size_t middle : {0u, 8u, 16u, 384u, 768u, 3072u, 3072u + 384u, 6144u}) {
        for (std::size_t size = middle < 9 ? 0 : middle - 9; size < middle + 10; ++size) {
            const Bytes part = cut(data, size);
            cr_assert_eq(crc32c(0, part), plain_crc32c(part), "%zu bytes", size);
            cr_assert_eq(crc32c_portable(0, part), plain_crc32c(part), "%zu bytes", size);
        }
    }
}
