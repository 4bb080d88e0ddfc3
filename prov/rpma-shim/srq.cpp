// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// rpma_srq_*() but for their configuration.
#include "rpma-shim/srq.h"

#include "rpma-shim/guard.h"
#include "rpma-shim/post.h"
#include "rpma-shim/settings.h"

using namespace dat::rpma;

namespace {

int open(rpma_srq& srq, const rpma_srq_cfg& config) {
    int rc = 0;
    if (config.rcq_size > 0) {
        rc = srq.receives.open();
        srq.rcq = std::make_unique<rpma_cq>(srq.receives, false, nullptr);
        rc = rc ? rc : srq.rcq->open(srq.peer, config.rcq_size);
    }
    fi_rx_attr attr = *srq.peer.device.info().rx_attr;
    attr.size = config.rq_size;
    rc = rc ? rc : fi_srx_context(srq.peer.domain.get(), &attr, srq.context.out(), nullptr);
    if (rc == 0 && srq.rcq) {
        srq.receives.settle();
    }
    return rc;
}

} // namespace

extern "C" {

int rpma_srq_new(struct rpma_peer* peer, struct rpma_srq_cfg* cfg, struct rpma_srq** srq_ptr) {
    if (!peer || !srq_ptr) {
        return RPMA_REFUSE("rpma_srq_new(): %s is NULL", peer ? "srq_ptr" : "peer");
    }
    return guarded(__func__, [&] {
        static const rpma_srq_cfg defaults;
        auto srq = std::make_unique<rpma_srq>(*peer);
        if (const int rc = open(*srq, cfg ? *cfg : defaults)) {
            return RPMA_FAILURE("rpma_srq_new()", rc);
        }
        *srq_ptr = srq.release();
        return 0;
    });
}

int rpma_srq_delete(struct rpma_srq** srq_ptr) {
    if (!srq_ptr) {
        return RPMA_REFUSE("rpma_srq_delete(): srq_ptr is NULL");
    }
    const std::unique_ptr<rpma_srq> srq(*srq_ptr);
    *srq_ptr = nullptr;
    if (!srq) {
        return 0;
    }
    const int context = srq->context.reset();
    const int queue = srq->rcq ? srq->rcq->cq.reset() : 0;
    const int rc = context ? context : queue;
    return rc == 0 ? 0 : RPMA_FAILURE("rpma_srq_delete()", rc);
}

int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len,
                  const void* op_context) {
    if (!srq || (!dst && (offset != 0 || len != 0))) {
        return RPMA_REFUSE("rpma_srq_recv(): srq = %p, dst = %p, offset = %zu, len = %zu; where "
                           "dst is NULL the others have to be 0",
                           static_cast<void*>(srq), static_cast<void*>(dst), offset, len);
    }
    return post_receive("rpma_srq_recv()", srq->context.get(), dst, offset, len, op_context);
}

int rpma_srq_get_rcq(const struct rpma_srq* srq, struct rpma_cq** rcq_ptr) {
    if (!srq || !rcq_ptr) {
        return RPMA_REFUSE("rpma_srq_get_rcq(): %s is NULL", srq ? "rcq_ptr" : "srq");
    }
    *rcq_ptr = srq->rcq.get();
    return 0;
}

} // extern "C"
