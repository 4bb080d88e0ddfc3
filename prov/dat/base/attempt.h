// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where what comes from a peer, or was called for by nobody, takes memory: want of it ends
// what it was for, and no more than that.
#ifndef DAT_BASE_ATTEMPT_H
#define DAT_BASE_ATTEMPT_H

#include <new>
#include <utility>

namespace dat::base {

// Runs `body`. False: there was no memory for it; what it had done stays done.
template <class Body> [[nodiscard]] bool attempt(Body&& body) noexcept {
    try {
        std::forward<Body>(body)();
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

} // namespace dat::base

#endif
