// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What connections cost that are made and then left alone.
#ifndef DAT_TEST_BENCH_IDLE_H
#define DAT_TEST_BENCH_IDLE_H

#include "memory.h"
#include "util/perf/channel.h"
#include "util/perf/peer.h"

#include <cstddef>
#include <cstdint>

namespace dat::bench {

// What one side has seen.
struct Idle {
    std::uint64_t connections = 0;
    Memory made;       // as they were connected
    Memory posted;     // with as many receives posted as a queue holds
    Memory used;       // after each has sent and received as much as it may
    double socket = 0; // bytes of the kernel for a socket, by its slabs
};

// As many messages as queues hold: client to server, and back. `done` is what has completed and was
// not waited for: the peer may be at the next connection before the last send here has completed.
template <perf::Side S> void use(S& side, std::size_t connection, bool client, perf::Done& done) {
    std::uint64_t posted = 0;
    for (int half = 0; half < 2; ++half) {
        const bool sends = (half == 0) == client;
        std::uint64_t& completed = sends ? done.sent : done.received;
        while (completed < perf::kQueue) {
            if (sends && posted < perf::kQueue && side.send(connection)) {
                ++posted;
                continue;
            }
            done += side.poll(connection);
        }
        completed -= perf::kQueue;
    }
}

// The connections are made, and measured; then each posts as many receives as it may;
// then each sends and receives as much. Both sides do the same at the same time.
template <perf::Side S> Idle idle(S& side, std::uint64_t connections, perf::Peer& peer) {
    const perf::Address mine = side.open(peer.role());
    peer.tell(mine.empty() ? "none" : mine);
    const perf::Address theirs = peer.hear();
    const auto post = [&](std::size_t connection) {
        for (std::size_t i = 0; i < perf::kQueue; ++i) {
            side.receive(connection);
        }
    };
    Idle result;
    side.join(peer.role(), theirs);
    post(0); // what exists once a process is there, and has been used, by now
    perf::Done done;
    use(side, 0, peer.client(), done);
    const Footprint before = footprint();
    while (result.connections < connections) {
        side.join(peer.role(), theirs);
        ++result.connections;
    }
    const Footprint connected = footprint();
    result.made = per_endpoint(before, connected, connections);
    result.socket = per_socket(before, connected, connections);
    for (std::size_t i = 1; i <= connections; ++i) {
        post(i);
    }
    result.posted = per_endpoint(before, footprint(), connections);
    for (std::size_t i = 1; i <= connections; ++i) {
        use(side, i, peer.client(), done);
    }
    result.used = per_endpoint(before, footprint(), connections);
    return result;
}

} // namespace dat::bench

#endif
