// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Whether the payload of a request can be copied when its connection ends, which must not end the
// process where the program has posted what is no memory.
#ifndef DAT_ENGINE_COPYABLE_H
#define DAT_ENGINE_COPYABLE_H

#include "engine/endpoint.h"
#include "engine/touchable.h"

#include <algorithm>
#include <cstdint>

namespace dat::engine {

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
