// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See receiver.h.
#include "links/shm/receiver.h"

#include "engine/barrier.h"
#include "engine/place.h"
#include "engine/responder.h"
#include "links/iwarp/faults.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace dat::shm {

using iwarp::TerminateCode;

Receiver::Receiver(engine::Endpoint& endpoint, Sender& sender, const Channel& channel,
                   const LinkParameters& parameters)
    : endpoint_(endpoint), domain_(endpoint.domain()), sender_(sender), side_(channel.side()),
      peer_(parameters.peer), pulls_(parameters.pulls), channel_(channel), inbox_(endpoint) {}

Receiver::Step Receiver::fail(TerminateCode code, const char* what, Fault::Kind kind) {
    if (fault_.kind == Fault::Kind::none) {
        fault_ = {kind, code, what};
    }
    return Step::failed;
}

Receiver::Step Receiver::deny(const iwarp::Complaint& why) { return fail(why.code, why.what); }

Receiver::Step Receiver::inbox_failed() {
    const iwarp::Complaint why = iwarp::complaint(inbox_.wrong());
    const bool memory = inbox_.wrong() == engine::Inbox::Wrong::no_memory;
    return fail(why.code, why.what,
                memory           ? Fault::Kind::resources
                : why.of_receive ? Fault::Kind::receive
                                 : Fault::Kind::peer);
}

// A message for a MessageSink goes there from where it lies, if that is here and in one piece.
[[gnu::always_inline]] inline Receiver::Step Receiver::take_whole(const Record& record) {
    const std::uint8_t flags = record.flags;
    if (record.kind != Kind::send || (flags & ~kInRing) != (kFirst | kLast) || inbox_.open()) {
        return take(record);
    }
    const std::uint32_t size = *const_cast<const volatile std::uint32_t*>(&record.size);
    const std::byte* from = record.payload.data();
    if (size > ((flags & kInRing) != 0 ? kPiece : kInline)) {
        return take(record); // which says what is wrong
    }
    if ((flags & kInRing) != 0) {
        const std::size_t skip = ring_skip(bytes_, size);
        from = side_.in_bytes + (bytes_ + skip) % kRing;
        bytes_ += skip + ring_size(size);
    }
    return inbox_.sink(from, size) ? Step::taken : inbox_failed();
}

// `kPlain`: into receives, and nothing of this side's awaits Sender::has_word().
template <bool kPlain> [[gnu::noinline]] std::size_t Receiver::take_burst() {
    constexpr std::size_t kBurst = 64;
    const bool to_sink = !kPlain && endpoint_.sink();
    const bool heeds = !kPlain && sender_.awaits_word();
    std::uint64_t told = bytes_;
    std::size_t count = 0;
    while (count < kBurst && fault_.kind == Fault::Kind::none && !lost_) {
        const Record& record = side_.in[number_];
        if (record.stamp.load(std::memory_order_acquire) !=
            static_cast<std::uint32_t>(number_) + 1) {
            break;
        }
        // The record may answer what the peer says there.
        if (heeds && sender_.has_word()) [[unlikely]] {
            waits_ = false;
            break;
        }
        if (to_sink || !take_plain(record)) {
            const Step step = to_sink ? take_whole(record) : take(record);
            waits_ = step == Step::waits && !lost_;
            if (step != Step::taken) {
                break;
            }
        }
        ++number_;
        ++count;
        if (to_sink && bytes_ - told >= kRing / 4) [[unlikely]] {
            publish(); // so that the peer fills it again meanwhile
            told = bytes_;
        }
    }
    publish();
    return count;
}

std::size_t Receiver::take() {
    const bool plain = !endpoint_.sink() && !sender_.awaits_word();
    return plain ? take_burst<true>() : take_burst<false>();
}

// A short message that says nothing else, into one receive.
bool Receiver::take_plain(const Record& record) {
    if (record.kind != Kind::send || record.flags != (kFirst | kLast)) {
        return false;
    }
    // Read once: the peer may be changing it.
    const std::uint32_t size = *const_cast<const volatile std::uint32_t*>(&record.size);
    const engine::Receive* receive = size <= kInline && inbox_.idle() ? inbox_.fast(size) : nullptr;
    if (!receive) [[unlikely]] {
        return false;
    }
    inbox_.take(*receive, record.payload.data(), size);
    return true;
}

