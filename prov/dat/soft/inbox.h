// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What arrives on one connection for its receives: which of them a message takes,
// what is staged where there is none (U-9), and the data of writes (U-62). Neutral
// about the link, which says when bytes come and moves them. Under the domain's
// gate. May include: soft, core.
#ifndef DAT_SOFT_INBOX_H
#define DAT_SOFT_INBOX_H

#include "soft/domain.h"
#include "soft/endpoint.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace dat::soft {

// Bytes [offset, offset + size) of `iov`, which has them: writes the pieces to `out`,
// and returns how many they are.
std::size_t gather(std::span<const Iov> iov, std::uint64_t offset, std::uint64_t size,
                   std::span<iovec, kMaxIov> out);

class Inbox {
  public:
    // Why a message cannot be taken. What concerns a receive has completed it.
    enum class Wrong : std::uint8_t {
        none,
        too_long,          // for its receive (DTO-9, U-8)
        old_zone,          // the receive is of another protection zone (EPA-7, U-32)
        cannot_invalidate, // its key is not one that a peer may invalidate
    };
    struct Room {
        std::array<iovec, kMaxIov> pieces;
        std::size_t count = 0;
    };

    explicit Inbox(Endpoint& endpoint) : endpoint_(endpoint) {}

    // --- one message at a time, from its first byte to its last ---

    // It begins: takes the oldest receive, or is staged. Not while open().
    bool begin();
    // It has begun and is not whole.
    bool open() const { return assembling_ || (!staged_.empty() && !staged_.back().whole); }
    // It goes into a receive; else it is staged.
    bool assembling() const { return assembling_; }
    // Where its next `size` bytes belong. What is there already stays.
    bool room(std::size_t size, Room& out);
    // They are there.
    void filled(std::size_t size) { received_ += size; }
    // It is whole. `how`: of Arrived; `value` goes with it.
    bool finish(std::uint8_t how, std::uint64_t value);

    // The usual case, straight: a message of `size` bytes that says nothing else, and a
    // receive of one segment for it. False: something is different, and nothing was done.
    bool plain(const std::byte* from, std::size_t size) {
        const Receive* receive =
            assembling_ || !staged_.empty() ? nullptr : endpoint_.next_receive();
        if (!receive || receive->iov_count != 1 || size > receive->capacity) [[unlikely]] {
            return false;
        }
        if (size > 0) {
            std::memcpy(receive->iov.base, from, size);
        }
        ++taken_;
        endpoint_.complete_message(endpoint_.match_receive(), size);
        return true;
    }

    // A write of `length` bytes, whose data is `value`, is placed.
    bool written(std::uint64_t length, std::uint8_t how, std::uint64_t value);
    // So is one without data.
    void written() { ++taken_; }

    // After these returned false.
    Wrong wrong() const { return wrong_; }

    // Receives have been posted, or a queue has room again. False: wrong().
    bool receive_posted();
    // There are completions for which the program's queue has no room.
    bool awaits_room() const { return !unannounced_.empty(); }
    // They go up whatever room there is: the connection ends.
    void announce_rest();

    // Whole messages wait for receives.
    bool has_unreceived() const { return !staged_.empty() && staged_.front().whole; }
    // A message that waits outside for a receive is like a staged one.
    void starve() { endpoint_.set_starved(true); }
    bool has_staged() const { return !staged_.empty(); }
    // As much is staged as may be, or would be with `more` bytes.
    bool full(std::size_t more = 0) const;
    // Messages and writes that are placed, and received, of all that came (U-61).
    std::uint32_t placed() const { return staged_.empty() ? taken_ : staged_.front().ordinal - 1; }

  private:
    static constexpr std::size_t kStagedOverhead = 128; // bytes that a message counts for at least
    struct Staged {
        std::vector<std::byte> data;
        std::uint64_t value = 0;
        std::uint64_t length = 0; // of a write that is received
        std::uint32_t ordinal = 0;
        std::uint8_t how = kPlain;
        bool whole = false;
    };
    struct Unannounced {
        std::uint64_t length;
        std::uint64_t value;
        std::uint8_t how;
    };

    bool fail(Wrong why) {
        wrong_ = why;
        return false;
    }
    void stage();
    bool match();
    bool overlong(std::uint64_t size);
    bool invalidate(std::uint64_t key);
    bool hand_over(Staged& message);
    void announce_writes();

    Endpoint& endpoint_;
    bool assembling_ = false; // into receive_
    std::uint64_t receive_ = 0;
    std::uint64_t received_ = 0; // bytes of the message at hand
    std::uint32_t taken_ = 0;    // messages and writes in all
    std::deque<Staged> staged_;
    std::size_t staged_bytes_ = 0;
    std::deque<Unannounced> unannounced_;
    Wrong wrong_ = Wrong::none;
};

} // namespace dat::soft

#endif
