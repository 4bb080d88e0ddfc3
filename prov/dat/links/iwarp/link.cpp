// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See link.h.
#include "links/iwarp/link.h"

#include "base/assert.h"
#include "base/log.h"
#include "engine/kernel.h"
#include "links/iwarp/closing_link.h"

#include <cerrno>
#include <cstring>
#include <netinet/tcp.h>
#include <sys/epoll.h>

namespace dat::iwarp {

using core::DtoStatus;
using core::Reason;
using core::Stimulus;
using engine::Parting;

Link::Link(engine::Endpoint& endpoint, Socket socket, const SocketAddress& local,
           const Parameters& parameters, std::span<const std::byte> early)
    : engine::Link(engine::LinkKind::iwarp), endpoint_(endpoint), domain_(endpoint.domain()),
      socket_(std::move(socket)), sender_(endpoint, parameters),
      receiver_(endpoint, sender_, parameters), local_(local) {
    int segment = 0;
    if (!parameters.dat_peer) {
        socklen_t size = sizeof segment;
        getsockopt(socket_.fd(), IPPROTO_TCP, TCP_MAXSEG, &segment, &size);
    }
    sender_.set_segment_size(static_cast<std::size_t>(segment));
    says_ready_ = parameters.send_rtr && !parameters.dat_peer;
    receiver_.early(early);
}

Link::~Link() { DAT_ASSERT(life_.is_over()); }

void Link::describe(engine::LinkFacts& facts) const {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(socket_.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0) {
        facts = {info.tcpi_total_retrans, info.tcpi_rtt};
    }
}

// The peer waits for ready-to-receive: it goes out before anything else that takes time.
void Link::start() {
    domain_.direct().received(*this);
    if (!receiver_.begin()) {
        return faulted();
    }
    after_receiving();
    if (!life_.is_over()) {
        push();
    }
    if (life_.is_over()) {
        return;
    }
    interest_ = interest();
    if (const int error = domain_.reactor().add(socket_.fd(), interest_, *this); error != 0) {
        DAT_WARN(ep_ctrl, "a connection ends as it begins: epoll: %s", std::strerror(-error));
        return endpoint_.over(Stimulus::broken, Reason::resources, Parting::clean);
    }
    watched_ = true;
    if (says_ready_) {
        expect_answer();
    }
}

// siw sends its reply first and prepares for ready-to-receive afterwards. One that comes
// in between stays unread, and its side is not told of the connection, until something
// else comes. RFC 6581 allows what is repeated here: a write of nothing.
void Link::expect_answer() {
    constexpr std::chrono::milliseconds kFirst{20};
    constexpr int kTimes = 6;
    ready_sent_ = sender_.bytes_sent();
    if (times_ready_ < kTimes) {
        domain_.handshakes().arm(again_, kFirst * (1 << times_ready_++));
    }
}

void Link::ready_again() {
    if (received_bytes_ > 0 || sender_.bytes_sent() != ready_sent_ || blocked_) {
        return;
    }
    sender_.repeat_ready();
    push();
    if (!life_.is_over()) {
        expect_answer();
    }
}

void Link::put_off() {
    if (!put_off_) {
        put_off_ = true;
        domain_.push_later(*this);
    }
}

void Link::poll() {
    constexpr std::uint32_t kCoolAfter = 4096;
    if (blocked_) {
        push();
    }
    if (life_.is_over()) {
        return;
    }
    if (!stopped_ && (life_.is_open() || !life_.waits())) {
        receive();
    }
    if (!life_.is_over() && ++idle_polls_ > kCoolAfter) {
        domain_.direct().stop(*this);
    }
}

void Link::ready(std::uint32_t events) {
    if (life_.waits() && (events & (EPOLLHUP | EPOLLERR)) != 0) {
        // Known already, and reported for as long as it is watched for.
        domain_.reactor().remove(socket_.fd(), *this);
        watched_ = false;
        return;
    }
    if (stopped_ && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        peer_is_gone();
    } else if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !stopped_) {
        receive();
    }
    if (!life_.is_over() && (events & EPOLLOUT) != 0) {
        push();
    }
}

void Link::lost() { endpoint_.over(Stimulus::broken, Reason::resources, Parting::abandon); }

std::uint32_t Link::interest() const {
    std::uint32_t interest = blocked_ ? std::uint32_t{EPOLLOUT} : 0;
    if (!life_.peer_ended()) {
        interest |= stopped_ ? std::uint32_t{EPOLLRDHUP} : std::uint32_t{EPOLLIN};
    }
    return interest;
}

