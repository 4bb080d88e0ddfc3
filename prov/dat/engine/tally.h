// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an endpoint counts.
#ifndef DAT_ENGINE_TALLY_H
#define DAT_ENGINE_TALLY_H

#include "engine/link.h"
#include "engine/reactor.h"

#include <cstdint>
#include <optional>

namespace dat::engine {

// What an endpoint counts besides the numbers of its streams, since it was made.
struct Tally {
    std::uint64_t request_bytes = 0; // of requests that are outstanding or have succeeded
    std::uint64_t receive_bytes = 0; // of messages in receives that succeeded
    std::uint64_t not_ready = 0;     // a message began to wait for a receive
    std::uint64_t number = 0;        // of the endpoint in its domain
    // Of the connection at hand; kind: once it is established.
    std::optional<LinkKind> kind;
    Clock::time_point established{};
    std::uint64_t requests_before = 0; // that had completed when it began, and so on
    std::uint64_t receives_before = 0;
    std::uint64_t request_bytes_before = 0;
    std::uint64_t receive_bytes_before = 0;
    LinkFacts facts; // as the link said last

    // A connection over such a link begins, when so many requests and receives have completed.
    void begin(LinkKind link, std::uint64_t requests, std::uint64_t receives) {
        kind = link;
        established = Clock::now();
        requests_before = requests;
        receives_before = receives;
        request_bytes_before = request_bytes;
        receive_bytes_before = receive_bytes;
        facts = {};
    }
};

} // namespace dat::engine

#endif
