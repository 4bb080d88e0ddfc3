// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See peer.h. A message is four bytes with its length, the lowest first, and as many bytes.
#include "peer.h"

#include "case.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dat::perf {
namespace {

constexpr std::size_t kHead = 4;
constexpr std::size_t kLongest = std::size_t{16} << 20;

std::string head_of(std::size_t length) {
    std::string head;
    for (std::size_t i = 0; i < kHead; ++i) {
        head += static_cast<char>(length >> (8 * i) & 0xff);
    }
    return head;
}

std::size_t length_in(const std::string& head) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kHead; ++i) {
        length |= std::size_t{static_cast<unsigned char>(head[i])} << (8 * i);
    }
    return length;
}

[[noreturn]] void gone() { throw OtherGone("the other process has ended"); }

} // namespace

Peer::~Peer() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

void Peer::tell(const std::string& message) {
    const std::string all = head_of(message.size()) + message;
    for (std::size_t at = 0; at < all.size();) {
        const ssize_t n = ::send(fd_, all.data() + at, all.size() - at, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR) {
            gone();
        }
        at += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
}

bool Peer::arrived(std::string& message) {
    const auto whole = [this] {
        return in_.size() >= kHead && in_.size() - kHead >= length_in(in_);
    };
    if (!whole()) {
        char bytes[16384];
        const ssize_t n = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return false;
        }
        if (n <= 0) {
            gone();
        }
        in_.append(bytes, static_cast<std::size_t>(n));
        if (in_.size() >= kHead && length_in(in_) > kLongest) {
            fail("the other process says something that is none of dat_perf's");
        }
        if (!whole()) {
            return false;
        }
    }
    const std::size_t length = length_in(in_);
    message.assign(in_, kHead, length);
    in_.erase(0, kHead + length);
    return true;
}

std::string Peer::hear_within(int patience_s) {
    std::string message;
    const auto begin = Clock::now();
    while (!arrived(message)) {
        pollfd waiting{fd_, POLLIN, 0};
        ::poll(&waiting, 1, 1000);
        give_up_after(begin, patience_s);
    }
    return message;
}

void Peer::take(const std::string& message, void* value, std::size_t size) {
    if (message.size() != size) {
        fail("the other process said something else than expected");
    }
    std::memcpy(value, message.data(), size);
}

void Peer::give_up_after(Clock::time_point begin, int patience_s) {
    if (seconds_since(begin) > patience_s) {
        fail("waited in vain for the other process");
    }
}

} // namespace dat::perf
