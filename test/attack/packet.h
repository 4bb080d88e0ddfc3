// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A TCP packet over IPv4 or IPv6, as it passes: what it carries, and its checksum. May
// include: std.
#ifndef DAT_TEST_ATTACK_PACKET_H
#define DAT_TEST_ATTACK_PACKET_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dat::test {

using Packet = std::vector<std::uint8_t>; // from the IP header on

// Where the parts of a TCP packet are.
struct TcpParts {
    std::size_t tcp;     // the TCP header
    std::size_t payload; // behind its options
    std::size_t end;
    bool reset;
    bool syn;
    bool fin;
    std::size_t carried() const { return end - payload; }
};

// Nothing: it is none, or cut short, or has headers in between.
std::optional<TcpParts> parts_of(const Packet& packet);
// Inverts bit `bit` of its payload, and makes the checksum right for what it is then.
void flip_bit(Packet& packet, const TcpParts& parts, std::uint64_t bit);
// A packet as if its sender reset the connection right behind this one.
Packet reset_behind(const Packet& packet, const TcpParts& parts);

} // namespace dat::test

#endif
