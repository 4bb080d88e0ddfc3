// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a peer of bytes sees of the order of segments while this side has both to send, its own
// requests and the responses that the peer asked for, and the peer reads slowly.
#include "engine_attack.h"

#include <array>

using namespace engine_test;
using dat::engine::OpCode;
using dat::iwarp::Link;

namespace {

constexpr unsigned kWrite = 0, kResponse = 2, kSend = 3;
constexpr std::uint32_t kSource = 20; // the key of what the peer reads

bool is_last(const Bytes& ulpdu) {
    return (std::to_integer<unsigned>(ulpdu[0]) & 0x40) != 0; // L, RFC 5041 4
}

// Which messages had segments of which others between their first and their last one.
struct Between {
    bool writes = false;    // within a Read Response
    bool responses = false; // within an RDMA Write
    bool sends = false;     // within a Read Response
};

// Posts writes and sends by turns, asks for two reads, and looks at all that comes.
Between between(Peer kind) {
    constexpr std::size_t kLarge = 4 << 20; // more than the sockets take
    constexpr int kEach = 2;
    Attacked w(kind);
    Bytes memory = wire::filled(kLarge, 0xab);
    const std::uint64_t to = 0x1000;
    cr_assert(w.domain.regions().add(
        kSource, {memory.data(), kLarge, to, &Side::zone, dat::engine::kRemoteRead}));
    // A foreign peer has sent nothing yet, so all of these are still here when it asks.
    for (int i = 0; i < kEach; ++i) {
        w.side.rma<Link>(OpCode::write, memory, 7, 0);
        w.side.send<Link>(std::span(memory).first(kLarge / 2));
    }
    Bytes asks;
    for (std::uint32_t msn = 1; msn <= kEach; ++msn) {
        asks = asks + w.frame(read_request(msn, kLarge, kSource, to));
    }
    w.write(asks);

    Between seen;
    std::array<bool, 4> open{}; // by opcode: the message that has begun is not whole
    int left = 3 * kEach;
    cr_assert(w.run([&] {
        for (std::optional<Came> came; (came = w.raw.take_frame());) {
            const unsigned opcode = came->opcode();
            if (opcode != kWrite && opcode != kResponse && opcode != kSend) {
                continue;
            }
            seen.writes |= opcode == kWrite && open[kResponse];
            seen.responses |= opcode == kResponse && open[kWrite];
            seen.sends |= opcode == kSend && open[kResponse];
            open[opcode] = !is_last(came->ulpdu);
            left -= open[opcode] ? 0 : 1;
        }
        w.settle(); // the socket is full before more is taken from it
        return left == 0;
    }));
    w.domain.regions().remove(kSource);
    return seen;
}

} // namespace

// RFC 5040 5.1 and 5.4 have messages apart by their queue only, and tagged ones have none: one is
// whole before the next begins. What is untagged may stand between.
Test(engine_turns, a_tagged_message_is_whole_before_the_next_towards_a_foreign_peer,
     .timeout = 60) {
    const Between seen = between(Peer::foreign);
    cr_assert(!seen.writes && !seen.responses && seen.sends, "%d %d %d", seen.writes,
              seen.responses, seen.sends);
}

// It can tell them apart by opcode and steering tag: neither waits for the other.
Test(engine_turns, requests_and_responses_take_turns_towards_a_dat_peer, .timeout = 60) {
    const Between seen = between(Peer::dat);
    cr_assert(seen.writes && seen.responses && seen.sends, "%d %d %d", seen.writes, seen.responses,
              seen.sends);
}
