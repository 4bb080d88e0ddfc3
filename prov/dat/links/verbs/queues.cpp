// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See queues.h.
#include "links/verbs/queues.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "links/verbs/message_buffers.h"
#include "links/verbs/shared_queue.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
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

Queues::Kind Queues::kind_for(const engine::Endpoint& endpoint, ibv_pd* pd, const rdma_cm_id& id) {
    const engine::Endpoint::Limits limits = endpoint.limits();
    return {.pd = pd,
            .requests = limits.requests,
            .receives = endpoint.sink() ? kMessages : limits.receives,
            .port = id.port_num,
            .pkey = id.route.addr.addr.ibaddr.pkey};
}

void Queues::open(Domain& domain, rdma_cm_id* id, Failure& failure) {
    const std::uint32_t completions = kind_.requests + kind_.receives + kOwnCompletions;
    cq_ = kernel::uncancelled(ibv_create_cq, domain.context(), static_cast<int>(completions),
                              nullptr, domain.completions(), 0);
    if (!cq_) {
        failure = {"ibv_create_cq()", errno};
    } else if (!make_pair(domain)) {
        failure = {"ibv_create_qp()", errno};
    } else if (!initialize(id)) {
        failure = {"ibv_modify_qp()", errno};
    }
}

// A device refuses more inline data than it has, and does not say how much that is: it is asked
// for less then, and later queue pairs ask for no more.
bool Queues::make_pair(Domain& domain) {
    constexpr std::uint32_t kStep = 16;
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
        std::min<std::uint32_t>(domain.device().segments, engine::kMaxIov);
    std::uint32_t size = domain.inline_size();
    const auto ask = [&] {
        ibv_qp_init_attr asked = attr;
        asked.cap.max_inline_data = size;
        qp_ = kernel::uncancelled(ibv_create_qp, kind_.pd, &asked);
        inline_size_ = asked.cap.max_inline_data;
    };
    for (ask(); !qp_ && errno == EINVAL && size > 0; ask()) {
        size -= std::min(size, kStep);
    }
    if (qp_ && size != domain.inline_size()) {
        DAT_INFO(ep_ctrl, "the RDMA device %s takes %u bytes of inline data",
                 domain.device().name.c_str(), size);
        domain.set_inline_size(size);
    }
    return qp_ != nullptr;
}

bool Queues::initialize(rdma_cm_id* id) {
    ibv_qp_attr attr{};
    int mask = 0;
    attr.qp_state = IBV_QPS_INIT;
    return kernel::uncancelled(rdma_init_qp_attr, id, &attr, &mask) == 0 &&
           move_to(qp_, attr, mask);
}

// `fits`: what would be granted; nullptr: that is not known.
int Queues::log_refusal(const Failure& failure, const Kind& kind, const Kind* fits) {
    char granted[96] = "";
    char what[256];
    if (fits) {
        std::snprintf(granted, sizeof granted,
                      " (tx_attr->size, rx_attr->size), of which %u and %u would be granted",
                      fits->requests, fits->receives);
    }
    std::snprintf(what, sizeof what, "a connection: %s for %u requests and %u receives%s",
                  failure.call, kind.requests, kind.receives, granted);
    return log_failure(what, failure.error);
}

std::unique_ptr<Queues> Queues::try_once(Domain& domain, const Kind& kind, rdma_cm_id* id,
                                         Failure& failure) {
    failure = {};
    std::unique_ptr<Queues> made(new Queues(kind));
    made->open(domain, id, failure);
    return failure.error == 0 ? std::move(made) : nullptr;
}

// Those of a shared queue are as many as that has.
std::unique_ptr<Queues> Queues::try_fewer(Domain& domain, Kind kind, rdma_cm_id* id,
                                          Failure& failure) {
    std::unique_ptr<Queues> made;
    while (!made && failure.error == ENOMEM &&
           (kind.requests > 1 || (!kind.shared && kind.receives > 1))) {
        kind.requests = std::max(kind.requests / 2, 1U);
        kind.receives = kind.shared ? kind.receives : std::max(kind.receives / 2, 1U);
        made = try_once(domain, kind, id, failure);
    }
    return made;
}

std::unique_ptr<Queues> Queues::make(Domain& domain, const Kind& kind, rdma_cm_id* id) {
    Failure failure;
    std::unique_ptr<Queues> made = try_once(domain, kind, id, failure);
    if (!made) {
        const Failure first = failure;
        const auto fewer = try_fewer(domain, kind, id, failure);
        errno = -log_refusal(first, kind, fewer ? &fewer->kind() : nullptr);
    }
    return made;
}

std::unique_ptr<Queues> Queues::make_what_fits(Domain& domain, const Kind& kind, rdma_cm_id* id) {
    Failure failure;
    std::unique_ptr<Queues> made = try_once(domain, kind, id, failure);
    if (!made && failure.error == ENOMEM) {
        made = try_fewer(domain, kind, id, failure);
        if (made) {
            DAT_INFO(ep_ctrl,
                     "an endpoint has %u requests and %u receives at one time, and not %u and %u: "
                     "the device %s has no memory for more",
                     made->kind().requests, made->kind().receives, kind.requests, kind.receives,
                     domain.device().name.c_str());
        }
    }
    if (!made) {
        errno = -log_refusal(failure, kind, nullptr);
    }
    return made;
}

void Queues::belong_to(Link* link) {
    qp_->qp_context = link;
    cq_->cq_context = link;
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
bool Queues::become_ready(Domain& domain, rdma_cm_id* id, const rdma_conn_param* answer) {
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
    if (const auto timeout = domain.engine().settings().ack_timeout) {
        attr.timeout = *timeout;
    }
    return move_to(qp_, attr, mask);
}

namespace {

// Throws std::bad_alloc.
int prepare_or_throw(Domain& domain, engine::Endpoint& endpoint, bool fewer_do) {
    ibv_pd* const pd = domain.pd(endpoint.zone());
    if (endpoint.shared() || !pd) { // made for the queue that is there while connections are
        return 0;
    }
    rdma_cm_id* const id = domain.anchor();
    const Queues::Kind kind = Queues::kind_for(endpoint, pd, *id);
    const auto* const there = static_cast<const Queues*>(endpoint.prepared().get());
    if (there && there->kind() == kind) {
        return 0;
    }
    auto made =
        fewer_do ? Queues::make_what_fits(domain, kind, id) : Queues::make(domain, kind, id);
    const int error = made ? 0 : errno;
    bool fits = true;
    if (made && made->kind() != kind && !base::attempt([&] {
            fits = endpoint.resize({made->kind().requests, made->kind().receives});
        })) {
        fits = false;
    }
    endpoint.prepared() = fits ? std::move(made) : nullptr;
    return error == ENOMEM || !fits ? -ENOMEM : 0;
}

} // namespace

int prepare(Domain& domain, engine::Endpoint& endpoint, bool fewer_do) {
    int rc = -ENOMEM;
    if (!base::attempt([&] { rc = prepare_or_throw(domain, endpoint, fewer_do); })) {
        log_failure("an endpoint", ENOMEM);
    }
    return rc;
}

} // namespace dat::verbs
