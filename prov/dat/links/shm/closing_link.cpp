// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See closing_link.h.
#include "links/shm/closing_link.h"

#include "base/attempt.h"
#include "base/log.h"
#include "engine/barrier.h"
#include "engine/kernel.h"
#include "links/shm/local_listener.h"
#include "links/shm/local_socket.h"

#include <cstring>
#include <memory>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

namespace dat::shm {

ClosingLink::ClosingLink(engine::Domain& domain, Shared&& shared, Remainder&& rest)
    : domain_(domain), shared_(std::move(shared)),
      wake_socket_refuses_(refuses_rights(shared_.wake_socket)), rest_(std::move(rest)),
      deadline_(engine::Clock::now() + kLongest), looked_at_(rest_.taken.number) {}

ClosingLink::~ClosingLink() {
    domain_.reactor().disarm(*this);
    if (watched_) {
        domain_.reactor().remove(shared_.wake_socket.fd(), *this);
    }
    if (owes()) {
        give_up();
    }
    shared_.side.mine->revoked.fetch_or(kVoid, std::memory_order_seq_cst);
    engine::full_fence(); // the copies have something else in them only after this is seen
    ::shutdown(shared_.wake_socket.fd(),
               SHUT_WR); // there may be another descriptor of it (engine/half_closed.h)
    hang_up(domain_, std::move(shared_.wake_socket));
}

void ClosingLink::begin(engine::Domain& domain, Shared shared, Remainder rest) {
    std::unique_ptr<ClosingLink> closing;
    if (!base::attempt([&] {
            closing = std::make_unique<ClosingLink>(domain, std::move(shared), std::move(rest));
        })) {
        DAT_WARN(ep_ctrl, "a connection is cut: out of memory to end it in order");
        shared.side.mine->revoked.fetch_or(kVoid, std::memory_order_seq_cst);
        engine::full_fence(); // the program's memory has something else in it only after this is
                              // seen
        // There may be another descriptor of it (engine/half_closed.h).
        ::shutdown(shared.wake_socket.fd(), SHUT_WR);
        return hang_up(domain, std::move(shared.wake_socket));
    }
    if (closing->rest_.too_much || closing->work() ||
        domain.reactor().add(closing->shared_.wake_socket.fd(), EPOLLIN, *closing) != 0) {
        return;
    }
    closing->watched_ = true;
    domain.reactor().arm(*closing, kPatience);
    domain.defer_close(std::move(closing));
}

// --- records ---

// What the peer has taken; false: more than was sent.
bool ClosingLink::refresh() {
    const Control& peers = *shared_.side.peers;
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
    return fits ? &shared_.side.out[rest_.sent.number] : nullptr;
}

void ClosingLink::send(const Remainder::Piece& piece, Record& record, std::size_t ring) {
    write_head(record, piece.head);
    record.size = piece.size;
    std::byte* to = record.payload.data();
    if (ring > 0) {
        const std::size_t skip = ring_skip(rest_.sent.bytes, piece.size);
        to = shared_.side.out_bytes + (rest_.sent.bytes + skip) % kRing;
    }
    if (piece.size > 0) {
        std::memcpy(to, rest_.bytes.data() + piece.offset, piece.size);
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
        const Record& record = shared_.side.in[at.number];
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
        shared_.side.mine->bytes_taken.store(at.bytes, std::memory_order_release);
        shared_.side.mine->records_taken.store(at.number, std::memory_order_release);
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
    if ((shared_.side.peers->asleep.load(std::memory_order_relaxed) & why) != 0) {
        ring();
    }
}

void ClosingLink::ring() {
    shared_.side.peers->asleep.store(0, std::memory_order_relaxed);
    const char one = 1;
    (void)!kernel::send(shared_.wake_socket.fd(), &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// From here on the peer rings when it has taken something.
void ClosingLink::sleep() {
    shared_.side.mine->asleep.store(kForRecords | kForRoom, std::memory_order_relaxed);
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

// Nothing comes behind. The socket stays until the peer has copied all.
void ClosingLink::end() {
    if (!std::exchange(said_, true)) {
        shared_.side.mine->end.store(End::closed, std::memory_order_release);
        ring();
    }
}

void ClosingLink::ready(std::uint32_t) {
    done_ = !take_rings(shared_.wake_socket, wake_socket_refuses_) || done_; // the peer has gone
    if (done_ || work()) {
        domain_.reactor().disarm(*this);
        domain_.dismiss(*this);
    }
}

void ClosingLink::lost() {
    domain_.reactor().disarm(*this);
    domain_.dismiss(*this); // which resets the connection if something is owed
}

void ClosingLink::expired() {
    if (!work() && rest_.taken.number != looked_at_ && engine::Clock::now() < deadline_) {
        looked_at_ = rest_.taken.number;
        return domain_.reactor().arm(*this, kPatience);
    }
    domain_.dismiss(*this);
}

// The peer sees no orderly end: it goes by what stands here when the socket ends.
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
    shared_.side.mine->end.store(End::none, std::memory_order_release);
}

} // namespace dat::shm
