// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The last of the sender: copies of what is owed when the connection ends. See sender.h,
// remainder.h.
#include "links/shm/sender.h"

#include "engine/barrier.h"
#include "engine/copyable.h"
#include "engine/inbox.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace dat::shm {

namespace {

// Appends bytes [offset, offset + size) of a payload; returns where. There is room.
std::size_t append(std::vector<std::byte>& to, std::span<const engine::Iov> iov,
                   std::uint64_t offset, std::uint64_t size) {
    const std::size_t at = to.size();
    std::array<iovec, engine::kMaxIov> from;
    const std::size_t count = engine::gather(iov, offset, size, from);
    for (std::size_t i = 0; i < count; ++i) {
        const auto* base = static_cast<const std::byte*>(from[i].iov_base);
        to.insert(to.end(), base, base + from[i].iov_len);
    }
    return at;
}

} // namespace

// The oldest record whose payload the peer has not copied out of the program's memory, as its
// place among all such; the newest of those are known.
std::uint64_t Sender::first_uncopied() const {
    const std::uint64_t known = left_tail_ > kRecords ? left_tail_ - kRecords : 0;
    std::uint64_t first = left_tail_;
    while (first != known && left_at(first - 1).number >= taken_) {
        --first;
    }
    return first;
}

// The request that such a record is of; nullptr: it has completed, against the rules.
const engine::Request* Sender::request_of(const Left& left) const {
    const core::DtoStream& requests = endpoint_.core().requests();
    if (left.seq < requests.first() || left.seq >= requests.next()) {
        return nullptr;
    }
    const engine::Request& request = endpoint_.request(left.seq);
    return left.offset < request.length ? &request : nullptr;
}

// So many bytes have to be copied; or they cannot be.
std::uint64_t Sender::bytes_owed(std::uint64_t left, std::uint64_t end) const {
    std::uint64_t bytes = 0;
    for (; left != left_tail_; ++left) {
        const Left& each = left_at(left);
        const engine::Request* request = request_of(each);
        if (!request || !engine::can_be_copied(*request)) {
            return UINT64_MAX;
        }
        bytes += std::min(request->length - each.offset, kPulled);
    }
    for (std::uint64_t seq = next_; seq < end && bytes <= engine::kMostKept; ++seq) {
        const engine::Request& request = endpoint_.request(seq);
        if (!engine::can_be_copied(request)) {
            return UINT64_MAX;
        }
        bytes += engine::is_passed_over(request.op) ? 0 : request.length + sizeof(AtomicRequest);
    }
    return bytes;
}

// All before the last request that is owed goes out, so that the peer sees what was posted in its
// order and without a gap, but for reads. What completes when its bytes are taken is complete:
// they have been copied.
Remainder Sender::take_remainder() {
    Remainder remainder;
    if (!refresh()) {
        return remainder; // a peer that breaks the rules gets nothing more
    }
    const std::uint64_t first = first_uncopied();
    const std::uint64_t from = first != left_tail_ ? left_at(first).seq : next_;
    const std::uint64_t end = endpoint_.owed_end(from);
    if (end != from) {
        const std::uint64_t bytes = bytes_owed(first, end);
        try {
            remainder.too_much = bytes > engine::kMostKept;
            if (!remainder.too_much) {
                remainder.bytes.reserve(bytes);
                copy_rest(end, remainder);
                move_left(first, remainder);
            }
        } catch (const std::bad_alloc&) {
            remainder.too_much = true;
        }
    }
    remainder.sent = {number_, bytes_};
    remainder.taken = {taken_, bytes_taken_};
    return remainder;
}

// The records are in the ring already: they name another place from here on.
void Sender::move_left(std::uint64_t first, Remainder& to) {
    for (std::uint64_t i = first; i != left_tail_; ++i) {
        const Left& left = left_at(i);
        const engine::Request* request = request_of(left);
        if (!request) {
            to.too_much = true;
            return;
        }
        const std::uint64_t size = std::min(request->length - left.offset, kPulled);
        const std::size_t at = append(to.bytes, request->segments(), left.offset, size);
        name_place(side_.out[left.number], request->segments(), left.offset, size,
                   to.bytes.data() + at);
        to.moved_until = left.number + 1;
        if (request->level == engine::Level::left || endpoint_.is_owed(*request)) {
            endpoint_.finish_request(left.seq, core::DtoStatus::success);
        }
    }
    if (to.moved_until != 0) {
        side_.mine->revoked.store(kMoved, std::memory_order_seq_cst);
        engine::full_fence(); // the program's memory has something else in it only after this is
                              // seen
    }
}

// Pieces of the same sizes, one behind the other.
void Sender::name_place(Record& record, std::span<const engine::Iov> iov, std::uint64_t offset,
                        std::uint64_t size, const std::byte* at) {
    std::array<iovec, engine::kMaxIov> pieces;
    const std::size_t count = engine::gather(iov, offset, size, pieces);
    for (std::size_t i = 0; i < count; ++i) {
        auto* place = reinterpret_cast<Place*>(record.payload.data()) + i;
        std::atomic_ref(place->base)
            .store(reinterpret_cast<std::uintptr_t>(at), std::memory_order_release);
        at += pieces[i].iov_len;
    }
}

void Sender::copy_rest(std::uint64_t end, Remainder& to) {
    std::uint64_t in_flight = open_reads_;
    for (; next_ < end; ++next_) {
        const engine::Request& request = endpoint_.request(next_);
        const std::uint64_t offset = std::exchange(offset_, 0);
        if (engine::is_passed_over(request.op)) {
            continue;
        }
        if (engine::is_atomic(request.op)) {
            copy_atomic(request, in_flight++, to);
            continue;
        }
        copy_message(request, offset, to);
        if (request.level == engine::Level::taken) {
            endpoint_.finish_request(next_, core::DtoStatus::success);
        }
    }
}

void Sender::copy_message(const engine::Request& request, std::uint64_t offset, Remainder& to) {
    Head head = head_of(request);
    const std::uint8_t flags = head.flags;
    std::uint64_t done = offset;
    do {
        const std::uint64_t left = request.length - done;
        const bool is_short = done == 0 && left <= kInline;
        const std::uint64_t size = is_short ? left : std::min<std::uint64_t>(left, kPiece);
        head.address = request.remote_address + done;
        head.flags =
            static_cast<std::uint8_t>(flags | (done == 0 ? kFirst : 0) |
                                      (size == left ? kLast : 0) | (is_short ? 0 : kInRing));
        const std::size_t at = append(to.bytes, request.segments(), done, size);
        to.pieces.push_back({head, static_cast<std::uint32_t>(size), at, 0});
        done += size;
    } while (done < request.length);
}

void Sender::copy_atomic(const engine::Request& request, std::uint64_t in_flight, Remainder& to) {
    const AtomicRequest atomic = atomic_of(request, next_, read_number());
    ++read_count_;
    const auto* bytes = reinterpret_cast<const std::byte*>(&atomic);
    Head head;
    head.kind = Kind::atomic;
    head.key = request.remote_key;
    head.flags = kFirst | kLast;
    head.address = request.remote_address;
    const std::size_t at = to.bytes.size();
    to.bytes.insert(to.bytes.end(), bytes, bytes + sizeof atomic);
    const std::uint64_t answers = in_flight >= ord_ ? in_flight - ord_ + 1 : 0;
    to.pieces.push_back({head, sizeof atomic, at, answers});
}

} // namespace dat::shm
