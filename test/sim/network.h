// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The simulated network: connections with two in-order lanes a direction,
// messages and timers. Plain values.
#ifndef DAT_SIM_NETWORK_H
#define DAT_SIM_NETWORK_H

#include "core/endpoint.h"

#include <array>
#include <cstdint>
#include <vector>

namespace dat::sim {

inline constexpr int kHosts = 2;
inline int other(int host) { return 1 - host; }

enum class MessageKind : std::uint8_t {
    request,   // connection request
    accept,    // the passive Consumer accepted
    reject,    // the passive Consumer rejected
    refused,   // nobody listens, or no room
    ready,     // the active side's ready-to-receive
    withdraw,  // the active side gave up before it was established (EP-50)
    send,      // a message; seq of the sender's request
    send_long, // one longer than any receive (DTO-9)
    ack,       // every message up to seq has been placed (U-61)
    fin,       // end of this direction
    terminate, // a protocol or DTO error ended the connection
    cut,       // not from the peer: the connection broke visibly
};

struct Message {
    MessageKind kind;
    std::uint64_t seq;
    std::int64_t due_us; // earliest delivery; ignored in an untimed world

    friend bool operator==(const Message&, const Message&) = default;
};

// One host's end of a connection.
struct Side {
    bool open = true;   // may still send
    bool bound = false; // an attempt of this host's endpoint uses it
    core::Attempt attempt{};
    bool peer_closed = false;     // the peer's end waits behind `staged` (U-67)
    bool drained = false;         // this side ended gracefully, its requests delivered
    bool told_end = false;        // the network delivered the peer's end here
    bool accepted = false;        // what the Consumer of this side did: accept
    bool rejected = false;        // ... reject
    bool asked_end = false;       // ... disconnect
    bool up = false;              // ESTABLISHED was raised here
    std::vector<Message> staged;  // messages for which no receive is posted
    std::uint32_t unacked = 0;    // messages sent that the peer has not placed
    std::uint64_t sends_done = 0; // sends completed as success
    std::uint64_t recvs_done = 0; // receives completed as success

    friend bool operator==(const Side&, const Side&) = default;
};

using Lane = std::vector<Message>; // front first

struct Conn {
    std::uint32_t id = 0; // never reused in one world
    int initiator = 0;
    bool lost = false; // everything sent vanishes
    std::array<Side, kHosts> side{};
    // [sending host][0: connection management, 1: data]. In a world without
    // separate lanes all goes through lane 1.
    std::array<std::array<Lane, 2>, kHosts> lane{};

    bool silent() const {
        return lane[0][0].empty() && lane[0][1].empty() && lane[1][0].empty() && lane[1][1].empty();
    }
    friend bool operator==(const Conn&, const Conn&) = default;
};

enum class TimerKind : std::uint8_t {
    connect,   // EP-44
    handshake, // U-65
    rnr,       // U-9, receiver not ready
    end_grace, // U-67
    keepalive, // U-65; armed once the connection has been lost
};

struct Timer {
    TimerKind kind;
    int host;
    std::uint32_t conn;
    core::Attempt attempt; // EP-67: the attempt that it belongs to
    std::int64_t due_us;

    friend bool operator==(const Timer&, const Timer&) = default;
};

} // namespace dat::sim

#endif
