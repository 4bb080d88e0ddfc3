// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Copying payload to where it belongs. Programs look at the end of an RDMA write to learn that it
// has come, as devices let them; memcpy(3) stores in any order, and the end may be there before the
// beginning.
#ifndef DAT_ENGINE_PLACE_H
#define DAT_ENGINE_PLACE_H

#include "base/copy.h"
#include "engine/barrier.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dat::engine {

using LastWord = std::uint64_t;

// The last word is stored behind what is before it, and in one piece where it is aligned.
inline void place_last(std::byte* to, LastWord word) {
    release_fence();
    std::memcpy(to, &word, sizeof word);
}

// memcpy() of `size` bytes, the last word last.
inline void place(std::byte* to, const std::byte* from, std::size_t size) {
    LastWord word = 0;
    if (size < sizeof word) {
        std::memcpy(to, from, size);
        return;
    }
    const std::size_t before = size - sizeof word;
    base::copy(to, from, before);
    std::memcpy(&word, from + before, sizeof word);
    place_last(to + before, word);
}

} // namespace dat::engine

#endif
