// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See peer.h. May include: util/perf, std, Linux.
#include "peer.h"

#include "case.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dat::perf {

Peer::~Peer() { ::close(fd_); }

void Peer::tell(const std::string& message) {
    if (::send(fd_, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
        throw OtherGone("the other process has ended");
    }
}

bool Peer::arrived(std::string& message) {
    char bytes[1024];
    ssize_t n = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n == 0) {
        // Linux looks for a message, and then whether the peer has closed: of one that sent
        // its last message and closed between the two, the end is told before the message.
        n = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (n <= 0) {
        throw OtherGone("the other process has ended");
    }
    message.assign(bytes, static_cast<std::size_t>(n));
    return true;
}

void Peer::sleep() const {
    pollfd waiting{fd_, POLLIN, 0};
    ::poll(&waiting, 1, 1000);
}

void Peer::take(const std::string& message, void* value, std::size_t size) {
    if (message.size() != size) {
        fail("the other process said something else than expected");
    }
    std::memcpy(value, message.data(), size);
}

void Peer::give_up_after(Clock::time_point begin) {
    if (seconds_since(begin) > kPatience_s) {
        fail("waited in vain for the other process");
    }
}

} // namespace dat::perf
