// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See link.h: moving data, sleeping and waking. How a connection ends stands in
// ending.cpp.
#include "links/shm/link.h"

#include "base/assert.h"
#include "base/log.h"
#include "engine/barrier.h"
#include "engine/kernel.h"
#include "links/shm/local_socket.h"

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace dat::shm {

using core::Reason;
using core::Stimulus;
using engine::Parting;

Link::Link(engine::Endpoint& endpoint, net::Socket wake_socket, Segment segment,
           const LinkParameters& parameters, const net::SocketAddress& name, DoorbellPlace place)
    : engine::MemoryLink(kKind), endpoint_(endpoint), domain_(endpoint.domain()),
      segment_(std::move(segment)), side_(segment_.side(parameters.initiator)),
      fences_(parameters.fences), wake_socket_(std::move(wake_socket)),
      wake_socket_refuses_(refuses_rights(wake_socket_)), name_(name), place_(std::move(place)),
      sender_(endpoint, side_, parameters),
      receiver_(endpoint, sender_, side_, parameters, wake_socket_.fd()) {
    domain_.memory().expect_link();
    side_.mine->pulls.store(parameters.pulls ? 1 : 0, std::memory_order_release);
}

Link::~Link() {
    DAT_ASSERT(life_.is_over());
    domain_.memory().forget(*this);
}

void Link::start() {
    const int error = domain_.reactor().add(wake_socket_.fd(), EPOLLIN, *this);
    watched_ = error == 0;
    if (error != 0) {
        DAT_WARN(ep_ctrl, "a connection ends as it begins: epoll: %s", std::strerror(-error));
        return endpoint_.over(Stimulus::broken, Reason::resources, Parting::clean);
    }
    domain_.wake(*this);
    poll();
}

// --- sleeping and waking ---

void Link::wake_peer() {
    const std::atomic<std::uint32_t>& asleep = side_.peers->asleep;
    if (place_ && (asleep.load(std::memory_order_relaxed) & kByDoorbell) != 0) {
        if (!place_.ring()) {
            return;
        }
        if ((asleep.load(std::memory_order_relaxed) & kByDoorbell) != 0) {
            return send_ring();
        }
        // Before it went to sleep the peer took this link from the doorbell, or ended it, so that
        // it need not hear this socket: whoever rings next is to wake it.
        place_.rang_in_vain();
    }
    ring();
}

// The peer looks at the end as well.
void Link::ring() {
    side_.peers->asleep.store(0, std::memory_order_relaxed);
    send_ring();
}

void Link::send_ring() {
    // A wake socket that is full rings already; a peer that has gone is noticed elsewhere.
    const char one = 1;
    if (kernel::send(wake_socket_.fd(), &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        (errno == EBADF || errno == ENOTSOCK)) [[unlikely]] {
        wake_socket_lost_ = true;
        domain_.reactor().arm(watch_, engine::Clock::now());
    }
}

void Link::ready(std::uint32_t) {
    if (asleep_ && !by_doorbell_) { // what it was woken for does not wait for the socket to be read
        disarm();
        domain_.wake(*this);
        poll();
        if (life_.is_over()) {
            return;
        }
    }
    // One for each time that it was asleep; a peer that rings for ever is left ringing.
    const bool gone = !take_rings(wake_socket_, wake_socket_refuses_);
    if (gone) {
        domain_.reactor().remove(wake_socket_.fd(), *this);
        watched_ = false;
        receiver_.peer_gone();
    }
    if (place_) {
        place_.woken(); // the ring may have been the doorbell's, and that of others as well
    }
    // A ring for this link alone has cleared its word.
    const bool rung_itself = side_.mine->asleep.load(std::memory_order_relaxed) == 0;
    if (asleep_ && (!by_doorbell_ || rung_itself)) {
        disarm();
        domain_.wake(*this);
    }
    if (!life_.peer_ended() &&
        (gone || side_.peers->end.load(std::memory_order_acquire) != End::none)) {
        return peer_ended();
    }
    if (gone && life_.waits()) {
        return finish(); // what it was to wait for may be lost by now
    }
    poll();
}

// This side cannot wake the peer, or be woken.
void Link::lost() {
    say_end(End::faulted, static_cast<std::uint32_t>(iwarp::TerminateCode::rdmap_unspecified));
    endpoint_.over(Stimulus::broken, Reason::resources, Parting::clean);
}

bool Link::arm() {
    asleep_ = true;
    for_room_ = sender_.waits();
    side_.mine->asleep.store(kForRecords | (for_room_ ? kForRoom : 0u) |
                                 (by_doorbell_ ? kByDoorbell : 0u),
                             std::memory_order_relaxed);
    return true;
}

bool Link::has_news() const {
    return (!receiver_.stopped() && receiver_.has_record()) ||
           (sender_.waits() && sender_.may_go_on());
}

void Link::disarm() {
    asleep_ = false;
    side_.mine->asleep.store(0, std::memory_order_relaxed);
    idle_polls_ = 0;
    if (std::exchange(by_doorbell_, false)) {
        place_.ignore();
    }
}

void Link::remind_peer() {
    if (!life_.is_over() && taken_by_peer() != sender_.records()) {
        send_ring();
    }
}

// It had nothing for many polls: where it has a place, the doorbell is looked at in its stead.
void Link::tired() {
    if (place_) {
        by_doorbell_ = true;
        place_.watch(*this);
        domain_.memory().let_sleep(*this);
    } else if (domain_.memory().polls_few() || idle_polls_ > domain_.memory().share_of_polls()) {
        domain_.memory().let_sleep(*this);
    }
}

// Asleep, it has sent something for whose completion, or room, it is to be woken.
void Link::stay_wakeable() {
    // For a doorbell that stays so, and costs one barrier.
    while (sender_.waits() && !(by_doorbell_ && for_room_)) {
        arm();
        engine::heavy_barrier();
        if (!has_news()) {
            return;
        }
        poll();
        if (life_.is_over() || !asleep_) {
            return;
        }
    }
}

// --- moving data ---

void Link::poll() {
    if (sender_.waits() && sender_.may_go_on()) {
        look();
        if (life_.is_over()) {
            return;
        }
    }
    if (receiver_.has_record() && !receiver_.stopped()) {
        return receive();
    }
    if (!asleep_ && ++idle_polls_ > domain_.memory().patience()) {
        tired();
    }
}

// The peer has taken or placed something.
void Link::look() {
    if (!sender_.look()) {
        return violated();
    }
    push();
}

void Link::push() {
    if (life_.is_silent()) {
        return; // what the peer still asks for is never answered
    }
    const std::uint64_t before = sender_.records();
    const Sender::Result result = sender_.push();
    if (sender_.records() != before) {
        tell(kForRecords);
    }
    if (result == Sender::Result::refused) {
        return source_gone();
    }
    if (result == Sender::Result::violated) {
        return violated();
    }
    if (asleep_) [[unlikely]] {
        stay_wakeable();
    }
    if (life_.drains()) {
        check_drained();
    }
}

void Link::receive() {
    const std::size_t count = receiver_.take();
    if (count > 0) {
        idle_polls_ = 0;
        tell(kForRoom);
    }
    if (receiver_.fault().kind != Fault::Kind::none) {
        return faulted();
    }
    if (receiver_.found_gone() && !life_.peer_ended()) [[unlikely]] {
        return peer_ended();
    }
    after_receiving();
}

// What was received may allow, or demand, that something is sent.
void Link::after_receiving() {
    if (receiver_.inbox().awaits_room()) [[unlikely]] {
        domain_.await_room(*this);
    }
    if (!sender_.idle()) {
        push();
    } else if (life_.drains()) {
        check_drained();
    }
}

void Link::receive_posted() {
    if (!receiver_.receive_posted()) {
        return faulted();
    }
    tell(kForRoom);
    do {
        receive();
    } while (life_.peer_ended() && receiver_.has_record() && !receiver_.stopped());
    if (life_.waits()) {
        finish();
    }
    if (!life_.is_over() && by_doorbell_ && has_news()) {
        place_.ring_here(); // more than is taken at a time
    }
}

} // namespace dat::shm
