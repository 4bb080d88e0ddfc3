// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See packet.h.
#include "packet.h"

namespace dat::test {

namespace {

constexpr std::uint8_t kTcp = 6;
constexpr std::size_t kIpv4 = 20; // the shortest header
constexpr std::size_t kIpv6 = 40;
constexpr std::size_t kTcpHeader = 20;
constexpr std::size_t kChecksum = 16; // its place in the TCP header
constexpr std::uint8_t kFin = 1;
constexpr std::uint8_t kSyn = 2;
constexpr std::uint8_t kRst = 4;
constexpr std::uint8_t kAck = 16;

bool is_v4(const Packet& packet) { return packet[0] >> 4 == 4; }

std::uint16_t get16(const Packet& packet, std::size_t at) {
    return static_cast<std::uint16_t>(packet[at] << 8 | packet[at + 1]);
}

std::uint32_t get32(const Packet& packet, std::size_t at) {
    return static_cast<std::uint32_t>(get16(packet, at)) << 16 | get16(packet, at + 2);
}

void put16(Packet& packet, std::size_t at, std::size_t value) {
    packet[at] = static_cast<std::uint8_t>(value >> 8);
    packet[at + 1] = static_cast<std::uint8_t>(value);
}

void put32(Packet& packet, std::size_t at, std::uint32_t value) {
    put16(packet, at, value >> 16);
    put16(packet, at + 2, value & 0xffff);
}

// The sum of 16-bit words from `from` to `to` (RFC 1071), not inverted.
std::uint64_t words(const Packet& packet, std::size_t from, std::size_t to) {
    std::uint64_t sum = 0;
    for (; from + 1 < to; from += 2)
        sum += get16(packet, from);
    return from < to ? sum + (static_cast<std::uint64_t>(packet[from]) << 8) : sum;
}

std::uint16_t folded(std::uint64_t sum) {
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

// Of the TCP part, with the addresses (RFC 9293 3.1, RFC 8200 8.1).
void seal(Packet& packet, std::size_t tcp, std::size_t end) {
    put16(packet, tcp + kChecksum, 0);
    const std::uint64_t addresses = is_v4(packet) ? words(packet, 12, 20) : words(packet, 8, 40);
    put16(packet, tcp + kChecksum,
          folded(addresses + kTcp + (end - tcp) + words(packet, tcp, end)));
}

} // namespace

std::optional<TcpParts> parts_of(const Packet& packet) {
    if (packet.size() < kIpv4 + kTcpHeader)
        return std::nullopt;
    TcpParts parts{};
    if (is_v4(packet)) {
        const bool fragment = (get16(packet, 6) & 0x3fff) != 0;
        if (packet[9] != kTcp || fragment)
            return std::nullopt;
        parts.tcp = std::size_t{4} * (packet[0] & 15);
        parts.end = get16(packet, 2);
    } else {
        if (packet.size() < kIpv6 + kTcpHeader || packet[6] != kTcp)
            return std::nullopt;
        parts.tcp = kIpv6;
        parts.end = kIpv6 + get16(packet, 4);
    }
    if (parts.end > packet.size() || parts.tcp + kTcpHeader > parts.end)
        return std::nullopt;
    parts.payload = parts.tcp + std::size_t{4} * (packet[parts.tcp + 12] >> 4);
    if (parts.payload > parts.end)
        return std::nullopt;
    const std::uint8_t flags = packet[parts.tcp + 13];
    parts.fin = (flags & kFin) != 0;
    parts.syn = (flags & kSyn) != 0;
    parts.reset = (flags & kRst) != 0;
    return parts;
}

void flip_bit(Packet& packet, const TcpParts& parts, std::uint64_t bit) {
    packet[parts.payload + bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    seal(packet, parts.tcp, parts.end);
}

Packet reset_behind(const Packet& packet, const TcpParts& parts) {
    const std::size_t end = parts.tcp + kTcpHeader;
    Packet reset(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(end));
    const std::size_t next = parts.carried() + parts.syn + parts.fin;
    put32(reset, parts.tcp + 4, get32(packet, parts.tcp + 4) + static_cast<std::uint32_t>(next));
    reset[parts.tcp + 12] = kTcpHeader / 4 << 4;
    reset[parts.tcp + 13] = kRst | kAck;
    put16(reset, parts.tcp + 14, 0); // window
    put16(reset, parts.tcp + 18, 0); // urgent pointer
    if (is_v4(reset)) {
        put16(reset, 2, end);
        put16(reset, 10, 0);
        put16(reset, 10, folded(words(reset, 0, parts.tcp)));
    } else {
        put16(reset, 4, end - parts.tcp);
    }
    seal(reset, parts.tcp, end);
    return reset;
}

} // namespace dat::test
