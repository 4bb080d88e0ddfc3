// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Copying payload: which copies are said to be slow, and that each puts its bytes, and no other,
// where they belong.
#include "base/copy.h"

#include <algorithm>
#include <criterion/criterion.h>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace dat::base;

Test(base_copy, a_copy_is_slow_1_to_31_bytes_ahead_within_a_page) {
    for (const std::uint64_t page : {0ULL, 4096ULL, 1ULL << 40}) {
        cr_expect_not(is_slow_copy(page));
        cr_expect(is_slow_copy(page + 1));
        cr_expect(is_slow_copy(page + 31));
        cr_expect_not(is_slow_copy(page + 32));
        cr_expect_not(is_slow_copy(page + 4095));
        cr_expect_not(is_slow_copy(page - 1));
    }
}

Test(base_copy, its_bytes_and_no_other_are_copied) {
    constexpr std::size_t kRoom = 4096;
    std::vector<std::byte> from(3 * kRoom);
    for (std::size_t i = 0; i < from.size(); ++i) {
        from[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
    const std::size_t sizes[] = {
        0, 1, kShortCopy - 1, kShortCopy, kShortCopy + 1, 2 * kShortCopy, 2 * kShortCopy + 1};
    for (const std::size_t size : sizes) {
        for (std::size_t ahead = 0; ahead < 48; ++ahead) {
            std::vector<std::byte> to(3 * kRoom, std::byte{0xee});
            // Both vectors are of one size, and begin at the same place of a page, or not: so all
            // distances within 48 bytes are among these.
            const auto base =
                static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(from.data()) + kRoom -
                                          reinterpret_cast<std::uintptr_t>(to.data()) % kRoom) %
                                         kRoom);
            dat::base::copy(to.data() + base + ahead, from.data(), size);
            cr_assert(std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(size),
                                 to.begin() + static_cast<std::ptrdiff_t>(base + ahead)),
                      "%zu bytes, %zu ahead", size, ahead);
            cr_assert(std::all_of(to.begin(),
                                  to.begin() + static_cast<std::ptrdiff_t>(base + ahead),
                                  [](std::byte each) { return each == std::byte{0xee}; }));
            cr_assert(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(base + ahead + size),
                                  to.end(),
                                  [](std::byte each) { return each == std::byte{0xee}; }));
        }
    }
}
