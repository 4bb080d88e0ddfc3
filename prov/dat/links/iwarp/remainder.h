// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What a connection that has ended still has to send, as bytes that depend on no memory of the
// program, and what of the peer's they wait for.
#ifndef DAT_LINKS_IWARP_REMAINDER_H
#define DAT_LINKS_IWARP_REMAINDER_H

#include "links/iwarp/mpa.h"
#include "links/iwarp/rdmap.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <vector>

namespace dat::iwarp {

struct Remainder {
    // The bytes from `offset` on may go once so many reads and atomics have been answered:
    // the peer serves no more at once.
    struct Pause {
        std::size_t offset;
        std::uint64_t answers;
    };
    std::vector<std::byte> bytes;
    std::list<Pause> pauses; // in that order
    bool held = false;       // nothing may go before the peer's first frame
    bool too_much = false;   // more is owed than is kept: the stream may not end in order
};

// Follows the peer's frames without keeping them: how many there were, and how many answers to
// reads and atomics. What a peer says wrongly moves the counts, and nothing else.
class FrameCounter {
  public:
    // `skip` bytes of a frame are still to come; `answers`: it is one.
    void inside(std::size_t skip, bool answers) {
        skip_ = skip;
        answers_ += answers ? 1 : 0;
    }
    void feed(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const std::size_t skipped = std::min(skip_, bytes.size());
            skip_ -= skipped;
            const std::size_t head = std::min(head_.size() - head_size_, bytes.size() - skipped);
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(skipped), head,
                        head_.begin() + static_cast<std::ptrdiff_t>(head_size_));
            head_size_ += head;
            bytes = bytes.subspan(skipped + head);
            if (head_size_ == head_.size()) {
                count();
            }
        }
    }
    std::uint64_t frames() const { return frames_; }
    std::uint64_t answers() const { return answers_; }

  private:
    void count() {
        constexpr std::uint16_t kResponse =
            ddp_control(true, true, rdmap_octet(Opcode::read_response));
        constexpr std::uint16_t kAtomic =
            ddp_control(false, true, rdmap_octet(Opcode::atomic_response));
        const auto control = load_be<std::uint16_t>(head_.data() + kFpduLengthSize);
        answers_ += control == kResponse || control == kAtomic ? 1 : 0;
        ++frames_;
        skip_ = fpdu_size(peek_ulpdu_size(head_.data())) - head_.size();
        head_size_ = 0;
    }

    std::array<std::byte, 4> head_{}; // of the next frame: its length and DDP's control
    std::size_t head_size_ = 0;
    std::size_t skip_ = 0;
    std::uint64_t frames_ = 0;
    std::uint64_t answers_ = 0;
};

} // namespace dat::iwarp

#endif
