// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A shared receive queue, and the completion queue that it may have.
#ifndef DAT_RPMA_SRQ_H
#define DAT_RPMA_SRQ_H

#include "rpma-shim/peer.h"
#include "rpma-shim/queue.h"

#include <rdma/fi_endpoint.h>

#include <memory>

struct rpma_srq {
    explicit rpma_srq(rpma_peer& of) : kept(of.shared_from_this()), peer(of) {}

    const std::shared_ptr<rpma_peer> kept;
    rpma_peer& peer;
    dat::rpma::Completions receives;
    std::unique_ptr<rpma_cq> rcq; // nullptr: receives complete in queues of the connections
    dat::rpma::Owned<fid_ep> context;
};

#endif
