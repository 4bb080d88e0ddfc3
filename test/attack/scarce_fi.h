// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Calls of libfabric where memory and descriptors are scarce: what they may answer.
#ifndef DAT_TEST_ATTACK_SCARCE_FI_H
#define DAT_TEST_ATTACK_SCARCE_FI_H

#include "scarce.h"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <utility>

namespace dat::test {

// A step that a run may fail at only once something has failed.
#define STEP(call)                                                                                 \
    do {                                                                                           \
        if (!answered(static_cast<long>(call), #call)) {                                           \
            return false;                                                                          \
        }                                                                                          \
    } while (false)

// The answers that say that something is short.
inline bool is_scarcity(long result) {
    return result == -FI_ENOMEM || result == -FI_EMFILE || result == -FI_EAGAIN ||
           result == -FI_ENOSPC;
}

inline bool answered(long result, const char* what) {
    const bool just = has_just_failed();
    if (result < 0 && (!has_failed() || (just && !is_scarcity(result)))) {
        violation("%s: %s", what, fi_strerror(static_cast<int>(-result)));
    }
    return result >= 0;
}

// A run goes no further than `what`: a reason is in an event or a completion.
inline void stopped(const char* what) {
    if (!has_failed()) {
        violation("%s: an error", what);
    }
}

template <class Fid> void close(Fid*& fid, const char* what) {
    if (fid) {
        if (const int rc = fi_close(&std::exchange(fid, nullptr)->fid)) {
            violation("fi_close() of %s: %s", what, fi_strerror(-rc));
        }
    }
}

} // namespace dat::test

#endif
