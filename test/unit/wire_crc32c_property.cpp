// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// CRC32C of arbitrary bytes, in one piece and in two, against a plain one.
#include "links/iwarp/crc32c.h"

#include <criterion/criterion.h>
#include <rapidcheck.h>

#include "wire_bytes.h"

using namespace dat::iwarp;
using namespace wire;

Test(wire_crc32c, any_bytes_at_any_alignment_in_two_pieces__agree_with_the_definition) {
    cr_expect(rc::check([] {
        const auto size = *rc::gen::inRange<std::size_t>(0, 9000);
        const auto shift = *rc::gen::inRange<std::size_t>(0, 16);
        auto state = *rc::gen::arbitrary<std::uint32_t>();
        Bytes data;
        for (std::size_t i = 0; i < size; ++i) {
            state = state * 1664525 + 1013904223;
            data.push_back(static_cast<std::byte>(state >> 24));
        }
        const Bytes moved = filled(shift, 0x55) + data;
        const auto view = std::span(moved).subspan(shift);
        const auto split = *rc::gen::inRange<std::size_t>(0, size + 1);
        RC_ASSERT(crc32c(0, view) == plain_crc32c(data));
        RC_ASSERT(crc32c_portable(0, view) == plain_crc32c(data));
        RC_ASSERT(crc32c(crc32c(0, view.first(split)), view.subspan(split)) == plain_crc32c(data));
    }));
}
