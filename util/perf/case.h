// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is measured: one pattern, at one message size, over one way of moving data;
// and what comes of it.
#ifndef DAT_UTIL_PERF_CASE_H
#define DAT_UTIL_PERF_CASE_H

#include "histogram.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dat::perf {

enum class Kind : std::uint8_t {
    fabric, // a libfabric provider
    socket, // a non-blocking TCP socket: the limit of what goes over TCP
    memory, // memory that two processes share: the limit of what stays on a host
    ucx,    // ucx_perftest, a program of UCX
    mpi,    // Open MPI's own transports
};

enum class Endpoint : std::uint8_t {
    any, // FI_EP_MSG where the provider has it, else FI_EP_RDM
    msg,
    rdm,
};

// What data goes over.
struct Way {
    std::string label; // as the user named it
    Kind kind = Kind::fabric;
    std::string provider; // fabric: libfabric's name for it, "tcp;ofi_rxm" too
    Endpoint endpoint = Endpoint::any;
    std::vector<std::pair<std::string, std::string>> environment; // of its processes alone
};

enum class Pattern : std::uint8_t {
    ping,       // a message there and one back, one at a time, over the first connection
    turns,      // the same, over each connection in turn
    loaded,     // the same, while a stream runs over the second connection
    stream,     // messages one way, many on their way at once
    both,       // messages both ways at the same time
    incast,     // messages of several processes to one
    write,      // RDMA writes, many at once
    read,       // RDMA reads, many at once
    read_one,   // RDMA reads, one at a time
    atomic,     // fetch-and-add of 8 bytes, many at once
    atomic_one, // the same, one at a time
    connect,    // a connection made and ended, one at a time
    copy,       // memcpy within a process; of Kind::memory alone
};
const char* name(Pattern pattern);

// How long: so many operations, or as many as take about so long.
struct Amount {
    std::uint64_t operations = 0; // 0: by time
    double seconds = 0.1;
};

struct Case {
    Way way;
    Pattern pattern = Pattern::ping;
    std::size_t size = 0; // bytes of a message or of an RDMA operation
    Amount amount;
    bool waits = false;                // completions are waited for (fi_cq_sread, poll), not polled
    std::string address = "127.0.0.1"; // the network address to use, where the way has any
    std::size_t connections = 1;       // that there are; only turns uses more than the first
    std::size_t pairs = 1;             // of processes that do the same at the same time
    std::size_t threads = 1;           // of each process that do so, each with its own endpoint
    std::size_t senders = 1;           // incast: processes that send
};

// The messages of the stream of Pattern::loaded, and how many are on their way at once.
inline constexpr std::size_t kBulkSize = 65536;
inline constexpr std::size_t kBulkDepth = 16;

// What one side, or several that did the same at the same time, have seen. Goes through a pipe as
// it is.
struct Result {
    std::uint64_t operations = 0; // that were measured (ping: round trips)
    double seconds = 0;           // for all of them
    double median_s = 0;          // one at a time: one operation, the median over pieces
    double processor_s = 0;       // processor time of this process meanwhile, all threads
    bool pinned = false;          // it ran on a processor of its own
    char what[96] = {};           // what libfabric chose: provider and endpoint type
    Histogram single;             // one at a time: each operation, in a run of its own
};

// A side cannot go on. The text says why, without the name of the way.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// The way has no such thing: nothing is wrong.
struct NotOffered : Failure {
    using Failure::Failure;
};
// The other process of the pair has ended: what that one says explains more.
struct OtherGone : Failure {
    using Failure::Failure;
};
// Throws a Failure.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

} // namespace dat::perf

#endif
