// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Runs one case, in two processes of their own or, to count instructions, in this one.
// May include: test/bench, std.
#ifndef DAT_TEST_BENCH_RUN_CASE_H
#define DAT_TEST_BENCH_RUN_CASE_H

#include "bench.h"

#include <cstddef>
#include <cstdint>

namespace dat::bench {

struct Results {
    Result server;
    Result client;
};

// A server and a client process, each on a processor of its own where there are two.
// Blocks until both have ended; ends this process where one of them failed.
Results run_case(const Case& what);

// Both ends in this thread: `operations` messages one way, in bursts of so many sends
// behind as many receives, each taken from the completion queues. Without threads of
// the provider (FI_PROGRESS_MANUAL), so that every run makes the same calls, whatever
// the machine does meanwhile. The way is Over::dat or Over::tcp.
Result run_in_one(Over over, std::size_t size, std::size_t burst, std::uint64_t operations);

} // namespace dat::bench

#endif
