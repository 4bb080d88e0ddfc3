// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The operations of RFC 7306 5.1 on memory that others may be using.
#ifndef DAT_ENGINE_ATOMICS_H
#define DAT_ENGINE_ATOMICS_H

#include "engine/endpoint.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace dat::engine {

// Carries it out on the 8 bytes at `at`, which are aligned; returns what was there
// before. `op`: one of is_atomic().
inline std::uint64_t carry_out(OpCode op, const AtomicOperands& with, std::byte* at) {
    std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
    std::uint64_t before = word.load();
    for (;;) {
        std::uint64_t after = before;
        if (op == OpCode::fetch_add) {
            // The bits in mask are the highest of their fields: no carry leaves them.
            const std::uint64_t top = with.mask;
            after = ((before & ~top) + (with.data & ~top)) ^ ((before ^ with.data) & top);
        } else if (((before ^ with.compare) & with.compare_mask) == 0) {
            after = (before & ~with.mask) | (with.data & with.mask);
        }
        if (word.compare_exchange_weak(before, after)) {
            return before;
        }
    }
}

} // namespace dat::engine

#endif
