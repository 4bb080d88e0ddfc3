// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See measure.h.
#include "measure.h"

#include "way.h"

#include <algorithm>

namespace dat::perf {
namespace {

double half_us(const Result& r, std::size_t) { return r.median_s * 1e6 / 2; }
double one_us(const Result& r, std::size_t) { return r.median_s * 1e6; }
double per_second(const Result& r, std::size_t) {
    return static_cast<double>(r.operations) / r.seconds;
}
double millions(const Result& r, std::size_t size) { return per_second(r, size) / 1e6; }
double megabytes(const Result& r, std::size_t size) {
    return per_second(r, size) * static_cast<double>(size) / 1e6;
}
// Of a run in pieces, which may have been disturbed.
double megabytes_of_median(const Result& r, std::size_t size) {
    return static_cast<double>(size) / r.median_s / 1e6;
}

constexpr const char* kStream =
    "messages one way, 128 sends and 128 receives posted at once or as many as queues hold, the "
    "receives preposted; until a message has come back behind the last";
constexpr const char* kBoth =
    "messages both ways at the same time, 64 sends and 64 receives posted on either side or half "
    "as "
    "many as queues hold, the receives preposted; of both directions together";
constexpr const char* kIncast = "messages of several processes to one, which takes them from one "
                                "completion queue, each of them "
                                "sending as the test bandwidth does; of all together";
constexpr std::size_t kNumber = 8;    // bytes that an atomic operation adds to
constexpr std::size_t kAnything = 64; // where sizes do not matter

constexpr Measure kMeasures[] = {
    {"latency", "latency", "half round trip", "us", Pattern::ping, true, true, 0,
     "one message there and one back, the receive preposted; the median of 25 pieces of a run",
     half_us},
    {"turns", "turns", "half round trip, over each connection in turn", "us", Pattern::turns, true,
     true, 0,
     "one message there and one back over a connection, then over the next, the receives "
     "preposted; the median of 25 pieces of a run",
     half_us},
    {"loaded", "loaded", "half round trip while a stream runs", "us", Pattern::loaded, true, true,
     0,
     "one message there and one back over a connection, while the client sends messages of 64 KiB, "
     "16 at once, over another one of the same two processes; the median of 25 pieces of a run",
     half_us},
    {"bandwidth", "bandwidth", "bandwidth of messages", "MB/s", Pattern::stream, false, true, 0,
     kStream, megabytes},
    {"rate", "rate", "message rate", "million/s", Pattern::stream, false, true, 0, kStream,
     millions},
    {"bandwidth-both", "both", "bandwidth of messages both ways", "MB/s", Pattern::both, false,
     true, 0, kBoth, megabytes},
    {"rate-both", "both", "message rate both ways", "million/s", Pattern::both, false, true, 0,
     kBoth, millions},
    {"bandwidth-incast", "incast", "bandwidth of several to one", "MB/s", Pattern::incast, false,
     true, 0, kIncast, megabytes},
    {"rate-incast", "incast", "message rate of several to one", "million/s", Pattern::incast, false,
     true, 0, kIncast, millions},
    {"rma-write", "rma", "bandwidth of RDMA writes", "MB/s", Pattern::write, false, true, 0,
     "up to 128 fi_write at once; until a message has come back behind the last", megabytes},
    {"rma-read", "rma", "bandwidth of RDMA reads", "MB/s", Pattern::read, false, true, 0,
     "up to 128 fi_read at once", megabytes},
    {"rma-read-time", "rma", "one RDMA read", "us", Pattern::read_one, true, true, 0,
     "one fi_read at a time, from the call to its completion; the median of 25 pieces of a run",
     one_us},
    {"atomic-time", "atomic", "one atomic operation", "us", Pattern::atomic_one, true, false,
     kNumber,
     "one fi_fetch_atomic (sum, 64 bits) at a time, from the call to its completion; the median "
     "of 25 pieces of a run",
     one_us},
    {"atomic-rate", "atomic", "rate of atomic operations", "million/s", Pattern::atomic, false,
     false, kNumber, "up to 128 fi_fetch_atomic (sum, 64 bits) at once", millions},
    {"connect", "connect", "connections made and ended", "1/s", Pattern::connect, false, false,
     kAnything, "one after the other, each ended by the server, which the client waits for",
     per_second},
};

constexpr Measure kMemcpy = {
    "memcpy",
    "memcpy",
    "memcpy within a process",
    "MB/s",
    Pattern::copy,
    false,
    true,
    0,
    "the same two places again and again; the median of 25 pieces of a run",
    megabytes_of_median};

} // namespace

std::span<const Measure> measures() { return kMeasures; }
const Measure& memcpy_measure() { return kMemcpy; }

std::string test_names() {
    std::string all;
    std::string_view last;
    for (const Measure& measure : kMeasures) {
        if (last != measure.test) {
            all += (all.empty() ? "" : ",") + std::string(measure.test);
            last = measure.test;
        }
    }
    return all;
}

std::vector<const Measure*> parse_tests(std::string_view text) {
    std::vector<const Measure*> wanted;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view word = text.substr(begin, end - begin);
        const std::size_t before = wanted.size();
        for (const Measure& measure : kMeasures) {
            if (word == measure.test) {
                wanted.push_back(&measure);
            }
        }
        if (wanted.size() == before) {
            throw Usage("no such test: '" + std::string(word) + "' (" + test_names() + ")");
        }
        begin = end + 1;
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    return wanted;
}

std::string conditions(const Measure& measure, bool waits) {
    const char* end = "";
    if (measure.pattern == Pattern::connect) {
        end = "; connection events polled for (fi_eq_read)";
    } else if (measure.pattern != Pattern::copy) {
        end = waits ? "; completions waited for (fi_cq_sread)"
                    : "; completions polled for (fi_cq_read)";
    }
    return std::string(measure.how) + end;
}

int transfers(Pattern pattern) {
    return pattern == Pattern::ping || pattern == Pattern::turns || pattern == Pattern::loaded ? 2
                                                                                               : 1;
}

} // namespace dat::perf
