// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Receives, of a connection, a request and a shared queue.
#ifndef DAT_RPMA_POST_H
#define DAT_RPMA_POST_H

#include "rpma-shim/peer.h"

#include <rdma/fi_endpoint.h>

#include <cstddef>

namespace dat::rpma {

// `call` names it in the log. 0 or one of RPMA_E_*.
int post_receive(const char* call, fid_ep* ep, const rpma_mr_local* to, std::size_t offset,
                 std::size_t length, const void* context);

} // namespace dat::rpma

#endif
