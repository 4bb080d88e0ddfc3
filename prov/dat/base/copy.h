// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Copying payload. From some 2 KiB on C libraries, and the kernel, copy by "rep movsb". AMD's
// processors since Zen 3 do that 20 times slower where the destination is 1 to 31 bytes ahead of
// the source, counted within a page, as behind a header of 20 bytes or in memory that malloc() has
// given: 2 to 3 bytes a nanosecond. See test/bench/README.md, "Copies that are slow".
#ifndef DAT_BASE_COPY_H
#define DAT_BASE_COPY_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::base {

// Bytes that the C library copies in another way than that.
inline constexpr std::size_t kShortCopy = 2048;

// Whether a longer copy is a slow one; `ahead`: by so much the destination is ahead of the source.
constexpr bool is_slow_copy(std::uint64_t ahead) {
    const std::uint64_t in_page = ahead % 4096;
    return in_page > 0 && in_page < 32;
}
inline bool is_slow_copy(const void* to, const void* from) {
    return is_slow_copy(reinterpret_cast<std::uintptr_t>(to) -
                        reinterpret_cast<std::uintptr_t>(from));
}

// memcpy(3).
inline void copy(std::byte* to, const std::byte* from, std::size_t size) {
    if (size > kShortCopy && is_slow_copy(to, from)) [[unlikely]] {
        std::size_t piece = kShortCopy;
        asm("" : "+r"(piece)); // a compiler that knows it has "rep movsq" in place of the library
        for (; size > piece; size -= piece) {
            std::memcpy(to, from, piece);
            to += piece;
            from += piece;
        }
    }
    std::memcpy(to, from, size);
}

} // namespace dat::base

#endif
