// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where the payload of a segment goes: into a receive, a registered region, the
// buffer of a read, or aside where there is no receive yet. See receiver.h.
// May include: soft, core.
#include "soft/iwarp/receiver.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace dat::iwarp {

using core::DtoStatus;

// Checks the segment at hand and sets target_ for its whole payload. False: fault.
bool Receiver::open() {
    switch (segment_.opcode) {
    case Opcode::rdma_write:
        break; // locate() checks it, at each piece
    case Opcode::read_response:
        if (!open_response()) {
            return false;
        }
        break;
    default:
        if (!open_send()) {
            return false;
        }
    }
    return locate(0);
}

// The part of the segment's payload behind its first `done` bytes. Looked up each
// time something is placed: a region may have been closed in between, and what is
// staged may have found its receive.
bool Receiver::locate(std::uint64_t done) {
    const std::size_t size = payload_size_ - done;
    target_count_ = 0;
    if (size == 0) {
        return true; // RFC 5041 5.2: of an empty segment neither STag nor TO is checked
    }
    switch (segment_.opcode) {
    case Opcode::rdma_write: {
        const soft::Target found = domain_.regions().find(segment_.stag, segment_.to + done, size,
                                                          soft::kRemoteWrite, endpoint_.zone());
        if (!found.at) {
            return refuse(found.why, true);
        }
        target_[0] = {found.at, size};
        target_count_ = 1;
        return true;
    }
    case Opcode::read_response: {
        const soft::Request& read = endpoint_.request(sender_.oldest_read());
        gather(read.segments(), response_bytes_ + done, size);
        return true;
    }
    default:
        if (assembling_) {
            const soft::Receive& receive = endpoint_.receive(receive_);
            gather(receive.segments(), received_ + done, size);
        } else {
            target_[0] = {waiting_->staged.back().data.data() + received_ + done, size};
            target_count_ = 1;
        }
        return true;
    }
}

// target_ becomes bytes [offset, offset + size) of `iov`, which has them.
void Receiver::gather(std::span<const soft::Iov> iov, std::uint64_t offset, std::size_t size) {
    for (const soft::Iov& piece : iov) {
        if (offset >= piece.length) {
            offset -= piece.length;
            continue;
        }
        const std::size_t length = std::min<std::uint64_t>(piece.length - offset, size);
        target_[target_count_++] = {piece.base + offset, length};
        offset = 0;
        size -= length;
        if (size == 0) {
            return;
        }
    }
    assert(size == 0);
}

bool Receiver::open_send() {
    if (dat_peer_ && carries_ack_count(segment_.opcode)) {
        sender_.confirmed(segment_.ulp_word);
    }
    if (segment_.msn != send_msn_) {
        return fail(TerminateCode::ddp_untagged_msn_range, "a message's number is wrong");
    }
    if (segment_.mo != received_) {
        return fail(TerminateCode::ddp_untagged_invalid_mo, "a segment's offset is wrong");
    }
    const bool begun = assembling_ || is_staging();
    if (!begun) {
        if (!has_staged() && endpoint_.has_receive()) {
            receive_ = endpoint_.match_receive();
            assembling_ = true;
            if (endpoint_.of_old_zone(receive_)) [[unlikely]] {
                return wrong_zone();
            }
        } else { // U-9
            stage();
        }
    }
    const std::uint64_t end = received_ + payload_size_;
    if (assembling_) {
        return end <= endpoint_.receive(receive_).capacity || overlong(end);
    }
    waiting_->staged.back().data.resize(end);
    waiting_->bytes += payload_size_;
    return true;
}

// A response belongs to the oldest read and to nothing else: neither the key nor the
// address that the peer sends is ever looked up.
bool Receiver::open_response() {
    if (!sender_.reading() || sender_.oldest_is_atomic()) {
        return fail(TerminateCode::rdmap_unexpected_opcode, "a read response without a read");
    }
    if (payload_size_ > 0 && segment_.stag != sender_.sink_stag()) {
        return fail(TerminateCode::ddp_tagged_invalid_stag, "a read response with another key");
    }
    if (payload_size_ > 0 && segment_.to != response_bytes_) {
        return fail(TerminateCode::ddp_tagged_base_bounds, "a read response at another offset");
    }
    const std::uint64_t wanted = sender_.oldest_read_size();
    const std::uint64_t end = response_bytes_ + payload_size_;
    if (end > wanted || segment_.last != (end == wanted)) {
        return fail(TerminateCode::ddp_tagged_base_bounds, "a read response of another length");
    }
    return true;
}

