// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Accounting for one direction of one endpoint: every operation that was
// posted completes exactly once, in posting order, as zero or more successes,
// at most one specific error, then only FLUSHED (DISC-7, DISC-8). Knows
// sequence numbers only; what an operation is, its owner keeps in an array of
// the same size under slot(seq). A plain value: copies are independent.
#ifndef DAT_CORE_DTO_STREAM_H
#define DAT_CORE_DTO_STREAM_H

#include "base/assert.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dat::core {

// STS-1; the values are those of DAT_DTO_COMPLETION_STATUS, but for the last, which DAT has not.
enum class DtoStatus : std::uint8_t {
    success = 0,
    flushed = 1,
    local_length = 2,
    local_ep = 3,
    local_protection = 4,
    bad_response = 5,
    remote_access = 6,
    remote_responder = 7,
    transport = 8,
    receiver_not_ready = 9,
    partial_packet = 10,
    rmr_operation_failed = 11,
    no_message = 12, // that was looked for (FI_PEEK)
    // A message is there as with success, and only whom it came from has no number
    // (FI_SOURCE_ERR).
    unknown_source = 13,
};

class DtoStream {
  public:
    // The completion that is next in posting order.
    struct Done {
        std::uint64_t seq;
        DtoStatus status;
    };

    // At most `limit` operations are outstanding at once (DTO-5); limit >= 1.
    // The only allocation of the stream, one byte a slot.
    explicit DtoStream(std::uint32_t limit)
        : limit_(limit), mask_(std::bit_ceil(limit) - 1), marks_(std::size_t{mask_} + 1, kPosted) {
        DAT_ASSERT(limit > 0);
    }

    // Slots that an owner's array needs; a power of two >= limit.
    std::uint32_t slots() const { return mask_ + 1; }
    // Of an operation that is outstanding, or of the one that was popped last until the next
    // post(). Where nothing is outstanding the next one has the first slot, so that of an owner's
    // array no more is touched than is used at once.
    std::uint32_t slot(std::uint64_t seq) const {
        return (static_cast<std::uint32_t>(seq) - base_) & mask_;
    }
    std::uint32_t limit() const { return limit_; }
    std::uint32_t outstanding() const { return static_cast<std::uint32_t>(tail_ - head_); }
    bool full() const { return outstanding() == limit_; }
    // EPA-10: nothing posted that has not completed.
    bool idle() const { return head_ == tail_; }
    std::uint64_t first() const { return head_; } // oldest not yet completed
    std::uint64_t next() const { return tail_; }  // what post() returns next

    // Takes a slot. Precondition: !full().
    std::uint64_t post() {
        DAT_ASSERT(!full());
        if (idle()) {
            base_ = static_cast<std::uint32_t>(tail_);
        }
        return tail_++;
    }

    // The operation is over; its completion waits for those before it. An
    // operation finishes once; false, and nothing changed, where it is not
    // outstanding or has finished already.
    bool finish(std::uint64_t seq, DtoStatus status) {
        if (seq - head_ >= tail_ - head_ || marks_[slot(seq)] != kPosted) {
            return false;
        }
        mark(seq, static_cast<std::uint8_t>(status));
        return true;
    }
    // finish() and pop() in one, for a success that is the next completion anyway, and behind
    // which nothing has finished; false, and nothing changed, where that is not so.
    bool succeed_first(std::uint64_t seq) {
        if (seq != head_ || head_ == tail_ || odd_ != 0) [[unlikely]] {
            return false;
        }
        ++head_;
        return true;
    }
    // The owner takes an operation back and reports it by itself: its place in the
    // order is passed over, and what is behind it is not affected (fi_cancel(3); DAT
    // has no such call). False where it is not outstanding or has finished.
    bool withdraw(std::uint64_t seq) {
        if (seq - head_ >= tail_ - head_ || marks_[slot(seq)] != kPosted) {
            return false;
        }
        mark(seq, kWithdrawn);
        return true;
    }
    // Of an operation that is outstanding.
    bool finished(std::uint64_t seq) const { return marks_[slot(seq)] != kPosted; }
    // How an outstanding operation finished. Precondition: finished(seq), by finish().
    DtoStatus status(std::uint64_t seq) const { return static_cast<DtoStatus>(marks_[slot(seq)]); }
    // An unsuccessful completion was popped since the last restart().
    bool failed() const { return failed_; }

    // Everything that has not finished, finishes as flushed (DISC-3, EP-72).
    void flush() {
        for (std::uint64_t seq = head_; seq != tail_; ++seq) {
            finish(seq, DtoStatus::flushed);
        }
    }

    // Takes the next completion in posting order; false where the oldest
    // operation has not finished. After the first unsuccessful one every other
    // is FLUSHED until restart(), whatever became of it (DISC-7).
    bool pop(Done& done) {
        while (head_ != tail_ && marks_[slot(head_)] == kWithdrawn)
            [[unlikely]] { unmark_first(); }
        if (head_ == tail_ || marks_[slot(head_)] == kPosted) {
            return false;
        }
        done.seq = head_;
        done.status = failed_ ? DtoStatus::flushed : static_cast<DtoStatus>(marks_[slot(head_)]);
        set_failed(done.status != DtoStatus::success);
        unmark_first();
        return true;
    }

    // A new limit, for as many slots as slots() says afterwards. What is outstanding
    // stays, and keeps its number: the owner moves it to its new slot. False, and
    // nothing changed, where more is outstanding. limit >= 1.
    bool resize(std::uint32_t limit) {
        if (outstanding() > limit) {
            return false;
        }
        DtoStream larger(limit);
        for (std::uint64_t seq = head_; seq != tail_; ++seq) {
            larger.marks_[larger.slot(seq)] = marks_[slot(seq)];
        }
        limit_ = limit;
        mask_ = larger.mask_;
        base_ = larger.base_;
        marks_ = std::move(larger.marks_);
        return true;
    }

    // A new connection attempt begins: successes are possible again (RST-4).
    // Operations that are outstanding stay (preposted receives).
    void restart() { set_failed(false); }

    friend bool operator==(const DtoStream&, const DtoStream&) = default;

  private:
    static constexpr std::uint8_t kPosted = 0xff;
    static constexpr std::uint8_t kWithdrawn = 0xfe;

    void mark(std::uint64_t seq, std::uint8_t mark) {
        marks_[slot(seq)] = mark;
        ++odd_;
    }
    void unmark_first() {
        marks_[slot(head_++)] = kPosted;
        --odd_;
    }
    void set_failed(bool failed) {
        odd_ += std::uint32_t{failed} - std::uint32_t{failed_};
        failed_ = failed;
    }

    std::uint64_t head_ = 0;
    std::uint64_t tail_ = 0;
    std::uint32_t limit_;
    std::uint32_t mask_;
    std::uint32_t base_ = 0;          // the number whose slot is the first, modulo 2^32
    std::uint32_t odd_ = 0;           // marks that are not kPosted, and failed_
    bool failed_ = false;             // an unsuccessful completion was popped
    std::vector<std::uint8_t> marks_; // kPosted where nothing is outstanding
};

} // namespace dat::core

#endif
