// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Room for what is added later, where there may be no memory any more, or the lock of it must not
// be held for long.
#ifndef DAT_BASE_RESERVE_H
#define DAT_BASE_RESERVE_H

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dat::base {

// Room for `count` elements in all, at least: as with push_back(), many calls with a count that is
// one more each cost as few copies as elements. reserve() alone would copy all of them in each.
// Throws std::bad_alloc, and has changed nothing then.
template <class T> void reserve_for(std::vector<T>& elements, std::size_t count) {
    if (elements.capacity() < count) {
        elements.reserve(std::max(count, 2 * elements.capacity()));
    }
}

} // namespace dat::base

#endif
