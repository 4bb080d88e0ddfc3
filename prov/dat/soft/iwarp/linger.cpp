// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See linger.h. May include: soft, system headers.
#include "soft/iwarp/linger.h"

#include <cerrno>
#include <linux/sockios.h>
#include <memory>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <utility>

namespace dat::iwarp {

Linger::Linger(soft::Domain& domain, Socket socket, std::vector<std::byte> rest, bool ended)
    : domain_(domain), socket_(std::move(socket)), rest_(std::move(rest)), ended_(ended) {}

Linger::~Linger() {
    domain_.reactor().disarm(*this);
    if (watched_) {
        domain_.reactor().remove(socket_.fd(), *this);
    }
}

void Linger::begin(soft::Domain& domain, Socket socket, std::vector<std::byte> rest, bool ended) {
    auto linger = std::make_unique<Linger>(domain, std::move(socket), std::move(rest), ended);
    if (linger->work() ||
        domain.reactor().add(linger->socket_.fd(), linger->interest(), *linger) != 0) {
        return;
    }
    linger->watched_ = true;
    linger->untaken_ = linger->untaken();
    domain.reactor().arm(*linger, kPatience);
    domain.linger(std::move(linger));
}

std::uint32_t Linger::interest() const {
    constexpr std::uint32_t kBoth = EPOLLIN | EPOLLOUT;
    return shut_ ? EPOLLIN : kBoth;
}

bool Linger::work() {
    if (!shut_ && send_rest()) {
        shut_ = true;
        ::shutdown(socket_.fd(), SHUT_WR);
        if (watched_) {
            domain_.reactor().modify(socket_.fd(), interest(), *this);
        }
    }
    ended_ = ended_ || discard();
    return ended_ && shut_;
}

// True: all is out, or none of it will ever be.
bool Linger::send_rest() {
    while (sent_ < rest_.size()) {
        const ssize_t n = ::send(socket_.fd(), rest_.data() + sent_, rest_.size() - sent_,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            return errno != EAGAIN && errno != EINTR;
        }
        sent_ += static_cast<std::size_t>(n);
    }
    return true;
}

// True: the peer's end has been reached.
bool Linger::discard() {
    constexpr int kReads = 8;
    for (int i = 0; i < kReads; ++i) {
        const auto scratch = domain_.in_scratch();
        const ssize_t n = ::recv(socket_.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT);
        if (n <= 0) {
            return n == 0 || (errno != EAGAIN && errno != EINTR);
        }
    }
    return false;
}

void Linger::ready(std::uint32_t) {
    if (work()) {
        domain_.reactor().disarm(*this); // it may have expired as well
        domain_.dismiss(*this);
    }
}

std::size_t Linger::untaken() const {
    int unconfirmed = 0; // by the peer's TCP, which counts the end as a byte
    ioctl(socket_.fd(), SIOCOUTQ, &unconfirmed);
    return rest_.size() - sent_ + static_cast<std::size_t>(unconfirmed);
}

void Linger::expired() {
    const std::size_t left = untaken();
    if (left > 0 && left < untaken_) {
        untaken_ = left;
        return domain_.reactor().arm(*this, kPatience);
    }
    if (left > 0) {
        const linger at_once{1, 0};
        setsockopt(socket_.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    domain_.dismiss(*this);
}

} // namespace dat::iwarp
