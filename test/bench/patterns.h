// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The patterns, over any Side. Each is one function for the server and one for the
// client. May include: test/bench, std.
#ifndef DAT_TEST_BENCH_PATTERNS_H
#define DAT_TEST_BENCH_PATTERNS_H

#include "bench.h"
#include "channel.h"
#include "memory.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dat::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One message back for each that comes, until there were `rounds` in all; `done` counts
// on from call to call. There is a receive posted ahead, so that the next one is posted
// while the answer is on its way. The side whose message is first says so.
template <Side S> void ping_pong(S& side, Done& done, std::uint64_t rounds, bool first) {
    for (std::uint64_t round = done.sent; round < rounds; ++round) {
        for (int half = 0; half < 2; ++half) {
            const bool sends = (half == 0) == first;
            while (sends ? !side.send(0) : done.received <= round) {
                done += side.poll(0);
            }
            if (sends) {
                side.receive(0);
            }
        }
    }
    while (done.sent < rounds) {
        done += side.poll(0);
    }
}

// In pieces, so that a moment in which the machine did something else moves the median
// little.
template <Side S> Result ping(S& side, const Case& what, bool client) {
    constexpr std::uint64_t kPieces = 25;
    Done done;
    side.receive(0);
    side.receive(0);
    const std::uint64_t warm = what.operations / 10 + 1; // until caches and queues are
    ping_pong(side, done, warm, client);
    const std::uint64_t piece = std::max<std::uint64_t>(what.operations / kPieces, 1);
    Result result;
    std::vector<double> times;
    const auto begin = Clock::now();
    while (result.operations < what.operations) {
        const auto from = Clock::now();
        const std::uint64_t rounds = std::min(piece, what.operations - result.operations);
        result.operations += rounds;
        ping_pong(side, done, warm + result.operations, client);
        times.push_back(seconds_since(from) / static_cast<double>(rounds));
    }
    result.seconds = seconds_since(begin);
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    result.median_s = *middle;
    return result;
}

// Sends until `until` messages are sent in all.
template <Side S> void send_many(S& side, Done& done, std::uint64_t until) {
    for (std::uint64_t posted = done.sent; done.sent < until;) {
        while (posted < until && posted - done.sent < kQueue && side.send(0)) {
            ++posted;
        }
        done += side.poll(0);
    }
}

// Receives until `until` messages are received in all, and keeps as many posted as
// the queue holds or as come, `all`.
template <Side S> void receive_many(S& side, Done& done, std::uint64_t until, std::uint64_t all) {
    while (done.received < until) {
        const Done now = side.poll(0);
        for (std::uint64_t i = 0; i < now.received && done.received + i + kQueue < all; ++i) {
            side.receive(0);
        }
        done += now;
    }
}

// One way, ended by a message back when all has arrived.
template <Side S> Result stream(S& side, const Case& what, bool client) {
    const std::uint64_t warm = std::min<std::uint64_t>(what.operations / 10 + 1, kQueue);
    const std::uint64_t all = warm + what.operations;
    Done done;
    Result result;
    if (client) {
        side.receive(0);
        send_many(side, done, warm);
        const auto begin = Clock::now();
        send_many(side, done, all);
        receive_many(side, done, 1, 1);
        result.seconds = seconds_since(begin);
    } else {
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(kQueue, all); ++i) {
            side.receive(0);
        }
        receive_many(side, done, warm, all);
        const auto begin = Clock::now();
        receive_many(side, done, all, all);
        send_many(side, done, 1);
        result.seconds = seconds_since(begin);
    }
    result.operations = what.operations;
    return result;
}

// The server ends each connection, the client waits for that: so a connection that
// counts has been made and ended on either side.
template <Side S> Result connects(S& side, const Case& what, bool client, std::uint16_t port) {
    Result result;
    const auto begin = Clock::now();
    for (; result.operations < what.operations; ++result.operations) {
        if (client) {
            side.connect(port);
            side.ended();
        } else {
            side.accept();
            side.end();
        }
    }
    result.seconds = seconds_since(begin);
    return result;
}

// As many messages as queues hold: client to server, and back.
template <Side S> void use(S& side, std::size_t connection, bool client) {
    Done done;
    std::uint64_t posted = 0;
    for (int half = 0; half < 2; ++half) {
        const bool sends = (half == 0) == client;
        while (sends ? done.sent < kQueue : done.received < kQueue) {
            if (sends && posted < kQueue && side.send(connection)) {
                ++posted;
                continue;
            }
            done += side.poll(connection);
        }
    }
}

// The connections are made, and measured; then each posts as many receives as it may;
// then each sends and receives as much. Both sides do the same at the same time.
template <Side S> Result idle(S& side, const Case& what, bool client, std::uint16_t port) {
    const auto make = [&] { client ? side.connect(port) : side.accept(); };
    const auto post = [&](std::size_t connection) {
        for (std::size_t i = 0; i < kQueue; ++i) {
            side.receive(connection);
        }
    };
    Result result;
    make(); // what exists once a process is there, and has been used, by now
    post(0);
    use(side, 0, client);
    const Footprint before = footprint();
    while (result.operations < what.operations) {
        make();
        ++result.operations;
    }
    const Footprint connected = footprint();
    result.made = per_endpoint(before, connected, what.operations);
    result.socket = per_socket(before, connected, what.operations);
    for (std::size_t i = 1; i <= what.operations; ++i) {
        post(i);
    }
    result.posted = per_endpoint(before, footprint(), what.operations);
    for (std::size_t i = 1; i <= what.operations; ++i) {
        use(side, i, client);
    }
    result.used = per_endpoint(before, footprint(), what.operations);
    return result;
}

} // namespace dat::bench

#endif
