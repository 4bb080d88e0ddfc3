// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Loads and stores of unsigned integers in network byte order, at any
// alignment.
#ifndef DAT_LINKS_IWARP_BIG_ENDIAN_H
#define DAT_LINKS_IWARP_BIG_ENDIAN_H

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::iwarp {

inline std::uint8_t byte_swap(std::uint8_t value) { return value; }
inline std::uint16_t byte_swap(std::uint16_t value) { return __builtin_bswap16(value); }
inline std::uint32_t byte_swap(std::uint32_t value) { return __builtin_bswap32(value); }
inline std::uint64_t byte_swap(std::uint64_t value) { return __builtin_bswap64(value); }

// Reads sizeof(T) bytes at `at`.
template <std::unsigned_integral T> inline T load_be(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    if constexpr (std::endian::native == std::endian::little) {
        value = byte_swap(value);
    }
    return value;
}

// Writes sizeof(T) bytes at `at` and returns the place behind them.
template <std::unsigned_integral T> inline std::byte* store_be(std::byte* at, T value) {
    if constexpr (std::endian::native == std::endian::little) {
        value = byte_swap(value);
    }
    std::memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

} // namespace dat::iwarp

#endif
