// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the patterns need of a way of moving data. RawSide and FabricSide have the same
// functions; the patterns are instantiated for each, so that no virtual call is
// measured.
#ifndef DAT_UTIL_PERF_CHANNEL_H
#define DAT_UTIL_PERF_CHANNEL_H

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dat::perf {

inline constexpr std::size_t kQueue = 128; // operations that are posted at most
inline constexpr int kPatience_s = 30;     // for anything that has to come

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Waits by polling until there() holds. False: in vain.
template <class There> bool comes(There&& there) {
    const auto begin = Clock::now();
    while (!there()) {
        if (seconds_since(begin) > kPatience_s) {
            return false;
        }
    }
    return true;
}

// Operations that have completed since they were last asked for.
struct Done {
    std::uint64_t sent = 0;     // sends, RDMA and atomic operations of this side
    std::uint64_t received = 0; // messages

    Done& operator+=(const Done& more) {
        sent += more.sent;
        received += more.received;
        return *this;
    }
};

// What a peer has to know to reach a side, in the way's own form.
using Address = std::string;

// Memory that the peer may read, write and add to.
struct Region {
    std::uint64_t address = 0;
    std::uint64_t key = 0;
};

enum class Role : bool { server, client };

// One process's side. Connections are numbered from 0 in the order in which they are
// made; data goes over the first unless another is named. Failures are thrown.
template <class S>
concept Side = requires(S side, Role role, const Address& peer, const Region& remote,
                        std::size_t connection, std::span<Done> done) {
    // Opens what exists once, and gives what the peer has to know.
    { side.open(role) } -> std::same_as<Address>;
    // Makes one connection with the peer, which does the same.
    side.join(role, peer);
    // Ends the newest connection and forgets it; ended() waits for the peer's end first.
    side.end();
    side.ended();
    // How many operations may be posted at once, in each direction.
    { side.depth() } -> std::same_as<std::size_t>;
    // Takes one message of the size that the side was made for; of a side with a bulk size, what
    // goes over the second connection has that size.
    side.receive(connection);
    // Posts one message, one RDMA operation of that size, or one fetch-and-add of 1.
    // False: it has to be tried again after poll().
    { side.send(connection) } -> std::same_as<bool>;
    { side.write(remote) } -> std::same_as<bool>;
    { side.read(remote) } -> std::same_as<bool>;
    { side.add(remote) } -> std::same_as<bool>;
    // What the peer may reach: the memory that messages come into.
    { side.region() } -> std::same_as<Region>;
    // Moves things. poll() of a side that waits sleeps until something has completed, or
    // for a second; look() never sleeps.
    { side.poll(connection) } -> std::same_as<Done>;
    { side.look(connection) } -> std::same_as<Done>;
    // poll() of several connections at once: adds to done[N] what has completed on connection N.
    // As many as the side was made for.
    side.poll_each(done);
    // The memory that goes out, and that what comes in is put into.
    { side.out() } -> std::same_as<char*>;
    { side.in() } -> std::same_as<char*>;
};

} // namespace dat::perf

#endif
