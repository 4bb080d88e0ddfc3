// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// CRC32C (Castagnoli), the checksum of an FPDU (RFC 5044 4.4, RFC 3720 12.1).
#ifndef DAT_LINKS_IWARP_CRC32C_H
#define DAT_LINKS_IWARP_CRC32C_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace dat::iwarp {

// The checksum of `data` appended to the bytes whose checksum is `crc`; begin
// with 0. Every value is a finished one (the inversions are inside), so
//     crc32c(crc32c(0, a), b) == crc32c(0, a followed by b).
// Uses the CPU's instruction where it has one. Any alignment, any thread.
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> data);

// The same, always computed from tables: for CPUs without the instruction,
// and for the tests to compare with.
std::uint32_t crc32c_portable(std::uint32_t crc, std::span<const std::byte> data);

} // namespace dat::iwarp

#endif