void Receiver::publish() {
    const std::uint32_t placed = inbox_.placed();
    if (told_ == number_ && placed_ == placed) {
        return;
    }
    told_ = number_;
    placed_ = placed;
    side_.mine->bytes_taken.store(bytes_, std::memory_order_release);
    side_.mine->records_taken.store(number_, std::memory_order_release);
    side_.mine->placed.store(placed, std::memory_order_release);
}

bool Receiver::receive_posted() {
    if (!inbox_.receive_posted()) {
        inbox_failed();
        return false;
    }
    if (waits_) {
        inbox_.starve(); // until take() has found it a receive
    }
    publish();
    return true;
}

Receiver::Step Receiver::take(const Record& record) {
    const Fields fields{record.kind, record.flags, record.places, record.size,
                        record.key,  record.data,  record.address};
    // The compiler may not read them again from where the peer can change them.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!check(fields)) {
        return Step::failed;
    }
    switch (fields.kind) {
    case Kind::send:
        return send(fields, record);
    case Kind::write:
        return write(fields, record);
    case Kind::response:
        return response(fields, record);
    case Kind::read:
        return read(fields, record);
    case Kind::atomic:
        return atomic(fields, record);
    case Kind::atomic_response:
        return atomic_response(fields, record);
    }
    return fail(TerminateCode::rdmap_unexpected_opcode, "a record of no known kind");
}

// What holds for every record.
bool Receiver::check(const Fields& fields) {
    const bool ring = fields.has(kInRing);
    const bool elsewhere = fields.has(kElsewhere);
    const std::uint32_t most = elsewhere ? std::uint32_t{1} << 30 : ring ? kPiece : kInline;
    if ((ring && elsewhere) || fields.size > most ||
        (elsewhere && (fields.places == 0 || fields.places > engine::kMaxIov || !pulls_))) {
        fail(TerminateCode::ddp_untagged_invalid_mo, "a record says two things about its payload");
        return false;
    }
    return true;
}

std::uint8_t Receiver::arrival(const Fields& fields) const {
    return static_cast<std::uint8_t>((fields.has(kSolicited) ? engine::kSolicited : 0) |
                                     (fields.has(kInvalidate) ? engine::kInvalidated : 0) |
                                     (fields.has(kHasData) ? engine::kWithData : 0));
}

// --- payload ---

// What of the record's payload is there.
std::span<const std::byte> Receiver::start_of(const Fields& fields, const Record& record) const {
    if (fields.has(kElsewhere)) {
        return {};
    }
    if (fields.has(kInRing)) {
        return {side_.in_bytes + (bytes_ + ring_skip(bytes_, fields.size)) % kRing, fields.size};
    }
    return {record.payload.data(), fields.size};
}

Pulled Receiver::pull_from_peer(std::span<const iovec> to, std::span<const iovec> from) {
    if (gone_) {
        return Pulled::gone;
    }
    side_.mine->copying.store(1, std::memory_order_relaxed);
    const Pulled pulled = pull(peer_, to, from);
    side_.mine->copying.store(0, std::memory_order_relaxed);
    return pulled;
}

// What lies in the peer's memory as long as its endpoint has not parted from this connection.
bool Receiver::copy_from_peer(std::span<const iovec> from, std::span<const iovec> to) {
    if (!pulls_ || pull_from_peer(to, from) != Pulled::all) {
        return false;
    }
    engine::acquire_fence(); // what the peer says is looked at after the copy
    return still_there() && side_.peers->parted.load(std::memory_order_acquire) == 0;
}

// Copies the record's payload, of the size of `to`.
Receiver::Step Receiver::fetch(const Fields& fields, const Record& record,
                               std::span<const iovec> to) {
    if (fields.has(kElsewhere)) {
        return fetch_settled(fields, record, to);
    }
    const std::byte* from = record.payload.data();
    if (fields.has(kInRing)) {
        const std::size_t skip = ring_skip(bytes_, fields.size);
        from = side_.in_bytes + (bytes_ + skip) % kRing;
        bytes_ += skip + ring_size(fields.size);
    }
    for (const iovec& piece : to) {
        engine::place(static_cast<std::byte*>(piece.iov_base), from, piece.iov_len);
        from += piece.iov_len;
    }
    return Step::taken;
}

// A peer that ends may have it lie elsewhere meanwhile, once.
Receiver::Step Receiver::fetch_settled(const Fields& fields, const Record& record,
                                       std::span<const iovec> to) {
    const std::uint32_t before = side_.peers->revoked.load(std::memory_order_acquire);
    const Step step = fetch_elsewhere(fields, record, to);
    if (side_.peers->revoked.load(std::memory_order_acquire) == before || before != 0) {
        return step;
    }
    lost_ = false;
    fault_ = {};
    return fetch_elsewhere(fields, record, to);
}

