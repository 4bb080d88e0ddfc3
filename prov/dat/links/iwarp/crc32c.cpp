// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// CRC32C: by the CPU's instruction in three interleaved streams, or from
// tables, eight bytes at a time.
#include "links/iwarp/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace dat::iwarp {

namespace {

// The polynomial, with the coefficient of x^31 in the least significant bit.
constexpr std::uint32_t kPolynomial = 0x82f63b78;

// `value` times x, modulo the polynomial.
constexpr std::uint32_t times_x(std::uint32_t value) {
    return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b]: what byte b contributes to the register k + 1 bytes later.
constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) {
            value = times_x(value);
        }
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < tables.size(); ++k) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    }
    return tables;
}

constexpr Tables kTables = make_tables();

std::uint64_t load_le64(const std::byte* at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    if constexpr (std::endian::native == std::endian::big) {
        value = __builtin_bswap64(value);
    }
    return value;
}

#if defined(__x86_64__)

#define DAT_BY_INSTRUCTION 1
#define DAT_TARGET __attribute__((target("sse4.2,pclmul")))

// One load and a branch that always goes the same way: the compiler's runtime has read the
// CPU's features before.
inline bool has_instruction() {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

// The register after eight bytes more, or one.
DAT_TARGET inline std::uint64_t take(std::uint64_t crc, std::uint64_t word) {
    return _mm_crc32_u64(crc, word);
}
DAT_TARGET inline std::uint32_t take(std::uint32_t crc, std::byte byte) {
    return _mm_crc32_u8(crc, std::to_integer<std::uint8_t>(byte));
}

// The low half of the product without carries.
DAT_TARGET inline std::uint64_t product(std::uint64_t a, std::uint32_t b) {
    return static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_clmulepi64_si128(
        _mm_cvtsi64_si128(static_cast<long long>(a)), _mm_cvtsi32_si128(static_cast<int>(b)), 0)));
}

#elif defined(__aarch64__)

#define DAT_BY_INSTRUCTION 1
#define DAT_TARGET

// Of Linux's HWCAP for this machine: CRC32 and PMULL, which came with ARMv8.0 as options.
inline bool has_instruction() {
    constexpr unsigned long kWanted = 1UL << 7 | 1UL << 4;
    static const bool has = (getauxval(AT_HWCAP) & kWanted) == kWanted;
    return has;
}

// By their names: compilers have intrinsics for them only where all of the code may use them.
inline std::uint64_t take(std::uint64_t crc, std::uint64_t word) {
    asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    return crc;
}
inline std::uint32_t take(std::uint32_t crc, std::byte byte) {
    asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1"
        : "+r"(crc)
        : "r"(std::to_integer<std::uint32_t>(byte)));
    return crc;
}
inline std::uint64_t product(std::uint64_t a, std::uint32_t b) {
    std::uint64_t result;
    asm(".arch_extension crypto\n\tfmov d30, %x1\n\tfmov d31, %x2\n\t"
        "pmull v30.1q, v30.1d, v31.1d\n\tfmov %x0, d30"
        : "=r"(result)
        : "r"(a), "r"(std::uint64_t{b})
        : "v30", "v31");
    return result;
}

#endif

#if defined(DAT_BY_INSTRUCTION)

// x^bits modulo the polynomial.
constexpr std::uint32_t x_power(std::size_t bits) {
    std::uint32_t value = 0x80000000; // x^0
    for (; bits > 0; --bits) {
        value = times_x(value);
    }
    return value;
}

// Moving a register over n zero bytes is a multiplication by x^(8n). A
// carry-less product of two reflected values comes out shifted by one bit, and
// reducing its 64 bits by the CRC instruction multiplies by x^32: 33 in all.
constexpr std::uint32_t skip_factor(std::size_t bytes) { return x_power(8 * bytes - 33); }

DAT_TARGET inline std::uint64_t skip(std::uint64_t crc, std::uint32_t factor) {
    return take(std::uint64_t{0}, product(crc, factor));
}

// Three streams of Bytes each: the instruction takes three cycles and can
// start in each.
template <std::size_t Bytes>
DAT_TARGET inline std::uint64_t three_streams(std::uint64_t crc, const std::byte* at) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (const std::byte* const end = at + Bytes; at != end; at += 8) {
        crc = take(crc, load_le64(at));
        second = take(second, load_le64(at + Bytes));
        third = take(third, load_le64(at + 2 * Bytes));
    }
    constexpr std::uint32_t kTwo = skip_factor(2 * Bytes);
    constexpr std::uint32_t kOne = skip_factor(Bytes);
    return skip(crc, kTwo) ^ skip(second, kOne) ^ third;
}

// Long streams spread the cost of joining them, short ones serve what is left
// of a frame.
constexpr std::size_t kLongStream = 1024;
constexpr std::size_t kShortStream = 128;

DAT_TARGET std::uint32_t by_instruction(std::uint32_t before, const std::byte* at,
                                        std::size_t size) {
    std::uint64_t crc = before;
    for (; size >= 3 * kLongStream; size -= 3 * kLongStream, at += 3 * kLongStream) {
        crc = three_streams<kLongStream>(crc, at);
    }
    for (; size >= 3 * kShortStream; size -= 3 * kShortStream, at += 3 * kShortStream) {
        crc = three_streams<kShortStream>(crc, at);
    }
    for (; size >= 8; size -= 8, at += 8) {
        crc = take(crc, load_le64(at));
    }
    auto result = static_cast<std::uint32_t>(crc);
    for (; size > 0; --size, ++at) {
        result = take(result, *at);
    }
    return result;
}

#endif

} // namespace

std::uint32_t crc32c_portable(std::uint32_t crc, std::span<const std::byte> data) {
    const std::byte* at = data.data();
    std::size_t size = data.size();
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        const std::uint64_t word = load_le64(at) ^ crc;
        crc = 0;
        for (std::size_t k = 0; k < 8; ++k) {
            crc ^= kTables[7 - k][(word >> (8 * k)) & 0xff];
        }
    }
    for (; size > 0; --size, ++at) {
        crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
    }
    return ~crc;
}

std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> data) {
#if defined(DAT_BY_INSTRUCTION)
    if (has_instruction()) [[likely]] {
        return ~by_instruction(~crc, data.data(), data.size());
    }
#endif
    return crc32c_portable(crc, data);
}

} // namespace dat::iwarp
