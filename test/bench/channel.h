// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the patterns need of a way of sending. RawSide and FabricSide have the same
// functions; the patterns are instantiated for each, so that no virtual call is
// measured. May include: std.
#ifndef DAT_TEST_BENCH_CHANNEL_H
#define DAT_TEST_BENCH_CHANNEL_H

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace dat::bench {

inline constexpr std::size_t kQueue = 128; // operations that an endpoint may have posted
inline constexpr int kPatience_s = 30;     // for anything that has to come

// Waits by polling, as everything here does: until there() holds. False: in vain.
template <class There> bool comes(There&& there) {
    const auto begin = std::chrono::steady_clock::now();
    while (!there()) {
        if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(kPatience_s)) {
            return false;
        }
    }
    return true;
}

// Operations that have completed since they were last asked for.
struct Done {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;

    Done& operator+=(const Done& more) {
        sent += more.sent;
        received += more.received;
        return *this;
    }
};

// One process's side. Connections are numbered from 0 in the order in which they are
// made; data goes over the first unless another is named.
template <class S>
concept Side = requires(S side, std::uint16_t port, std::size_t connection) {
    // To be connected to: the port.
    { side.listen() } -> std::same_as<std::uint16_t>;
    // Makes one connection; either side waits until it is there.
    side.accept();
    side.connect(port);
    // Ends the newest connection and forgets it; ended() waits for the peer's end first.
    side.end();
    side.ended();
    // Takes one message of the size that the side was made for.
    side.receive(connection);
    // Sends one. False: it has to be tried again after poll().
    { side.send(connection) } -> std::same_as<bool>;
    // Moves things.
    { side.poll(connection) } -> std::same_as<Done>;
};

} // namespace dat::bench

#endif