void Link::update_interest() {
    if (watched_ && interest() != interest_) {
        interest_ = interest();
        if (!domain_.reactor().modify(socket_.fd(), interest_, *this)) {
            domain_.reactor().arm(watch_,
                                  engine::Clock::now()); // which finds that the socket is gone
        }
    }
}

// --- sending ---

void Link::push() {
    put_off_ = false;
    if (life_.is_silent() || send_failed_) {
        return; // what the peer still asks for is never answered
    }
    const Sender::Result result = sender_.push(socket_.fd());
    if (life_.is_open() && result == Sender::Result::done && !blocked_ && watch_.armed())
        [[likely]] {
        return;
    }
    if (life_.is_over()) {
        return;
    }
    if (result == Sender::Result::refused) {
        return source_gone();
    }
    if (result == Sender::Result::dead && sender_.error() == EFAULT) {
        DAT_WARN(ep_data, "the buffer of a posted request is not readable memory");
        return endpoint_.request_failed(sender_.current(), DtoStatus::local_protection,
                                        Reason::dto_error, Parting::clean);
    }
    if (result == Sender::Result::dead && sender_.out_of_memory()) {
        // The socket has part of a frame, and nobody has the rest.
        DAT_WARN(ep_data, "a connection is broken: no memory for the rest of a frame");
        return endpoint_.over(Stimulus::broken, Reason::resources, Parting::abandon);
    }
    if (result == Sender::Result::dead) {
        return send_failed();
    }
    const bool blocked = result == Sender::Result::blocked;
    if (blocked != blocked_) {
        blocked_ = blocked;
        update_interest();
    }
    if (!watch_.armed()) {
        watch_on();
    }
    if (life_.drains()) {
        check_drained();
    }
}

// What the peer sent before it went comes first (U-2): reading finds the end.
void Link::send_failed() {
    send_failed_ = true;
    blocked_ = false;
    update_interest();
    if (life_.peer_ended()) {
        return; // what it sent still waits for receives
    }
    if (stopped_) {
        return peer_is_gone();
    }
    receive();
}

// --- receiving ---

void Link::receive() {
    // So much at a time, so that one connection does not starve the others.
    constexpr int kReads = 16;
    const std::uint64_t before = received_bytes_;
    for (int i = 0; i < kReads && !receiver_.inbox().full(); ++i) {
        if (!read_once()) {
            break;
        }
    }
    if (!life_.is_over() && received_bytes_ != before) {
        after_receiving();
    }
}

// One read. False: no more to be had now, or the connection is over.
bool Link::read_once() {
    const auto room = receiver_.room();
    if (room.empty()) {
        faulted();
        return false;
    }
    std::size_t wanted = room[0].iov_len;
    ssize_t n = 0;
    if (room.size() == 1) [[likely]] {
        n = kernel::recv(socket_.fd(), room[0].iov_base, wanted, 0);
    } else {
        n = kernel::readv(socket_.fd(), room.data(), static_cast<int>(room.size()));
        for (const iovec& piece : room.subspan(1)) {
            wanted += piece.iov_len;
        }
    }
    if (n <= 0) {
        if (n == 0) {
            stream_ended();
        } else if (errno != EAGAIN && errno != EINTR) {
            stream_failed(errno);
        }
        return false;
    }
    idle_polls_ = 0;
    received_bytes_ += static_cast<std::size_t>(n);
    if (!receiver_.arrived(static_cast<std::size_t>(n))) {
        faulted();
        return false;
    }
    return !life_.is_over() && static_cast<std::size_t>(n) == wanted;
}

// What was received may allow, or demand, that something is sent.
void Link::after_receiving() {
    if (receiver_.awake()) {
        sender_.release();
    }
    if (receiver_.inbox().awaits_room()) [[unlikely]] {
        domain_.await_room(*this);
    }
    std::uint32_t placed = receiver_.inbox().placed();
    if (receiver_.ack_due()) {
        sender_.owe_ack(placed);
    }
    if (!sender_.idle() && !blocked_) {
        push();
    }
    if (life_.is_over()) {
        return;
    }
    if (!domain_.direct().polls(*this) && idle_polls_ == 0) {
        domain_.direct().received(*this);
    }
    if (stopped_ != receiver_.inbox().full()) {
        stopped_ = receiver_.inbox().full();
        update_interest();
    }
    if (life_.drains()) {
        check_drained();
    }
}

void Link::receive_posted() {
    if (!receiver_.receive_posted()) {
        return faulted();
    }
    if (life_.waits() && !receiver_.inbox().has_unreceived()) {
        return stream_ended();
    }
    after_receiving();
    while (!life_.is_over() && !watched_ && !stopped_ && !life_.waits()) {
        receive(); // the peer has ended: all it sent is there, up to its end
    }
}

} // namespace dat::iwarp
