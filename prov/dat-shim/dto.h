// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What an operation of libfabric stands for: its context is a slot, which says whose DTO it
// is. A direction of an endpoint has a ring of slots, taken in the order of posting, which
// is that of completing; so nothing is allocated, and a suppressed success gives its slot
// back with a later one. Slots that were never used have not been touched.
#ifndef DAT_SHIM_DTO_H
#define DAT_SHIM_DTO_H

#include "dat-shim/event.h"
#include "dat-shim/object.h"
#include "dat-shim/room.h"

#include <rdma/fi_eq.h>
#include <rdma/fi_ext_dat.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

namespace dat::core {
struct Completion;
}

namespace dat::shim {

class DtoRing;
class Srq;

struct Slot {
    void* ep; // handle, as long as the ring is; of a shared receive: nullptr
    union {
        DtoRing* ring;
        Srq* srq; // of a shared receive
    };
    std::uint64_t cookie;
    void* rmr;            // handle, of a bind
    std::uint32_t behind; // sequence of the next one
    Operation operation;
    bool suppressed;     // a success is not reported (DTO-21)
    bool plain;          // of the endpoint alone, neither a bind nor an extension
    std::uint8_t unused; // written with the others, as one word
};

// DTO-5: outstanding is what was posted and not dequeued.
class DtoRing {
  public:
    // Throws std::bad_alloc. Only while nothing is outstanding, or to more.
    void resize(std::uint32_t limit, const Object& owner) {
        owner_ = &owner;
        const std::uint32_t size = std::bit_ceil(limit > 0 ? limit : 1);
        if (size > size_) {
            auto slots = std::make_unique_for_overwrite<Slot[]>(size);
            const std::uint32_t first = tail();
            for (std::uint32_t s = first; s != head_; ++s) {
                slots[s & (size - 1)] = slots_[s & (size_ - 1)];
            }
            touched_end_ = head_;
            untouched_ = size - (head_ - first);
            if (slots_) {
                spare_.push_back(std::move(slots_)); // completions may still name them
            }
            slots_ = std::move(slots);
            size_ = size;
            mask_ = size - 1;
        }
        limit_ = limit;
        known_end_ = head_;
    }
    // The endpoint.
    const Object* owner() const { return owner_; }
    bool full() {
        const std::uint32_t left = room(head_, limit_, [this] { return tail(); });
        if (left > 0 && untouched_ > 0 && head_ == touched_end_) {
            touch();
        }
        const std::uint32_t touched = touched_end_ - head_;
        known_end_ = head_ + (untouched_ > 0 && touched < left ? touched : left);
        return known_end_ == head_;
    }
    // Looks at what others dequeued only where it has to.
    bool has_room() { return head_ != known_end_ || !full(); }
    std::uint32_t outstanding() const { return head_ - tail(); }
    std::uint32_t posted() const { return head_; }
    Slot& next() { return slots_[head_ & mask_]; }
    std::uint32_t sequence() const { return head_; }
    void advance() { ++head_; }
    void retreat() { --head_; } // the post failed
    // All before that one have been dequeued, and their slots read. Any thread, under the lock of
    // the queue that it dequeues from, and so in the order of completions (MT-1).
    void reaped(std::uint32_t behind) { tail_.store(behind, std::memory_order_release); }
    // Of what was posted all but the last `left` has succeeded: suppressed ones at the
    // beginning are free, up to one that waits to be dequeued.
    void release_suppressed(std::uint32_t left) {
        std::uint32_t first = tail();
        while (head_ - first > left && slots_[first & (size_ - 1)].suppressed) {
            ++first;
        }
        free_before(first);
    }
    // Of what was posted only the last `left` have not completed.
    void completed_but(std::uint32_t left) { free_before(head_ - left); }

  private:
    static constexpr std::uint32_t kTouched = 64; // slots at once

    // The next slots that were never used get what every slot has. Called each time that head_
    // comes to the end of those that have it.
    void touch() {
        const std::uint32_t count = std::min(untouched_, kTouched);
        for (std::uint32_t s = touched_end_; s != touched_end_ + count; ++s) {
            slots_[s & mask_].ep = owner_->handle();
            slots_[s & mask_].ring = this;
        }
        touched_end_ += count;
        untouched_ -= count;
    }
    // Never backwards: meanwhile more may have been dequeued.
    void free_before(std::uint32_t first) {
        std::uint32_t now = tail();
        while (static_cast<std::int32_t>(first - now) > 0 &&
               !tail_.compare_exchange_weak(now, first, std::memory_order_release,
                                            std::memory_order_acquire)) {
        }
    }
    std::uint32_t tail() const { return tail_.load(std::memory_order_acquire); }

    const Object* owner_ = nullptr;
    std::unique_ptr<Slot[]> slots_;
    std::vector<std::unique_ptr<Slot[]>> spare_;
    std::uint32_t size_ = 0; // a power of two
    std::uint32_t mask_ = 0; // size_ - 1
    std::uint32_t limit_ = 0;
    std::uint32_t head_ = 0;             // who posts, alone; as the next one
    std::uint32_t known_end_ = 0;        // as far as head_ may go without calling full()
    std::uint32_t touched_end_ = 0;      // head_, when it comes to the slots never used;
    std::uint32_t untouched_ = 0;        // so many there are, in the order of head_
    std::atomic<std::uint32_t> tail_{0}; // who dequeues
};

// EVD-22: whom it wakes. A failure wakes everybody.
inline std::uint8_t notice_of(std::uint64_t flags, std::uint32_t status) {
    if (status != 0) {
        return kNotifies | kSolicited;
    }
    return static_cast<std::uint8_t>(((flags & FI_DAT_UNSIGNALLED) == 0 ? kNotifies : 0) |
                                     ((flags & FI_DAT_SOLICITED) != 0 ? kSolicited : 0));
}

// What a completion goes with the end of.
const Object* subject_of(const core::Completion& done);
// A completion becomes an event, and its slot is free. Under the lock of its queue (fast.h).
void complete(const core::Completion& done, Event& event);

// Whether a success is an event of Number::dto_completion as most are: not of a shared queue,
// of a bind, with invalidate or immediate data.
inline bool is_plain(const Slot& slot, std::uint64_t flags) {
    return slot.plain && (flags & (FI_DAT_INVALIDATE | FI_REMOTE_CQ_DATA)) == 0;
}

} // namespace dat::shim

#endif
