// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How many more operations a ring of slots takes, while others dequeue.
#ifndef DAT_SHIM_ROOM_H
#define DAT_SHIM_ROOM_H

#include <cstdint>

namespace dat::shim {

// `head`: how many were posted; `tail()`: how many of them were dequeued, which grows at any
// moment. So it is looked at once: what two looks say does not fit together, and who posts would
// pass by the end that it counts on.
template <class Tail>
[[gnu::always_inline]] inline std::uint32_t room(std::uint32_t head, std::uint32_t limit,
                                                 Tail&& tail) {
    const std::uint32_t used = head - tail();
    return used < limit ? limit - used : 0;
}

} // namespace dat::shim

#endif