// The segment's payload is in place.
bool Receiver::close() {
    if (is_send(segment_.opcode)) {
        return close_send();
    }
    if (segment_.opcode == Opcode::read_response) {
        response_bytes_ += payload_size_;
        if (segment_.last) {
            const std::uint64_t read = sender_.oldest_read();
            response_bytes_ = 0;
            sender_.read_done();
            endpoint_.finish_request(read, DtoStatus::success);
        }
        return true;
    }
    written_ = writing_ ? written_ + payload_size_ : payload_size_;
    writing_ = !segment_.last;
    if (segment_.last) {
        ++taken_;
        ack_wanted_ |= segment_.ack_wanted;
        sender_.note_placed(placed());
        endpoint_.remote_written(segment_.stag);
    }
    return true;
}

// What the opcode at hand says to the receiver's completion.
std::uint8_t Receiver::arrival() const {
    return static_cast<std::uint8_t>(
        (is_solicited(segment_.opcode) ? soft::kSolicited : soft::kPlain) |
        (invalidates(segment_.opcode) ? soft::kInvalidated : soft::kPlain) |
        (carries_data(segment_.opcode) ? soft::kWithData : soft::kPlain));
}

bool Receiver::too_much_waits() const {
    return waiting_->bytes > domain_.settings().unexpected_bytes ||
           waiting_->unannounced.size() > kUnannounced;
}

Receiver::Waiting& Receiver::waiting() {
    if (!waiting_) {
        waiting_ = std::make_unique<Waiting>();
    }
    return *waiting_;
}

void Receiver::forget_waiting() {
    if (waiting_ && waiting_->staged.empty() && waiting_->unannounced.empty()) {
        waiting_.reset();
    }
}

// There is no receive for the message that begins.
void Receiver::stage() { // U-9
    waiting().staged.emplace_back();
    waiting_->staged.back().ordinal = taken_ + 1;
    waiting_->bytes += kStagedOverhead;
    endpoint_.set_starved(true);
}

// RFC 7306: the data of the write before it (U-62).
bool Receiver::immediate(std::span<const std::byte> payload) {
    if (segment_.msn != send_msn_) {
        return fail(TerminateCode::ddp_untagged_msn_range, "a message's number is wrong");
    }
    if (assembling_ || received_ > 0 || is_staging() || writing_) {
        return fail(TerminateCode::ddp_untagged_invalid_mo, "data in the middle of a message");
    }
    std::uint64_t value = 0;
    const SegmentError error = decode_immediate(payload, value);
    if (error != SegmentError::none) {
        return fail(terminate_code(error), text(error));
    }
    const auto how = static_cast<std::uint8_t>(arrival() | soft::kWithData | soft::kByWrite);
    const std::uint64_t length = std::exchange(written_, 0);
    if (!endpoint_.writes_take_receives()) {
        if (awaits_room() || !endpoint_.announce_write(length, how, value)) {
            waiting().unannounced.push_back({length, value, how});
        }
    } else if (!has_staged() && endpoint_.has_receive()) {
        const std::uint64_t receive = endpoint_.match_receive();
        endpoint_.complete_receive(receive, DtoStatus::success, length, how, value);
    } else {
        stage();
        Staged& staged = waiting_->staged.back();
        staged.whole = true;
        staged.how = how;
        staged.value = value;
        staged.length = length;
    }
    ++send_msn_;
    ++taken_;
    ack_wanted_ |= segment_.ack_wanted;
    sender_.note_placed(placed());
    return true;
}

void Receiver::announce_writes() {
    while (awaits_room()) {
        const Unannounced& write = waiting_->unannounced.front();
        if (!endpoint_.announce_write(write.length, write.how, write.value)) {
            return;
        }
        waiting_->unannounced.pop_front();
    }
}

