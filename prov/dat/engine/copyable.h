// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What is kept of a connection that ends, because it is owed (Endpoint::is_owed()): which requests,
// how much, and whether a payload can be copied, which must not end the process where the program
// has posted what is no memory.
#ifndef DAT_ENGINE_COPYABLE_H
#define DAT_ENGINE_COPYABLE_H

#include "engine/endpoint.h"
#include "engine/touchable.h"

#include <algorithm>
#include <cstdint>

namespace dat::engine {

// Bytes that are kept for one connection.
inline constexpr std::uint64_t kMostKept = std::uint64_t{64} << 20;

// Reads and binds are reported as flushed, so they are not carried out. Nothing waits for them:
// with its endpoint each read before a fence is over.
constexpr bool is_passed_over(OpCode op) { return op == OpCode::read || op == OpCode::bind; }

// System calls, unless the payload is a copy already, or there is none.
inline bool can_be_copied(const Request& request) {
    const auto unreadable = [](const Iov& iov) {
        const auto address = reinterpret_cast<std::uintptr_t>(iov.base);
        return iov.length > 0 && find_untouchable(address, iov.length, Touch::read);
    };
    const auto segments = request.segments();
    return request.inlined || is_answered(request.op) || request.op == OpCode::bind ||
           std::none_of(segments.begin(), segments.end(), unreadable);
}

} // namespace dat::engine

#endif
