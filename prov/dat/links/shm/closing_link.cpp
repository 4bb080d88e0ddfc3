// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See closing_link.h.
#include "links/shm/closing_link.h"

#include "base/attempt.h"
#include "base/copy.h"
#include "base/log.h"
#include "engine/barrier.h"

#include <cstring>
#include <memory>
#include <utility>

namespace dat::shm {

ClosingLink::ClosingLink(engine::Domain& domain, Shared&& shared, Remainder&& rest)
    : domain_(domain), shared_(std::move(shared)), side_(shared_.channel->side()),
      rest_(std::move(rest)), deadline_(engine::Clock::now() + kLongest),
      looked_at_(rest_.taken.number) {}

ClosingLink::~ClosingLink() {
    domain_.reactor().disarm(*this);
    shared_.channel->leave();
    if (owes()) {
        give_up();
    }
    side_.mine->revoked.fetch_or(kVoid, std::memory_order_seq_cst);
    engine::full_fence(); // the copies have something else in them only after this is seen
    shared_.channel->hang_up();
}

void ClosingLink::begin(engine::Domain& domain, Shared shared, Remainder rest) {
    std::unique_ptr<ClosingLink> closing;
    const std::shared_ptr<Channel> channel = shared.channel;
    if (!base::attempt([&] {
            closing = std::make_unique<ClosingLink>(domain, std::move(shared), std::move(rest));
        })) {
        DAT_WARN(ep_ctrl, "a connection is cut: out of memory to end it in order");
        channel->side().mine->revoked.fetch_or(kVoid, std::memory_order_seq_cst);
        engine::full_fence(); // the program's memory has something else in it only after this is
                              // seen
        return channel->hang_up();
    }
    closing->shared_.channel->attend(*closing);
    if (closing->rest_.too_much || channel->is_over() || closing->work()) {
        return;
    }
    domain.reactor().arm(*closing, kPatience);
    domain.defer_close(std::move(closing));
}

// --- records ---

// What the peer has taken; false: more than was sent.
bool ClosingLink::refresh() {
    const Control& peers = *side_.peers;
    const std::uint64_t number = peers.records_taken.load(std::memory_order_acquire);
    const std::uint64_t bytes = peers.bytes_taken.load(std::memory_order_acquire);
    Position& taken = rest_.taken;
    if (number - taken.number > rest_.sent.number - taken.number ||
        bytes - taken.bytes > rest_.sent.bytes - taken.bytes) {
        return false;
    }
    taken = {number, bytes};
    return true;
}

// A record with so much room in the ring of bytes; nullptr: not now.
Record* ClosingLink::claim(std::size_t ring) {
    const bool fits = rest_.sent.number - rest_.taken.number < kRecords &&
                      rest_.sent.bytes + ring - rest_.taken.bytes <= kRing;
    return fits ? &side_.out[rest_.sent.number] : nullptr;
}

void ClosingLink::send(const Remainder::Piece& piece, Record& record, std::size_t ring) {
    write_head(record, piece.head);
    record.size = piece.size;
    std::byte* to = record.payload.data();
    if (ring > 0) {
        const std::size_t skip = ring_skip(rest_.sent.bytes, piece.size);
        to = side_.out_bytes + (rest_.sent.bytes + skip) % kRing;
    }
    if (piece.size > 0) {
        base::copy(to, rest_.bytes.data() + piece.offset, piece.size);
    }
    record.stamp.store(static_cast<std::uint32_t>(rest_.sent.number) + 1,
                       std::memory_order_release);
    rest_.sent.bytes += ring;
    ++rest_.sent.number;
}

// True: some of it went.
bool ClosingLink::send_some() {
    const std::size_t before = next_;
    for (; !all_sent(); ++next_) {
        const Remainder::Piece& piece = rest_.pieces[next_];
        const bool in_ring = (piece.head.flags & kInRing) != 0;
        const std::size_t ring = in_ring ? ring_bytes(rest_.sent.bytes, piece.size) : 0;
        Record* record = piece.answers <= answers_ ? claim(ring) : nullptr;
        if (!record) {
            break;
        }
        send(piece, *record, ring);
    }
    if (next_ != before) {
        tell(kForRecords);
    }
    return next_ != before;
}

// Throws away what the peer sends, and counts the answers among it, which the rest waits for.
void ClosingLink::count_answers() {
    Position& at = shared_.received;
    const std::uint64_t before = at.number;
    while (!all_sent() && rest_.pieces[next_].answers > answers_ && at.number - before < kRecords) {
        const Record& record = side_.in[at.number];
        if (record.stamp.load(std::memory_order_acquire) !=
            static_cast<std::uint32_t>(at.number) + 1) {
            break;
        }
        const auto* fields = const_cast<const volatile Record*>(&record);
        const Kind kind = fields->kind;
        const std::uint8_t flags = fields->flags;
        const std::uint32_t size = fields->size;
        if ((flags & kInRing) != 0 && size <= kPiece) {
            at.bytes += ring_bytes(at.bytes, size);
        }
        const bool last = (flags & kLast) != 0;
        answers_ += (kind == Kind::response || kind == Kind::atomic_response) && last ? 1 : 0;
        ++at.number;
    }
    if (at.number != before) {
        side_.mine->bytes_taken.store(at.bytes, std::memory_order_release);
        side_.mine->records_taken.store(at.number, std::memory_order_release);
        tell(kForRoom);
    }
}

// --- sleeping and waking ---

void ClosingLink::tell(Wake why) {
    if (shared_.fences) {
        engine::full_fence();
    } else {
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    if ((side_.peers->asleep.load(std::memory_order_relaxed) & why) != 0) {
        ring();
    }
}

void ClosingLink::ring() {
    side_.peers->asleep.store(0, std::memory_order_relaxed);
    shared_.channel->wake_peer();
}

// From here on the peer rings when it has taken something.
void ClosingLink::sleep() {
    side_.mine->asleep.store(kForRecords | kForRoom, std::memory_order_relaxed);
    engine::heavy_barrier();
}

// --- the end ---

bool ClosingLink::work() {
    sleep();
    for (bool goes_on = true; goes_on && !done_;) {
        count_answers();
        if (!refresh()) {
            done_ = true; // it has broken the rules, and gets nothing more
            break;
        }
        goes_on = send_some();
        if (all_sent()) {
            end();
            done_ = rest_.taken.number >= rest_.moved_until;
        }
    }
    return done_;
}

// Nothing comes behind. The channel stays until the peer has copied all.
void ClosingLink::end() {
    if (!std::exchange(said_, true)) {
        side_.mine->end.store(End::closed, std::memory_order_release);
        ring();
    }
}

void ClosingLink::rung() {
    done_ = shared_.channel->peer_stage() != kThere || done_; // the peer has gone
    if (done_ || work()) {
        dismiss();
    }
}

void ClosingLink::peer_gone() {
    done_ = true;
    dismiss();
}

void ClosingLink::lost() { dismiss(); } // which resets the connection if something is owed

void ClosingLink::dismiss() {
    domain_.reactor().disarm(*this);
    shared_.channel->leave();
    domain_.dismiss(*this);
}

void ClosingLink::expired() {
    if (!work() && rest_.taken.number != looked_at_ && engine::Clock::now() < deadline_) {
        looked_at_ = rest_.taken.number;
        return domain_.reactor().arm(*this, kPatience);
    }
    dismiss();
}

// The peer sees no orderly end: it goes by what stands here when the channel ends.
void ClosingLink::give_up() {
    if (rest_.too_much) {
        DAT_WARN(ep_data,
                 "a closed connection is reset: of what was posted to it without a completion more "
                 "is left than is kept for a peer that does not read, or its memory is not "
                 "readable");
    } else {
        DAT_WARN(ep_data,
                 "a closed connection is reset: its peer has not taken %zu messages and writes, or "
                 "parts of them, that were posted to it before",
                 rest_.pieces.size() - next_ +
                     static_cast<std::size_t>(rest_.sent.number - rest_.taken.number));
    }
    done_ = true;
    side_.mine->end.store(End::none, std::memory_order_release);
}

} // namespace dat::shm
