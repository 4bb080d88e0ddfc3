// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See half_closed.h. May include: soft, system headers.
#include "soft/half_closed.h"

#include "soft/domain.h"
#include "soft/endpoint.h"
#include "soft/kernel.h"

#include <sys/epoll.h>
#include <utility>

namespace dat::soft {

HalfClosed::HalfClosed(Domain& domain, Endpoint& endpoint, int fd, bool watching)
    : domain_(domain), endpoint_(endpoint), fd_(fd), watching_(watching) {}

HalfClosed::~HalfClosed() {
    unwatch();
    kernel::close(fd_);
}

// Nothing of the stream is read here.
int HalfClosed::begin() {
    const int rc = watching_ ? domain_.handshakes().add(fd_, EPOLLRDHUP, *this) : 0;
    watched_ = watching_ && rc == 0;
    return rc;
}

void HalfClosed::unwatch() {
    if (std::exchange(watched_, false)) {
        domain_.handshakes().remove(fd_, *this);
    }
}

void HalfClosed::ready(std::uint32_t) {
    unwatch();
    endpoint_.peer_left(); // which destroys this
}

void HalfClosed::lost() { ready(0); }

} // namespace dat::soft
