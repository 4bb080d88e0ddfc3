// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two processes that measure together: made, pinned, bounded in time, and ended
// whatever happens. May include: util/perf, std.
#ifndef DAT_UTIL_PERF_PAIR_H
#define DAT_UTIL_PERF_PAIR_H

#include "case.h"
#include "peer.h"

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

namespace dat::perf {

enum class Ending : std::uint8_t {
    right,
    not_offered, // one side threw NotOffered
    failed,      // one side threw a Failure, died, or took too long
};

// What became of a pair.
struct Outcome {
    Ending ending = Ending::failed;
    std::string why;    // if it did not go right: one line
    std::string server; // what they have returned, as bytes
    std::string client;
};

// Runs side() in a server and a client process, each pinned to a processor of its own if
// this process may use two, and returns when both have ended: at the latest after
// `limit_s` seconds and a moment, when they are ended by signals. side() may throw
// Failure. It has to be called from a process with one thread, which has not used
// libfabric itself.
Outcome run_pair(const std::function<std::string(Peer&)>& side, int limit_s);

// Runs alone() the same way, in one process; what it returns is `client`.
Outcome run_alone(const std::function<std::string()>& alone, int limit_s);

// Whether the two processes of a pair get processors of their own here.
bool two_processors();

// Whether this side of a pair was pinned.
bool pinned();

template <class T> std::string as_bytes(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
// Of bytes that as_bytes() gave.
template <class T> T from_bytes(const std::string& bytes) {
    T value{};
    if (bytes.size() == sizeof value) {
        std::memcpy(&value, bytes.data(), sizeof value);
    }
    return value;
}

} // namespace dat::perf

#endif
