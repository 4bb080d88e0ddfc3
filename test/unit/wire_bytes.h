// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Byte strings for the tests of the wire formats.
#ifndef DAT_TEST_UNIT_WIRE_BYTES_H
#define DAT_TEST_UNIT_WIRE_BYTES_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace wire {

using Bytes = std::vector<std::byte>;

inline Bytes bytes(std::initializer_list<unsigned> values) {
    Bytes out;
    out.reserve(values.size());
    for (const unsigned value : values) {
        out.push_back(static_cast<std::byte>(value));
    }
    return out;
}

inline Bytes chars(std::string_view text) {
    Bytes out;
    for (const char c : text) {
        out.push_back(static_cast<std::byte>(c));
    }
    return out;
}

inline Bytes filled(std::size_t size, unsigned value) {
    return Bytes(size, static_cast<std::byte>(value));
}

inline Bytes operator+(Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

inline Bytes from_octets(const std::vector<std::uint8_t>& octets) {
    Bytes out;
    for (const std::uint8_t octet : octets) {
        out.push_back(static_cast<std::byte>(octet));
    }
    return out;
}

// The first `size` bytes in memory of their own, so that a sanitizer sees
// every read beyond them.
inline Bytes cut(std::span<const std::byte> whole, std::size_t size) {
    Bytes out;
    out.reserve(size);
    out.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    return out;
}

inline Bytes copy(std::span<const std::byte> view) { return cut(view, view.size()); }

// CRC32C bit by bit, from its definition (RFC 3720 12.1).
inline std::uint32_t plain_crc32c(const Bytes& data) {
    std::uint32_t crc = 0xffffffff;
    for (const std::byte byte : data) {
        crc ^= std::to_integer<std::uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
        }
    }
    return ~crc;
}

} // namespace wire

#endif
