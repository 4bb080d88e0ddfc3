// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is measured: one pattern, at one message size, over one way of sending; and
// what comes of it. May include: std.
#ifndef DAT_TEST_BENCH_BENCH_H
#define DAT_TEST_BENCH_BENCH_H

#include <cstddef>
#include <cstdint>

namespace dat::bench {

enum class Over : std::uint8_t {
    dat, // libfabric with this provider
    tcp, // the same program with libfabric's own provider
    raw, // a non-blocking TCP socket, polled
};
inline constexpr Over kOvers[] = {Over::dat, Over::tcp, Over::raw};
const char* name(Over over);

enum class Pattern : std::uint8_t {
    ping,    // a message there and one back, one at a time
    stream,  // messages one way, many on their way at once
    connect, // a connection made and ended, one at a time
    idle,    // connections that are made and then left alone
};
const char* name(Pattern pattern);

struct Case {
    Over over = Over::dat;
    Pattern pattern = Pattern::ping;
    std::size_t size = 0;         // bytes of a message
    std::uint64_t operations = 0; // messages one way (ping: each way), or connections
};

// Bytes that an endpoint costs its process.
struct Memory {
    double rss = 0; // resident
    double pss = 0; // the same, shared pages divided among their processes
};

// What one side has seen.
struct Result {
    std::uint64_t operations = 0; // that this side has counted
    double seconds = 0;           // for all of them
    double median_s = 0;          // ping: a round trip, the median over pieces of the run
    Memory made;                  // idle: as it was connected
    Memory posted;                // idle: with as many receives posted as it may have
    Memory used;                  // idle: after each has sent and received as much as it may
    double socket = 0;            // idle: bytes of the kernel for a socket, by its slabs
};

// A benchmark cannot go on: says why and ends the process with status 1.
[[noreturn]] void die(const char* format, ...) __attribute__((format(printf, 1, 2)));

} // namespace dat::bench

#endif
