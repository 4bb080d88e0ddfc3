// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See guest.h.
#include "links/shm/guest.h"

#include "base/log.h"
#include "engine/random.h"
#include "links/shm/local_socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <sys/epoll.h>
#include <utility>

namespace dat::shm {

LocalListener::Guest::~Guest() {
    detach();
    let_go(std::move(socket_), local_listener_.reaper_);
}

void LocalListener::Guest::start() {
    auto& reactor = local_listener_.domain_.handshakes();
    if (reactor.add(socket_.fd(), EPOLLIN, *this) != 0) {
        return leave("epoll is full");
    }
    watched_ = true;
    reactor.arm(*this, local_listener_.domain_.settings().handshake_limit);
    ready(EPOLLIN); // mostly it has spoken already
}

void LocalListener::Guest::leave(const char* why) {
    DAT_INFO(ep_ctrl, "an offer of shared memory is not taken: %s", why);
    detach();
    let_go(std::move(socket_), local_listener_.reaper_);
    Host* const host = is_invited() ? local_listener_.settle(cookie_) : nullptr;
    local_listener_.dismiss(*this);
    if (host) {
        host->stayed_out();
    }
}

void LocalListener::Guest::detach() {
    local_listener_.domain_.handshakes().disarm(*this);
    if (std::exchange(watched_, false)) {
        local_listener_.domain_.handshakes().remove(socket_.fd(), *this);
    }
}

void LocalListener::Guest::ready(std::uint32_t) {
    std::array<std::byte, kLongestMessage + 1> room;
    const ssize_t n = receive(socket_, room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    const std::span bytes(room.data(), n > 0 ? static_cast<std::size_t>(n) : 0);
    if (!is_invited()) {
        ask(parse<Hello>(bytes));
    } else if (parse<Joined>(bytes)) {
        come_in();
    } else {
        leave("the peer could not use the memory");
    }
}

void LocalListener::Guest::ask(const std::optional<Hello>& hello) {
    Offered* const offer = hello ? local_listener_.offered(hello->cookie) : nullptr;
    if (!offer || offer->taken || offer->ends != hello->ends) {
        return leave("what came is not for any connection");
    }
    int fd = -1;
    int error = 0;
    Segment segment = Segment::create(fd, error);
    const net::Socket memory(fd);
    if (!segment) {
        return leave(std::strerror(-error));
    }
    known_ = acquaintance(hello->self, socket_);
    segment.side(false).mine->pulls.store(known_.pulls ? 1 : 0);
    Welcome welcome;
    welcome.self = self();
    welcome.peering = id_ = engine::random_bits();
    welcome.listener = offer->listener;
    if (!send_with(socket_, std::as_bytes(std::span(&welcome, 1)), memory.fd())) {
        return leave(std::strerror(errno));
    }
    segment_ = std::move(segment);
    cookie_ = hello->cookie;
    offer->taken = true;
    offer->host->invited();
}

void LocalListener::Guest::come_in() {
    Host* const host = local_listener_.settle(cookie_);
    if (!host) {
        return leave("its connection is over");
    }
    detach();
    Joint joint;
    describe(joint, known_, false);
    const auto peering =
        local_listener_.keep(std::move(socket_), std::move(segment_), false, known_, {}, id_);
    joint.channel = peering ? peering->first() : nullptr;
    local_listener_.dismiss(*this);
    if (joint.channel) {
        host->joined(std::move(joint));
    } else {
        host->stayed_out(); // the guest sees the end of the socket
    }
}

} // namespace dat::shm
