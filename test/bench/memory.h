// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How much memory this process has, and the kernel.
#ifndef DAT_TEST_BENCH_MEMORY_H
#define DAT_TEST_BENCH_MEMORY_H

#include <cstddef>
#include <cstdint>

namespace dat::bench {

// Bytes that an endpoint costs its process.
struct Memory {
    double rss = 0; // resident
    double pss = 0; // the same, shared pages divided among their processes
};

struct Footprint {
    std::uint64_t rss = 0;  // bytes, of this process
    std::uint64_t pss = 0;  // bytes
    std::uint64_t slab = 0; // bytes, of the kernel for all processes
};

Footprint footprint();

// What each of `count` connections has added: to this process, and to the kernel for
// each of its two sockets, which are both on this machine.
Memory per_endpoint(const Footprint& before, const Footprint& after, std::uint64_t count);
double per_socket(const Footprint& before, const Footprint& after, std::uint64_t count);

} // namespace dat::bench

#endif
