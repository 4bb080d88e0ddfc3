// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See queues.h. May include: verbs, soft, system headers.
#include "verbs/queues.h"

#include "soft/kernel.h"
#include "verbs/shared_queue.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <rdma/rdma_cma.h>
#include <utility>

namespace dat::verbs {
namespace {

constexpr std::uint8_t kRnrTimer = 12; // 0.64 ms (IBA table 45)
// What there is to say of a queue pair. Old kernels name more, for themselves.
constexpr int kKnown = (IBV_QP_DEST_QPN << 1) - 1;

bool move_to(ibv_qp* qp, ibv_qp_attr& attr, int mask) {
    errno = kernel::uncancelled(ibv_modify_qp, qp, &attr, mask & kKnown);
    return errno == 0;
}

} // namespace

Queues::Kind Queues::kind_for(const soft::Endpoint& endpoint, ibv_pd* pd, const rdma_cm_id& id) {
    const soft::Endpoint::Limits limits = endpoint.limits();
    return {.pd = pd,
            .requests = limits.requests,
            .receives = limits.receives,
            .port = id.port_num,
            .pkey = id.route.addr.addr.ibaddr.pkey};
}

std::unique_ptr<Queues> Queues::make(Domain& domain, const Kind& kind, rdma_cm_id* id) {
    std::unique_ptr<Queues> made(new Queues(kind));
    return made->open(domain, id) == 0 ? std::move(made) : nullptr;
}

int Queues::open(Domain& domain, rdma_cm_id* id) {
    const std::uint32_t completions = kind_.requests + kind_.receives + kOwnCompletions;
    cq_ = kernel::uncancelled(ibv_create_cq, domain.context(), static_cast<int>(completions),
                              nullptr, domain.completions(), 0);
    if (!cq_) {
        return log_failure("a connection: ibv_create_cq()", errno);
    }
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = kind_.requests + kOwnRequests;
    if (kind_.shared) {
        srq_ = kind_.shared->get();
        attr.srq = srq_.get();
    } else {
        attr.cap.max_recv_wr = kind_.receives;
    }
    attr.cap.max_send_sge = attr.cap.max_recv_sge =
        std::min<std::uint32_t>(domain.device().segments, soft::kMaxIov);
    attr.cap.max_inline_data = soft::kInjectSize;
    int rc = kernel::uncancelled(rdma_create_qp, id, kind_.pd, &attr);
    if (rc != 0 && errno == EINVAL) { // a device that has no inline data
        attr.cap.max_inline_data = 0;
        rc = kernel::uncancelled(rdma_create_qp, id, kind_.pd, &attr);
    }
    if (rc != 0) {
        return log_failure("a connection: rdma_create_qp()", errno);
    }
    qp_ = std::exchange(id->qp, nullptr);
    inline_size_ = attr.cap.max_inline_data;
    return 0;
}

Queues::~Queues() {
    if (qp_) {
        kernel::uncancelled(ibv_destroy_qp, qp_);
    }
    if (cq_) {
        kernel::uncancelled(ibv_destroy_cq, cq_);
    }
}

// As librdmacm does it, but for what it has no value for, and for what it says twice.
bool Queues::become_ready(rdma_cm_id* id, const rdma_conn_param* answer) {
    constexpr unsigned kReads = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = IBV_QPS_RTR;
    if (kernel::uncancelled(rdma_init_qp_attr, id, &attr, &mask) != 0) {
        return false;
    }
    // The connection manager's is 655 ms: so long a sender would stand still.
    attr.min_rnr_timer = kRnrTimer;
    if (answer) {
        attr.max_dest_rd_atomic = answer->responder_resources;
    }
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | (attr.max_dest_rd_atomic > 0 ? kReads : 0);
    if (!move_to(qp_, attr, mask | IBV_QP_ACCESS_FLAGS)) {
        return false;
    }
    attr.qp_state = IBV_QPS_RTS;
    if (kernel::uncancelled(rdma_init_qp_attr, id, &attr, &mask) != 0) {
        return false;
    }
    if (answer) {
        attr.max_rd_atomic = answer->initiator_depth;
    }
    return move_to(qp_, attr, mask);
}

void prepare(Domain& domain, soft::Endpoint& endpoint) {
    if (endpoint.shared()) { // made for the queue that is there while connections are
        return;
    }
    if (ibv_pd* const pd = domain.pd(endpoint.zone())) {
        rdma_cm_id* const id = domain.anchor();
        const Queues::Kind kind = Queues::kind_for(endpoint, pd, *id);
        const auto* const there = static_cast<const Queues*>(endpoint.prepared().get());
        if (!there || there->kind() != kind) {
            endpoint.prepared() = Queues::make(domain, kind, id);
        }
    }
}

} // namespace dat::verbs
