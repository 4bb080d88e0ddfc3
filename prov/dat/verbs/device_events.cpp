// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See device_events.h. May include: verbs, soft, system headers.
#include "verbs/device_events.h"

#include "soft/domain.h"
#include "soft/kernel.h"
#include "verbs/domain.h"

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
    const int rc = domain_.soft().handshakes().add(fd, EPOLLIN, *this);
    return rc ? log_failure("fi_domain(): epoll", -rc) : 0;
}

void DeviceEvents::ready(std::uint32_t) {
    ibv_async_event event{};
    while (kernel::uncancelled(ibv_get_async_event, context_, &event) == 0) {
        const ibv_event_type type = event.event_type;
        const int port = event.element.port_num;
        ibv_ack_async_event(&event);
        if (type == IBV_EVENT_DEVICE_FATAL) {
            domain_.device_gone();
        } else if (type == IBV_EVENT_PORT_ERR && port == port_) {
            domain_.port_down();
        }
    }
}

} // namespace dat::verbs
