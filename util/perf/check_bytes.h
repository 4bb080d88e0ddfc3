// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Whether what arrived is what was sent: bytes that differ from place to place, and
// numbers. What is wrong is a Failure.
#ifndef DAT_UTIL_PERF_CHECK_BYTES_H
#define DAT_UTIL_PERF_CHECK_BYTES_H

#include "case.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::perf {

// The byte that belongs at a place; never 0, which is what memory holds before.
inline char byte_at(std::size_t place, unsigned seed) {
    return static_cast<char>(1 + (place * 7 + place / 251 + seed * 101) % 255);
}

inline void fill_bytes(char* bytes, std::size_t size, unsigned seed) {
    for (std::size_t i = 0; i < size; ++i) {
        bytes[i] = byte_at(i, seed);
    }
}

inline void check_bytes(const char* bytes, std::size_t size, unsigned seed) {
    for (std::size_t i = 0; i < size; ++i) {
        if (bytes[i] != byte_at(i, seed)) {
            fail("wrong data: byte %zu of %zu is %d, not %d", i, size, bytes[i], byte_at(i, seed));
        }
    }
}

inline void set_number(char* at, std::uint64_t number) { std::memcpy(at, &number, sizeof number); }

inline void check_number(const char* at, std::uint64_t wanted) {
    std::uint64_t number = 0;
    std::memcpy(&number, at, sizeof number);
    if (number != wanted) {
        fail("wrong data: %llu operations added to the number, it is %llu",
             static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(number));
    }
}

} // namespace dat::perf

#endif
