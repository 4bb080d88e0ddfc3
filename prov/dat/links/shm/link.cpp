// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See link.h: moving data, sleeping and waking. How a connection ends stands in
// ending.cpp.
#include "links/shm/link.h"

#include "base/assert.h"
#include "engine/barrier.h"

#include <utility>

namespace dat::shm {

using core::Reason;
using core::Stimulus;
using engine::Parting;

Link::Link(engine::Endpoint& endpoint, std::shared_ptr<Channel> channel,
           const LinkParameters& parameters, const net::SocketAddress& name)
    : engine::MemoryLink(kKind), endpoint_(endpoint), domain_(endpoint.domain()),
      channel_(std::move(channel)), side_(channel_->side()), fences_(parameters.fences),
      name_(name), sender_(endpoint, side_, parameters),
      receiver_(endpoint, sender_, *channel_, parameters) {
    domain_.memory().expect_link();
    side_.mine->pulls.store(parameters.pulls ? 1 : 0, std::memory_order_release);
}

Link::~Link() {
    DAT_ASSERT(life_.is_over());
    domain_.memory().forget(*this);
}

void Link::start() {
    channel_->attend(*this);
    domain_.wake(*this);
    if (channel_->is_over()) {
        peer_gone();
    } else {
        rung(); // whatever has come before
    }
}

// --- sleeping and waking ---

void Link::wake_peer() {
    if ((side_.peers->asleep.load(std::memory_order_relaxed) & kByDoorbell) != 0) {
        channel_->ring();
    } else {
        ring();
    }
}

// The peer looks at the end as well.
void Link::ring() {
    side_.peers->asleep.store(0, std::memory_order_relaxed);
    channel_->wake_peer();
}

// Looked at in each round from here on.
void Link::get_up() {
    if (asleep_) {
        disarm();
        domain_.wake(*this);
    }
}

void Link::rung() {
    // Who has rung for this link itself, not for its doorbell, has cleared its word. And where few
    // are awake it is looked at.
    if (!by_doorbell_ || side_.mine->asleep.load(std::memory_order_relaxed) == 0 ||
        domain_.memory().polls_few()) {
        get_up();
    }
    if (channel_->peer_stage() != kThere) {
        return peer_gone();
    }
    if (!life_.peer_ended() && side_.peers->end.load(std::memory_order_acquire) != End::none) {
        return peer_ended();
    }
    poll();
    if (!life_.is_over() && by_doorbell_ && has_news()) {
        channel_->ring_here(); // it has more than it takes at a time
    }
}

void Link::peer_gone() {
    get_up();
    if (!std::exchange(peer_gone_, true)) {
        receiver_.peer_gone();
        if (!life_.peer_ended()) {
            return peer_ended();
        }
        if (life_.waits()) {
            return finish(); // what it was to wait for may be lost by now
        }
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
        channel_->ignore();
    }
}

// One that copies is looking, and takes the rest when it has done.
void Link::remind_peer() {
    if (life_.is_over() || taken_by_peer() == sender_.records()) {
        return;
    }
    if (side_.peers->copying.load(std::memory_order_relaxed) != 0) {
        domain_.memory().told_nobody(*this);
    } else {
        channel_->wake_peer();
    }
}

// It had nothing for many polls: the doorbell is looked at in its stead.
void Link::tired() {
    by_doorbell_ = true;
    channel_->watch();
    domain_.memory().let_sleep(*this);
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

// False: the connection is over.
inline bool Link::heed_peer() {
    if (sender_.waits() && sender_.may_go_on()) {
        look();
        return !life_.is_over();
    }
    return true;
}

void Link::poll() {
    if (!heed_peer()) {
        return;
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
    idle_polls_ = 0;
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
        if (!heed_peer()) {
            return;
        }
        receive();
    } while (!life_.is_over() && life_.peer_ended() && receiver_.has_record() &&
             !receiver_.stopped());
    if (life_.waits()) {
        finish();
    }
    if (!life_.is_over() && asleep_ && has_news()) { // more than is taken at a time
        if (by_doorbell_) {
            channel_->ring_here();
        } else {
            get_up();
        }
    }
}

} // namespace dat::shm
