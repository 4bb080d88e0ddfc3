// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What arrives on one connection for its receives: which of them a message takes,
// what is staged where there is none (U-9), and the data of writes (U-62). Neutral
// about the link, which says when bytes come and moves them. Under the domain's
// lock.
#ifndef DAT_ENGINE_INBOX_H
#define DAT_ENGINE_INBOX_H

#include "base/copy.h"
#include "engine/domain.h"
#include "engine/endpoint.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <sys/uio.h>
#include <vector>

namespace dat::engine {

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
        no_memory,         // for what has to wait
        not_expected,      // by the endpoint's MessageSink
    };
    struct Room {
        std::array<iovec, kMaxPieces> pieces;
        std::size_t count = 0;
        void add(std::span<const Iov> iov, std::uint64_t offset, std::uint64_t size) {
            count += gather(iov, offset, size,
                            std::span<iovec, kMaxIov>(pieces.data() + count, kMaxIov));
        }
    };

    explicit Inbox(Endpoint& endpoint) : endpoint_(endpoint) {}

    // --- one message at a time, from its first byte to its last ---

    // It begins, of which `start` is there: takes the oldest receive, or is staged. Not while
    // open().
    bool begin(std::span<const std::byte> start);
    // It has begun and is not whole.
    bool open() const { return assembling_ || (has_staged() && !waiting_->staged.back().whole); }
    // It goes into a receive; else it is staged.
    bool assembling() const { return assembling_; }
    // Bytes of it that have come; 0 where none is open().
    std::uint64_t received() const { return received_; }
    // Where `size` bytes belong, of those behind the next `skip` ones. What is there
    // already stays.
    [[nodiscard]] bool room(std::size_t size, Room& out, std::size_t skip = 0);
    // The next `size` bytes are there.
    void filled(std::size_t size) { received_ += size; }
    // It is whole. `how`: of Arrived; `value` goes with it.
    bool finish(std::uint8_t how, std::uint64_t value);

    // --- the usual case, straight: a whole message that says nothing else ---

    // No message is open, and nothing waits.
    bool idle() const { return !assembling_ && !waiting_; }
    // The receive for a message of `size` bytes, if it is of one segment and idle(); else
    // something is different, and nothing was done.
    const Receive* fast(std::size_t size) const {
        const Receive* receive = endpoint_.next_receive();
        const bool fits = receive && receive->iov_count == 1 && size <= receive->capacity;
        return fits ? receive : nullptr;
    }
    // The message goes into it.
    void take(const Receive& receive, const std::byte* from, std::size_t size) {
        if (size > 0) {
            base::copy(receive.iov.base, from, size);
        }
        ++taken_;
        endpoint_.complete_message(endpoint_.match_receive(), size);
    }

    // The same for an endpoint with a MessageSink. False: wrong().
    bool sink(const std::byte* message, std::size_t size) {
        ++taken_;
        return endpoint_.sink()->arrived(message, size) || fail(Wrong::not_expected);
    }

    // A write of `length` bytes, whose data is `value`, is placed.
    [[nodiscard]] bool written(std::uint64_t length, std::uint8_t how, std::uint64_t value);
    // So is one without data.
    void written() { ++taken_; }

    // After these returned false.
    Wrong wrong() const { return wrong_; }

    // Receives have been posted, or a queue has room again. False: wrong().
    bool receive_posted();
    // There are completions for which the program's queue has no room.
    bool awaits_room() const { return waiting_ && !waiting_->unannounced.empty(); }
    // They go up whatever room there is: the connection ends.
    void announce_rest();

    // Whole messages wait for receives.
    bool has_unreceived() const { return has_staged() && waiting_->staged.front().whole; }
    // A message that waits outside for a receive is like a staged one.
    void starve() { endpoint_.set_starved(true); }
    bool has_staged() const { return waiting_ && !waiting_->staged.empty(); }
    // As much waits as may, or would with `more` bytes of messages.
    bool full(std::size_t more = 0) const { return (waiting_ || more > 0) && too_much(more); }
    // Messages and writes that are placed, and received, of all that came (U-61).
    std::uint32_t placed() const {
        return has_staged() ? waiting_->staged.front().ordinal - 1 : taken_;
    }

  private:
    static constexpr std::size_t kStagedOverhead = 128; // bytes that a message counts for at least
    static constexpr std::size_t kUnannounced = 256;
    // A message for which there is no receive yet (U-9).
    struct Staged {
        std::vector<std::byte> data;
        std::uint64_t value = 0;
        std::uint64_t length = 0; // of a write that is received
        std::uint32_t ordinal = 0;
        std::uint8_t how = kPlain;
        bool whole = false;
    };
    // A write with data that no receive is for, and for which the queue has no room.
    struct Unannounced {
        std::uint64_t length;
        std::uint64_t value;
        std::uint8_t how;
    };
    // What waits for the program; few connections ever have any.
    struct Waiting {
        std::deque<Staged> staged;
        std::size_t bytes = 0; // of staged
        std::deque<Unannounced> unannounced;
        MessageSink::Placement placement; // of what is staged for a MessageSink
    };

    bool fail(Wrong why) {
        wrong_ = why;
        return false;
    }
    bool too_much(std::size_t more) const;
    Waiting& waiting();
    void forget_waiting();
    bool collect(std::span<const std::byte> start);
    bool collect_room(std::uint64_t begin, std::uint64_t end, Room& out);
    bool finish_collected();
    bool stage();
    bool match();
    bool overlong(std::uint64_t size);
    bool invalidate(std::uint64_t key);
    bool hand_over(Staged& message);
    void announce_writes();

    Endpoint& endpoint_;
    bool assembling_ = false; // into receive_
    std::uint64_t receive_ = 0;
    std::uint64_t received_ = 0;       // bytes of the message at hand
    std::uint32_t taken_ = 0;          // messages and writes in all
    std::unique_ptr<Waiting> waiting_; // none: nothing waits
    Wrong wrong_ = Wrong::none;
};

} // namespace dat::engine

#endif
