// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See closing_link.h.
#include "links/iwarp/closing_link.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/kernel.h"

#include <cerrno>
#include <linux/sockios.h>
#include <memory>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <utility>

namespace dat::iwarp {

ClosingLink::ClosingLink(engine::Domain& domain, Socket&& socket, const Watched& watched,
                         Remainder&& rest, const FrameCounter& incoming, bool ended)
    : domain_(domain), socket_(std::move(socket)), rest_(std::move(rest)), incoming_(incoming),
      deadline_(engine::Clock::now() + kLongest), interest_(watched.interest),
      watched_(watched.by != nullptr), ended_(ended) {
    if (watched_) {
        domain_.reactor().hand_over(*watched.by, *this);
    }
}

ClosingLink::~ClosingLink() {
    domain_.reactor().disarm(*this);
    if (watched_) {
        domain_.reactor().remove(socket_.fd(), *this);
    }
    if (owes()) {
        give_up();
    }
}

void ClosingLink::begin(engine::Domain& domain, Socket socket, const Watched& watched,
                        Remainder rest, const FrameCounter& incoming, bool ended) {
    std::unique_ptr<ClosingLink> closing;
    if (!base::attempt([&] {
            closing = std::make_unique<ClosingLink>(domain, std::move(socket), watched,
                                                    std::move(rest), incoming, ended);
        })) {
        if (watched.by) {
            domain.reactor().remove(socket.fd(), *watched.by);
        }
        DAT_WARN(ep_ctrl, "a connection is cut: out of memory to end it in order");
        // There may be another descriptor of it (engine/half_closed.h).
        ::shutdown(socket.fd(), SHUT_WR);
        return;
    }
    if (closing->rest_.too_much || closing->work()) {
        return;
    }
    if (!closing->watched_) {
        closing->interest_ = closing->interest();
        if (domain.reactor().add(closing->socket_.fd(), closing->interest_, *closing) != 0) {
            return;
        }
        closing->watched_ = true;
    }
    closing->untaken_ = closing->untaken();
    domain.reactor().arm(*closing, kPatience);
    domain.defer_close(std::move(closing));
}

// An end that has been read would be there again at once.
std::uint32_t ClosingLink::interest() const {
    return (ended_ ? 0 : std::uint32_t{EPOLLIN}) | (blocked_ ? std::uint32_t{EPOLLOUT} : 0);
}

bool ClosingLink::work() {
    do {
        send_rest();
        ended_ = ended_ || discard();
    } while (!shut_ && !blocked_ && (ended_ || sent_ < limit()));
    if (ended_ && shut_) {
        return true;
    }
    if (watched_ && interest() != interest_) {
        interest_ = interest();
        if (!domain_.reactor().modify(socket_.fd(), interest_, *this)) {
            shut_ = true; // no socket of ours any more
            return true;
        }
    }
    return false;
}

// How many bytes may have gone by now.
std::size_t ClosingLink::limit() {
    if (rest_.held && incoming_.frames() == 0 && !ended_) {
        return 0;
    }
    while (!rest_.pauses.empty() && rest_.pauses.front().answers <= incoming_.answers()) {
        rest_.pauses.pop_front();
    }
    return rest_.pauses.empty() ? rest_.bytes.size() : rest_.pauses.front().offset;
}

void ClosingLink::send_rest() {
    if (shut_) {
        return;
    }
    const std::size_t until = limit();
    blocked_ = false;
    while (sent_ < until) {
        const ssize_t n = kernel::send(socket_.fd(), rest_.bytes.data() + sent_, until - sent_,
                                       MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS || errno == ENOMEM)) {
            blocked_ = true;
            return;
        }
        if (n < 0) { // the peer has gone, as this side's program will hear
            sent_ = rest_.bytes.size();
            break;
        }
        sent_ += static_cast<std::size_t>(n);
    }
    // A peer that has ended answers no more.
    if (sent_ == rest_.bytes.size() || ended_) {
        shut_ = true;
        ::shutdown(socket_.fd(), SHUT_WR);
    }
}

// True: the peer's end has been reached.
bool ClosingLink::discard() {
    constexpr int kReads = 8;
    for (int i = 0; i < kReads; ++i) {
        const auto scratch = domain_.in_scratch();
        const ssize_t n = kernel::recv(socket_.fd(), scratch.data(), scratch.size(), MSG_DONTWAIT);
        if (n <= 0) {
            return n == 0 || (errno != EAGAIN && errno != EINTR);
        }
        if (!shut_) {
            incoming_.feed(scratch.first(static_cast<std::size_t>(n)));
        }
    }
    return false;
}

void ClosingLink::ready(std::uint32_t) {
    if (work()) {
        domain_.reactor().disarm(*this); // it may have expired as well
        domain_.dismiss(*this);
    }
}

void ClosingLink::lost() {
    domain_.reactor().disarm(*this);
    domain_.dismiss(*this); // which resets the connection if something is owed
}

std::size_t ClosingLink::untaken() const {
    int unconfirmed = 0; // by the peer's TCP, which counts the end as a byte
    ioctl(socket_.fd(), SIOCOUTQ, &unconfirmed);
    return rest_.bytes.size() - sent_ + static_cast<std::size_t>(unconfirmed);
}

void ClosingLink::expired() {
    const std::size_t left = untaken();
    if (left > 0 && left < untaken_ && engine::Clock::now() < deadline_) {
        untaken_ = left;
        return domain_.reactor().arm(*this, kPatience);
    }
    if (left > 0) {
        give_up();
    }
    domain_.dismiss(*this);
}

// The peer sees no orderly end.
void ClosingLink::give_up() {
    const std::size_t lost = untaken() - (shut_ ? 1 : 0);
    if (rest_.too_much) {
        DAT_WARN(ep_data,
                 "a closed connection is reset: of what was posted to it without a completion more "
                 "is left than is kept for a peer that does not read, or its memory is not "
                 "readable");
    } else if (lost > 0) {
        DAT_WARN(ep_data,
                 "a closed connection is reset: its peer has not taken %zu bytes that were sent "
                 "to it before",
                 lost);
    }
    shut_ = true;
    const linger at_once{1, 0};
    setsockopt(socket_.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    // There may be another descriptor of it (engine/half_closed.h).
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    kernel::connect(socket_.fd(), &nobody, sizeof nobody);
}

} // namespace dat::iwarp