Receiver::Step Receiver::fetch_elsewhere(const Fields& fields, const Record& record,
                                         std::span<const iovec> to) {
    std::array<Place, engine::kMaxIov> places;
    std::memcpy(places.data(), record.payload.data(), fields.places * sizeof(Place));
    std::array<iovec, engine::kMaxIov> from;
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < fields.places; ++i) {
        if (places[i].length > fields.size) {
            return fail(TerminateCode::ddp_untagged_invalid_mo, "a place of another size");
        }
        from[i] = {reinterpret_cast<void*>(places[i].base), places[i].length};
        size += places[i].length;
    }
    if (size != fields.size) {
        return fail(TerminateCode::ddp_untagged_invalid_mo, "places of another size in all");
    }
    const Pulled pulled = pull_from_peer(to, {from.data(), fields.places});
    engine::acquire_fence(); // what the peer says of this memory is looked at, again, after the
                             // copy
    if (pulled == Pulled::gone || !still_there()) {
        gone_ = true;
        return lose();
    }
    switch (pulled) {
    case Pulled::all:
    case Pulled::gone:
        break;
    case Pulled::not_theirs:
        return fail(kUnreadable, "what the peer sends is not readable memory of its own");
    case Pulled::not_ours:
        return fail(TerminateCode::rdmap_catastrophic,
                    "a buffer posted for receiving is not writable memory", Fault::Kind::memory);
    case Pulled::not_permitted:
        return fail(TerminateCode::rdmap_catastrophic,
                    "process_vm_readv(2) is refused, although it was allowed before",
                    Fault::Kind::copying);
    }
    // Its program may have had the buffer back before it was copied whole.
    if ((side_.peers->revoked.load(std::memory_order_acquire) & kVoid) != 0) {
        return lose();
    }
    return Step::taken;
}

// What the peer kept in its own memory went with it.
Receiver::Step Receiver::lose() {
    lost_ = true;
    return Step::waits;
}

void Receiver::peer_gone() {
    gone_ = true;
    const Record& record = side_.in[number_];
    if (waits_ && (record.flags & kElsewhere) != 0) {
        waits_ = false;
        lose();
    }
}

// --- messages ---

Receiver::Step Receiver::send(const Fields& fields, const Record& record) {
    if (fields.has(kFirst) == inbox_.open()) {
        return fail(TerminateCode::ddp_untagged_invalid_mo, "a piece of no message");
    }
    // U-9. What the peer keeps may wait there; the rest is bounded by the ring.
    const bool ready =
        endpoint_.sink() ||
        (inbox_.open() ? inbox_.assembling() : !inbox_.has_staged() && endpoint_.has_receive());
    if (!ready && inbox_.full(fields.has(kElsewhere) ? fields.size : 0)) {
        inbox_.starve();
        return Step::waits;
    }
    engine::Inbox::Room to;
    if ((!inbox_.open() && !inbox_.begin(start_of(fields, record))) ||
        !inbox_.room(fields.size, to)) {
        return inbox_failed();
    }
    const Step step = fetch(fields, record, {to.pieces.data(), to.count});
    if (step != Step::taken) {
        return step;
    }
    inbox_.filled(fields.size);
    if (!fields.has(kLast)) {
        return Step::taken;
    }
    const std::uint8_t how = arrival(fields);
    const bool says = (how & (engine::kWithData | engine::kInvalidated)) != 0;
    return inbox_.finish(how, says ? fields.data : 0) ? Step::taken : inbox_failed();
}

// --- RDMA ---

// The last word comes aside, since the kernel copies in any order as well.
Receiver::Step Receiver::fetch_write(const Fields& fields, const Record& record, std::byte* at) {
    engine::LastWord last = 0;
    if (!fields.has(kElsewhere) || fields.size < sizeof last) {
        const iovec to{at, fields.size};
        return fetch(fields, record, {&to, 1});
    }
    const std::size_t before = fields.size - sizeof last;
    const std::array<iovec, 2> to{{{at, before}, {&last, sizeof last}}};
    const Step step = fetch(fields, record, to);
    if (step == Step::taken) {
        engine::place_last(at + before, last);
    }
    return step;
}

