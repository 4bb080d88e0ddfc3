// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See overheard.h.
#include "links/shm/overheard.h"

#include "base/attempt.h"
#include "base/log.h"

#include <cstring>
#include <sys/epoll.h>

namespace dat::shm {

bool Overheard::add(const net::Socket& socket, Speaker& speaker) {
    if (!base::attempt([&] { speakers_.push_back(&speaker); })) {
        return false;
    }
    speaker.in_ = this;
    speaker.fd_ = socket.fd();
    if (needs_ > 0) {
        listen_to(speaker);
    }
    return true;
}

void Overheard::remove(Speaker& speaker) {
    ignore(speaker);
    std::erase(speakers_, &speaker);
}

void Overheard::listen_to(Speaker& speaker) {
    if (speaker.heard_) {
        return;
    }
    const int error = domain_.handshakes().add(speaker.fd_, EPOLLIN, speaker.ear_);
    speaker.heard_ = error == 0;
    if (error != 0) { // then that is left to whoever moves data
        DAT_INFO(ep_ctrl, "connections of one host may take longer: epoll: %s",
                 std::strerror(-error));
    }
}

void Overheard::ignore(Speaker& speaker) {
    if (std::exchange(speaker.heard_, false)) {
        domain_.handshakes().remove(speaker.fd_, speaker.ear_);
    }
}

void Overheard::hear(Speaker& speaker) {
    if (needs_ == 0) { // it is for whoever moves data
        return ignore(speaker);
    }
    speaker.speaks();
}

} // namespace dat::shm
