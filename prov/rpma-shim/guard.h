// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What every entry point is within: no exception crosses it, and what libfabric answers becomes
// what librpma does.
#ifndef DAT_RPMA_GUARD_H
#define DAT_RPMA_GUARD_H

#include "rpma-shim/log.h"

#include <rdma/fi_errno.h>

#include <cstring>
#include <exception>
#include <new>
#include <utility>

namespace dat::rpma {

// What `call` returns; RPMA_E_NOMEM where there is no memory. Not noexcept: a thread that sleeps in
// there may be cancelled (pthread_cancel(3)), which unwinds it.
template <class Call> int guarded(const char* name, Call&& call) {
    try {
        return std::forward<Call>(call)();
    } catch (const std::bad_alloc&) {
        return fail({__FILE__, __LINE__, name}, RPMA_E_NOMEM, "%s(): out of memory", name);
    } catch (const std::exception& error) {
        return fail({__FILE__, __LINE__, name}, RPMA_E_UNKNOWN, "%s(): %s", name, error.what());
    }
}

// Of what the provider refuses with -FI_E*, which it has said something about.
inline int failure(const Origin& origin, const char* what, long rc) {
    return fail(origin, rc == -FI_ENOMEM ? RPMA_E_NOMEM : RPMA_E_PROVIDER, "%s: %s", what,
                std::strerror(static_cast<int>(-rc)));
}

} // namespace dat::rpma

#define RPMA_FAILURE(what, rc) ::dat::rpma::failure(RPMA_HERE, what, rc)

#endif
