// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See device_events.h.
#include "links/verbs/device_events.h"

#include "base/log.h"
#include "engine/domain.h"
#include "engine/kernel.h"
#include "links/verbs/domain.h"
#include "links/verbs/link.h"
#include "links/verbs/shared_queue.h"

#include <cerrno>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/epoll.h>

namespace dat::verbs {

DeviceEvents::~DeviceEvents() {
    if (context_) {
        kernel::uncancelled(ibv_close_device, context_);
    }
}

int DeviceEvents::open(const ibv_context* other, std::uint8_t port) {
    port_ = port;
    context_ = kernel::uncancelled(ibv_open_device, other->device);
    if (!context_) {
        return log_failure("fi_domain(): ibv_open_device()", errno);
    }
    const int fd = context_->async_fd;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    const int rc = domain_.engine().handshakes().add(fd, EPOLLIN, *this);
    return rc ? log_failure("fi_domain(): epoll", -rc) : 0;
}

namespace {

Link* link_of(const ibv_qp* qp) { return static_cast<Link*>(qp->qp_context); }
Link* link_of(const ibv_cq* cq) { return static_cast<Link*>(cq->cq_context); }

// What an event is about. Whose queue it is has to be known before it is acknowledged, since from
// then on that may be destroyed.
struct About {
    Link* link = nullptr; // still nullptr: of queues that no connection has
    SharedQueue* shared = nullptr;
    int port = 0;
};

About about(const ibv_async_event& event) {
    switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
        return {.link = link_of(event.element.cq)};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return {.link = link_of(event.element.qp)};
    case IBV_EVENT_SRQ_ERR:
        return {.shared = static_cast<SharedQueue*>(event.element.srq->srq_context)};
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        return {.port = event.element.port_num};
    default:
        return {};
    }
}

} // namespace

void DeviceEvents::ready(std::uint32_t) {
    while (read_one()) {
    }
}

bool DeviceEvents::read_one() {
    ibv_async_event event{};
    if (kernel::uncancelled(ibv_get_async_event, context_, &event) != 0) {
        return false;
    }
    const ibv_event_type type = event.event_type;
    const About what = about(event);
    ibv_ack_async_event(&event); // else what it is about could not be destroyed
    const char* const device = domain_.device().name.c_str();
    const char* const text = ibv_event_type_str(type);
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
        domain_.device_gone();
        break;
    case IBV_EVENT_PORT_ERR:
        if (what.port == port_) {
            domain_.port_down();
        }
        break;
    case IBV_EVENT_SRQ_ERR:
        while (Link* const link = what.shared ? domain_.taker_of(*what.shared) : nullptr) {
            link->device_says(type);
        }
        break;
    default:
        if (what.link) {
            what.link->device_says(type);
        } else if (what.port == port_) {
            DAT_INFO(domain, "the port of the RDMA device %s: %s", device, text);
        } else {
            DAT_INFO(domain, "the RDMA device %s: %s", device, text);
        }
    }
    return true;
}

} // namespace dat::verbs
