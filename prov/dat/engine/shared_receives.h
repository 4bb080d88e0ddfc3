// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Receives that several endpoints of a domain draw from (SRQ): a message of any of
// them takes the oldest, and completes it in the queue of its endpoint. What no
// message has taken belongs to no endpoint, so the end of a connection does not touch
// it. Under the domain's lock.
#ifndef DAT_ENGINE_SHARED_RECEIVES_H
#define DAT_ENGINE_SHARED_RECEIVES_H

#include "base/list.h"
#include "engine/endpoint.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dat::engine {

// Who shared receives belong to. Called under the domain's lock.
class SharedReceivesOwner {
  public:
    virtual void low_watermark_passed() = 0;

  protected:
    ~SharedReceivesOwner() = default;
};

// A device that has receives of them itself: its queue pairs take them. Called under the
// domain's lock.
class ReceivingDevice {
  public:
    // A receive waits that the device could have.
    virtual void offered() = 0;

  protected:
    ~ReceivingDevice() = default;
};

class SharedReceives {
  public:
    // At most `limit` receives wait at once; limit >= 1. Throws std::bad_alloc.
    explicit SharedReceives(std::uint32_t limit)
        : limit_(limit), mask_(std::bit_ceil(limit) - 1),
          receives_(std::make_unique_for_overwrite<Receive[]>(std::size_t{mask_} + 1)),
          segments_(std::make_unique_for_overwrite<Iov[]>((std::size_t{mask_} + 1) * kMaxIov)) {}
    SharedReceives(const SharedReceives&) = delete;
    SharedReceives& operator=(const SharedReceives&) = delete;

    bool empty() const { return head_ == tail_; } // of what a device has, nothing counts here
    bool full() const { return waiting() == limit_; }
    std::uint32_t waiting() const { return static_cast<std::uint32_t>(tail_ - head_) + lent_; }
    std::uint32_t limit() const { return limit_; }

    // `fill(receive, aside)` writes every member of a slot that posts set; `extra_segments` is
    // room for its segments. Then messages that wait for a receive take it.
    // Precondition: !full().
    template <class Fill> void post(Fill&& fill) {
        fill(receives_[tail_ & mask_], extra_segments(tail_));
        ++tail_;
        if (device_) [[unlikely]] {
            device_->offered();
        } else if (!starved_.empty()) [[unlikely]] {
            feed();
        }
    }
    // The oldest; valid until the next call. Precondition: !empty().
    const Receive& take() {
        const Receive& oldest = receives_[head_++ & mask_];
        if (waiting() < low_) [[unlikely]] {
            look_low();
        }
        return oldest;
    }

    // --- for a device ---

    // nullptr: none, which is so at first, and whenever none has receives of it.
    void set_device(ReceivingDevice* device) { device_ = device; }
    ReceivingDevice* device() const { return device_; }
    // The oldest goes to the device. It waits as before. Valid until the next call.
    // Precondition: !empty().
    const Receive& lend() {
        ++lent_;
        return receives_[head_++ & mask_];
    }
    // A message has taken one that the device has.
    void taken() {
        --lent_;
        if (waiting() < low_) [[unlikely]] {
            look_low();
        }
    }
    // The device gives back what no message has taken; it is the oldest.
    void give_back(const Receive& receive) {
        --lent_;
        --head_;
        move_receive(receive, receives_[head_ & mask_], extra_segments(head_));
    }

    // SRQ-8: `owner` is told once, when fewer than `count` wait, maybe at once; 0: never.
    void set_low_watermark(std::uint32_t count, SharedReceivesOwner& owner) {
        low_ = count;
        owner_ = &owner;
        look_low();
    }
    // Removes the oldest one with that context; false: there is none, or a device has it.
    bool cancel(const void* context);

    // The endpoint has messages that wait for a receive; once each.
    void starve(Endpoint& endpoint) { starved_.push(endpoint); }
    void forget(Endpoint& endpoint) { starved_.remove(endpoint); }

  private:
    Iov* extra_segments(std::uint64_t at) { return segments_.get() + (at & mask_) * kMaxIov; }
    void feed();
    void look_low() {
        if (waiting() < low_) {
            low_ = 0;
            owner_->low_watermark_passed();
        }
    }

    const std::uint32_t limit_;
    const std::uint32_t mask_;
    std::unique_ptr<Receive[]> receives_;
    std::unique_ptr<Iov[]> segments_; // of those that have several
    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
    std::uint32_t lent_ = 0; // to device_
    ReceivingDevice* device_ = nullptr;
    std::uint32_t low_ = 0; // not 0: fewer are to be told of
    SharedReceivesOwner* owner_ = nullptr;
    base::List<Endpoint, Starved> starved_; // the longest waiting first
};

} // namespace dat::engine

#endif
