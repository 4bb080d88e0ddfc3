// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See sender.h.
#include "links/shm/sender.h"

#include "base/assert.h"
#include "base/copy.h"
#include "engine/barrier.h"
#include "engine/inbox.h"

#include <algorithm>
#include <array>
#include <utility>

namespace dat::shm {

namespace {

void copy(std::byte* to, std::span<const engine::Iov> iov, std::uint64_t offset, std::size_t size) {
    std::array<iovec, engine::kMaxIov> from;
    const std::size_t count = engine::gather(iov, offset, size, from);
    for (std::size_t i = 0; i < count; ++i) {
        base::copy(to, static_cast<const std::byte*>(from[i].iov_base), from[i].iov_len);
        to += from[i].iov_len;
    }
}

// nullptr: there are no more than `few`. Throws std::bad_alloc.
template <class T> std::unique_ptr<T[]> own(std::uint16_t count, std::uint16_t few) {
    return count > few ? std::make_unique_for_overwrite<T[]>(count) : nullptr;
}

std::uint8_t flag(bool on, Flags flag) {
    return on ? static_cast<std::uint8_t>(flag) : std::uint8_t{0};
}

} // namespace

Sender::Sender(engine::Endpoint& endpoint, const Side& side, const LinkParameters& parameters)
    : endpoint_(endpoint), side_(side), ord_(parameters.ord),
      next_(endpoint.core().requests().next()), seldom_(endpoint.domain().sparse_memory()),
      confirmations_(endpoint), own_reads_(own<Open>(parameters.ord, kFew)),
      own_responses_(own<Response>(parameters.ird, kFew)),
      reads_(own_reads_ ? own_reads_.get() : seldom_->reads.data(),
             std::max<std::uint16_t>(parameters.ord, 1)),
      responses_(parameters.ird, {own_responses_ ? own_responses_.get() : seldom_->responses.data(),
                                  engine::Responses<Response>::places(parameters.ird)}) {}

void Sender::part() {
    if (std::exchange(watching_, false)) {
        endpoint_.domain().regions().unwatch(*this);
    }
}

void Sender::region_gone() {
    side_.mine->regions_gone.fetch_add(1, std::memory_order_seq_cst);
    engine::full_fence(); // the region has something else in it only after this is seen
}

// --- what the peer has taken and placed ---

bool Sender::refresh() {
    const std::uint64_t taken = side_.peers->records_taken.load(std::memory_order_acquire);
    const std::uint64_t bytes = side_.peers->bytes_taken.load(std::memory_order_acquire);
    if (taken - taken_ > number_ - taken_ || bytes - bytes_taken_ > bytes_ - bytes_taken_) {
        violated_ = true;
        return false;
    }
    taken_ = taken;
    bytes_taken_ = bytes;
    return true;
}

bool Sender::look() {
    if (stuck_ && !refresh()) {
        return false;
    }
    const std::uint32_t placed = side_.peers->placed.load(std::memory_order_acquire);
    if (placed == confirmed_) {
        return true;
    }
    if (placed - confirmed_ > ordinal_ - confirmed_) {
        violated_ = true;
        return false;
    }
    confirmed_ = placed;
    confirmations_.placed(placed, next_);
    return true;
}

// --- records ---

// A record, with room for so much in the ring behind what is to be skipped; nullptr: not
// now.
Record* Sender::claim(std::size_t ring_bytes) {
    const auto fits = [&] {
        return number_ - taken_ < kRecords && bytes_ + ring_bytes - bytes_taken_ <= kRing;
    };
    if (!fits() && (!refresh() || !fits())) {
        stuck_ = true;
        return nullptr;
    }
    return &side_.out[number_];
}

// The next piece of a payload, as one record with the fields of `head`. Returns its bytes
// plus 1, or 0 where there is no room. `elsewhere` is set where it stays where it lies.
std::uint64_t Sender::send_piece(const Payload& payload, const Head& head, bool& elsewhere) {
    const std::uint64_t left = payload.length - payload.done;
    const bool is_short = left <= kInline; // all of it, or what is left behind full pieces
    const bool is_long = payload.length > kCopiedUnattended &&
                         (payload.length > kCopied || !endpoint_.domain().is_attended());
    const bool pulled =
        is_long && payload.may_be_pulled && side_.peers->pulls.load(std::memory_order_relaxed) != 0;
    const std::uint64_t size = pulled     ? std::min(left, kPulled)
                               : is_short ? left
                                          : std::min<std::uint64_t>(left, kPiece);
    std::size_t skip = 0;
    std::size_t ring = 0;
    if (!pulled && !is_short) {
        skip = ring_skip(bytes_, size);
        ring = skip + ring_size(size);
    }
    Record* record = claim(ring);
    if (!record) {
        return 0;
    }
    write_head(*record, head);
    record->size = static_cast<std::uint32_t>(size);
    record->flags = static_cast<std::uint8_t>(head.flags | flag(payload.done == 0, kFirst) |
                                              flag(size == left, kLast) | flag(pulled, kElsewhere) |
                                              flag(ring > 0, kInRing));
    if (pulled) {
        std::array<iovec, engine::kMaxIov> pieces;
        const std::size_t count = engine::gather(payload.iov, payload.done, size, pieces);
        std::array<Place, engine::kMaxIov> places;
        for (std::size_t i = 0; i < count; ++i) {
            places[i] = {reinterpret_cast<std::uintptr_t>(pieces[i].iov_base), pieces[i].iov_len};
        }
        record->places = static_cast<std::uint16_t>(count);
        std::memcpy(record->payload.data(), places.data(), count * sizeof(Place));
        elsewhere = true;
        if (payload.seq != UINT64_MAX) {
            left_at(left_tail_++) = {number_, payload.seq, payload.done};
        }
    } else {
        std::byte* to =
            is_short ? record->payload.data() : side_.out_bytes + (bytes_ + skip) % kRing;
        copy(to, payload.iov, payload.done, size);
    }
    publish(*record, ring);
    return size + 1;
}

// --- requests ---

Sender::Result Sender::push() {
    stuck_ = false;
    for (;;) {
        engine::carry_out_binds(endpoint_, next_, open_reads_ > 0);
        const bool requests = ready();
        bool went = true;
        if (again_ > 0) {
            went = send_again();
        } else if (!responses_.all(response_) && (responses_turn_ || !requests)) {
            responses_turn_ = false;
            went = send_response();
        } else if (requests) {
            responses_turn_ = true;
            went = send_request();
        } else {
            return Result::done;
        }
        if (!went) {
            return violated_                           ? Result::violated
                   : refusal_ != engine::Refusal::none ? Result::refused
                                                       : Result::stuck;
        }
    }
}

// Whether the next request may go. A read takes the place of the one `ord` reads before it.
bool Sender::ready() {
    if (next_ == endpoint_.core().requests().next()) {
        return false;
    }
    const engine::Request& request = endpoint_.request(next_);
    const bool asks = engine::is_answered(request.op);
    const bool served = asks && ord_ > 0 && !waits_for(read_number());
    return engine::may_go(request, offset_ > 0, open_reads_ > 0, asks, served);
}

// The place of the read of that number is taken: by it, or by an earlier one.
bool Sender::waits_for(std::uint32_t number) const {
    const std::size_t place = number % reads_.size();
    return place < read_count_ && reads_[place].waits;
}

// Of a message or write, but its address.
Head Sender::head_of(const engine::Request& request) {
    const bool invalidate = request.op == engine::OpCode::send_invalidate;
    Head head;
    head.kind = request.op == engine::OpCode::write ? Kind::write : Kind::send;
    head.flags =
        static_cast<std::uint8_t>(flag(request.solicited, kSolicited) |
                                  flag(invalidate, kInvalidate) | flag(request.has_data, kHasData));
    head.data = invalidate ? request.remote_key : request.data;
    head.key = request.remote_key;
    return head;
}

AtomicRequest Sender::atomic_of(const engine::Request& request, std::uint64_t seq,
                                std::uint32_t number) {
    engine::AtomicOperands with;
    std::memcpy(&with, endpoint_.inline_area(seq), sizeof with);
    return {with.data,         with.mask, with.compare,
            with.compare_mask, number,    request.op == engine::OpCode::compare_swap ? 1u : 0u};
}

bool Sender::send_request() {
    engine::Request& request = endpoint_.request(next_);
    if (engine::is_answered(request.op)) {
        return send_read(request);
    }
    Head head = head_of(request);
    head.address = request.remote_address + offset_;
    const std::uint64_t size = send_piece(
        {request.segments(), request.length, offset_, !request.inlined, next_}, head, elsewhere_);
    if (size == 0) {
        return false;
    }
    offset_ += size - 1;
    if (offset_ == request.length) {
        offset_ = 0;
        ++next_;
        sent(request, std::exchange(elsewhere_, false));
    }
    return true;
}

bool Sender::send_read(engine::Request& request) {
    Record* record = claim(0);
    if (!record) {
        return false;
    }
    Head head;
    head.kind = request.op == engine::OpCode::read ? Kind::read : Kind::atomic;
    head.key = request.remote_key;
    head.flags = kFirst | kLast;
    head.address = request.remote_address;
    write_head(*record, head);
    if (request.op == engine::OpCode::read) {
        const ReadRequest read{request.length, read_number(), 0};
        record->size = sizeof read;
        std::memcpy(record->payload.data(), &read, sizeof read);
    } else {
        const AtomicRequest atomic = atomic_of(request, next_, read_number());
        record->size = sizeof atomic;
        std::memcpy(record->payload.data(), &atomic, sizeof atomic);
    }
    publish(*record, 0);
    reads_[read_number() % reads_.size()] = {next_, read_number(), true, false};
    ++read_count_;
    ++open_reads_;
    ++next_;
    return true;
}

engine::Request* Sender::waiting(std::uint32_t number, bool atomic) {
    const Open& open = reads_[number % reads_.size()];
    if (!waits_for(number) || open.number != number || open.again) {
        return nullptr;
    }
    engine::Request& request = endpoint_.request(open.seq);
    return engine::is_atomic(request.op) == atomic ? &request : nullptr;
}

void Sender::answered(std::uint32_t number) {
    Open& open = reads_[number % reads_.size()];
    open.waits = false;
    --open_reads_;
    endpoint_.finish_request(open.seq, core::DtoStatus::success);
}

void Sender::ask_again(std::uint32_t number) {
    reads_[number % reads_.size()].again = true;
    ++again_;
}

bool Sender::send_again() {
    const auto written = reads_.first(std::min<std::uint64_t>(read_count_, reads_.size()));
    const auto open = std::find_if(written.begin(), written.end(),
                                   [](const Open& each) { return each.waits && each.again; });
    DAT_ASSERT(open != written.end());
    Record* record = claim(0);
    if (!record) {
        return false;
    }
    const engine::Request& request = endpoint_.request(open->seq);
    Head head;
    head.kind = Kind::read;
    head.key = request.remote_key;
    head.flags = kFirst | kLast;
    head.address = request.remote_address;
    write_head(*record, head);
    const ReadRequest read{request.length, open->number, 0};
    record->size = sizeof read;
    std::memcpy(record->payload.data(), &read, sizeof read);
    publish(*record, 0);
    open->again = false;
    --again_;
    return true;
}

// --- responses ---

void Sender::respond_read(const ReadRequest& request, std::uint32_t key, std::uint64_t address) {
    DAT_ASSERT(can_respond());
    responses_.queue({request.number, key, address, request.length, false});
}

void Sender::respond_atomic(std::uint32_t number, std::uint64_t before) {
    DAT_ASSERT(can_respond());
    responses_.queue({number, 0, before, sizeof before, true});
}

bool Sender::send_response() {
    Response& response = responses_.next(response_);
    Head head;
    head.kind = response.atomic ? Kind::atomic_response : Kind::response;
    head.key = response.number;
    std::byte* from = reinterpret_cast<std::byte*>(&response.address);
    if (!response.atomic && response.length > 0) {
        // Looked up for each piece: it may have been closed since.
        const engine::Target target =
            engine::read_source(endpoint_, response.key, response.address, response.length);
        if (!target.at) {
            refusal_ = target.why;
            return false;
        }
        from = target.at;
        if (!watching_) {
            endpoint_.domain().regions().watch(*this);
            watching_ = true;
        }
        head.address = side_.mine->regions_gone.load(std::memory_order_relaxed);
    }
    const engine::Iov iov{from, response.length};
    bool elsewhere = false;
    const std::uint64_t size =
        send_piece({{&iov, 1}, response.length, response_offset_, true}, head, elsewhere);
    if (size == 0) {
        return false;
    }
    response_offset_ += size - 1;
    if (response_offset_ == response.length) {
        response_offset_ = 0;
        ++response_;
        if (!response.atomic) {
            endpoint_.remote_read(response.key);
        }
    }
    return true;
}

} // namespace dat::shm
