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

inline bool answered(long result, const char* what) {
    if (result < 0 && !has_failed()) {
        violation("%s: %s", what, fi_strerror(static_cast<int>(-result)));
    }
    return result >= 0;
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