void Receiver::announce_rest() {
    for (; awaits_room(); waiting_->unannounced.pop_front()) {
        const Unannounced& write = waiting_->unannounced.front();
        endpoint_.announce_write(write.length, write.how, write.value, true);
    }
}

bool Receiver::close_send() {
    received_ += payload_size_;
    if (!segment_.last) {
        return true;
    }
    if (invalidates(segment_.opcode) && !invalidate()) {
        return false;
    }
    const std::uint64_t size = std::exchange(received_, 0);
    ++send_msn_;
    ++taken_;
    ack_wanted_ |= segment_.ack_wanted;
    const std::uint8_t how = arrival();
    const bool says = (how & (soft::kWithData | soft::kInvalidated)) != 0;
    const std::uint64_t value = says ? segment_.ulp_word : 0;
    if (std::exchange(assembling_, false)) {
        endpoint_.complete_receive(receive_, DtoStatus::success, size, how, value);
    } else {
        Staged& staged = waiting_->staged.back();
        staged.whole = true;
        staged.how = how;
        staged.value = value;
    }
    sender_.note_placed(placed());
    return true;
}

// RFC 5040 5.1: the key of a Send with Invalidate must be one that may be ended so.
bool Receiver::invalidate() {
    const soft::Target target =
        domain_.regions().find(segment_.ulp_word, 0, 0, soft::kRemoteInvalidate, endpoint_.zone());
    if (target.why != soft::Refusal::none && target.why != soft::Refusal::out_of_range) {
        if (assembling_) {
            endpoint_.complete_receive(receive_, DtoStatus::local_protection, 0);
        }
        return fail(TerminateCode::rdmap_protection_cannot_invalidate,
                    "the key is not one that a peer may invalidate");
    }
    domain_.regions().remove(segment_.ulp_word);
    return true;
}

bool Receiver::receive_posted() {
    announce_writes();
    while (has_staged() && endpoint_.has_receive()) {
        Staged message = std::move(waiting_->staged.front());
        waiting_->staged.pop_front();
        waiting_->bytes -= message.data.size() + kStagedOverhead;
        if (!hand_over(message)) {
            return false;
        }
    }
    endpoint_.set_starved(has_staged());
    forget_waiting();
    sender_.note_placed(placed());
    return true;
}

// Moves a staged message into the next receive. One that is still arriving goes on
// there.
bool Receiver::hand_over(Staged& message) {
    receive_ = endpoint_.match_receive();
    const soft::Receive& receive = endpoint_.receive(receive_);
    if (endpoint_.of_old_zone(receive_)) [[unlikely]] {
        return wrong_zone();
    }
    if (message.data.size() > receive.capacity) {
        return overlong(message.data.size());
    }
    target_count_ = 0;
    if (!message.data.empty()) {
        gather(receive.segments(), 0, message.data.size());
    }
    const std::byte* from = message.data.data();
    for (std::size_t i = 0; i < target_count_; ++i) {
        std::memcpy(target_[i].base, from, target_[i].length);
        from += target_[i].length;
    }
    if (message.whole) {
        const std::uint64_t length =
            (message.how & soft::kByWrite) != 0 ? message.length : message.data.size();
        endpoint_.complete_receive(receive_, DtoStatus::success, length, message.how,
                                   message.value);
    } else {
        assembling_ = true;
    }
    return true;
}

// EPA-7, U-32.
bool Receiver::wrong_zone() {
    assembling_ = false;
    endpoint_.complete_receive(receive_, DtoStatus::local_protection, 0);
    return fail(TerminateCode::rdmap_catastrophic, "a receive is of another protection zone",
                Fault::Kind::receive);
}

// DTO-9, U-8.
bool Receiver::overlong(std::uint64_t size) {
    const std::uint64_t capacity = endpoint_.receive(receive_).capacity;
    assembling_ = false;
    endpoint_.complete_receive(receive_, DtoStatus::local_length, 0, soft::kPlain, 0,
                               size - capacity);
    return fail(TerminateCode::ddp_untagged_too_long, "a message is longer than its receive",
                Fault::Kind::receive);
}

} // namespace dat::iwarp