Receiver::Step Receiver::write(const Fields& fields, const Record& record) {
    if (fields.has(kFirst) == writing_) {
        return fail(TerminateCode::ddp_tagged_base_bounds, "a piece of no write");
    }
    const bool announces = fields.has(kLast) && fields.has(kHasData);
    if (announces && inbox_.full()) {
        return Step::waits;
    }
    if (fields.size > 0) {
        const engine::Target target =
            engine::write_target(endpoint_, fields.key, fields.address, fields.size);
        if (!target.at) {
            return deny(iwarp::complaint(target.why, false));
        }
        if (const Step step = fetch_write(fields, record, target.at); step != Step::taken) {
            return step;
        }
    }
    written_ = writing_ ? written_ + fields.size : fields.size;
    writing_ = !fields.has(kLast);
    if (writing_) {
        return Step::taken;
    }
    endpoint_.remote_written(fields.key);
    if (!announces) {
        inbox_.written();
        return Step::taken;
    }
    const auto how = static_cast<std::uint8_t>(arrival(fields) | engine::kByWrite);
    return inbox_.written(written_, how, fields.data) ? Step::taken : inbox_failed();
}

Receiver::Step Receiver::read(const Fields& fields, const Record& record) {
    ReadRequest request;
    if (fields.size != sizeof request) {
        return fail(TerminateCode::rdmap_unspecified, "a read request of another size");
    }
    std::memcpy(&request, record.payload.data(), sizeof request);
    const engine::Permission permission = engine::may_read(endpoint_, fields.key, fields.address,
                                                           request.length, sender_.can_respond());
    if (!permission) {
        return deny(iwarp::complaint(permission));
    }
    sender_.respond_read(request, fields.key, fields.address);
    return Step::taken;
}

Receiver::Step Receiver::response(const Fields& fields, const Record& record) {
    if (fields.has(kFirst) == responding_ || (responding_ && fields.key != responding_to_)) {
        return fail(TerminateCode::rdmap_unexpected_opcode, "a piece of no read response");
    }
    if (!responding_) {
        responding_to_ = fields.key;
        responded_ = 0;
        void_ = false;
    }
    const engine::Request* request = sender_.waiting(responding_to_, false);
    if (!request) {
        return fail(TerminateCode::rdmap_unexpected_opcode, "a read response without a read");
    }
    const std::uint64_t end = responded_ + fields.size;
    if (end > request->length || fields.has(kLast) != (end == request->length)) {
        return fail(TerminateCode::ddp_tagged_base_bounds, "a read response of another length");
    }
    std::array<iovec, engine::kMaxIov> to;
    const std::size_t count = engine::gather(request->segments(), responded_, fields.size, to);
    // Where a region was closed there meanwhile it may have been this one.
    const auto gone = [&] {
        return fields.has(kElsewhere) &&
               side_.peers->regions_gone.load(std::memory_order_acquire) != fields.address;
    };
    const Step step = gone() ? Step::taken : fetch(fields, record, {to.data(), count});
    if (step != Step::taken && !gone()) {
        return step;
    }
    lost_ = false;
    fault_ = {};
    void_ |= gone();
    responded_ = end;
    responding_ = !fields.has(kLast);
    if (responding_) {
        return Step::taken;
    }
    if (void_) {
        sender_.ask_again(responding_to_);
    } else {
        sender_.answered(responding_to_);
    }
    return Step::taken;
}

Receiver::Step Receiver::atomic(const Fields& fields, const Record& record) {
    AtomicRequest request;
    if (fields.size != sizeof request) {
        return fail(TerminateCode::rdmap_unspecified, "an atomic request of another size");
    }
    std::memcpy(&request, record.payload.data(), sizeof request);
    const engine::OpCode op =
        request.swap != 0 ? engine::OpCode::compare_swap : engine::OpCode::fetch_add;
    std::uint64_t before = 0;
    const engine::Permission permission = engine::carry_out(
        endpoint_, op, {request.data, request.mask, request.compare, request.compare_mask},
        fields.key, fields.address, sender_.can_respond(), before);
    if (!permission) {
        return deny(iwarp::complaint(permission));
    }
    sender_.respond_atomic(request.number, before);
    return Step::taken;
}

Receiver::Step Receiver::atomic_response(const Fields& fields, const Record& record) {
    const engine::Request* request = sender_.waiting(fields.key, true);
    if (!request || fields.size != sizeof(std::uint64_t)) {
        return fail(TerminateCode::rdmap_unexpected_opcode, "an atomic response without a request");
    }
    if (request->iov_count > 0) {
        std::memcpy(request->iov.base, record.payload.data(), sizeof(std::uint64_t));
    }
    sender_.answered(fields.key);
    return Step::taken;
}

} // namespace dat::shm
