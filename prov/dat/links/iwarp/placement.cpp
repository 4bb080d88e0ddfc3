// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where the payload of a segment goes: into a receive, a registered region, the
// buffer of a read, or aside where there is no receive yet. See receiver.h.
#include "links/iwarp/faults.h"
#include "links/iwarp/receiver.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace dat::iwarp {

using core::DtoStatus;

// Checks the segment at hand, of whose payload `start` is there, and sets target_ for all of it.
// False: fault.
bool Receiver::open(std::span<const std::byte> start) {
    switch (segment_.opcode) {
    case Opcode::rdma_write:
        break; // locate() checks it, at each piece
    case Opcode::read_response:
        if (!open_response()) {
            return false;
        }
        break;
    default:
        if (!open_send(start)) {
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
    target_.count = 0;
    if (size == 0) {
        return true; // RFC 5041 5.2: of an empty segment neither STag nor TO is checked
    }
    switch (segment_.opcode) {
    case Opcode::rdma_write: {
        const engine::Target found =
            engine::write_target(endpoint_, segment_.stag, segment_.to + done, size);
        if (!found.at) {
            const Complaint why = complaint(found.why, true);
            return fail(why.code, why.what);
        }
        target_.pieces[0] = {found.at, size};
        target_.count = 1;
        return true;
    }
    case Opcode::read_response: {
        const engine::Request& read = endpoint_.request(sender_.oldest_read());
        target_.add(read.segments(), response_bytes_ + done, size);
        return true;
    }
    default:
        return inbox_.room(size, target_, done) || inbox_failed();
    }
}

bool Receiver::open_send(std::span<const std::byte> start) {
    if (dat_peer_ && carries_ack_count(segment_.opcode)) {
        sender_.confirmed(segment_.ulp_word);
    }
    if (segment_.msn != send_msn_) {
        return fail(TerminateCode::ddp_untagged_msn_range, "a message's number is wrong");
    }
    if (segment_.mo != static_cast<std::uint32_t>(inbox_.received())) {
        return fail(TerminateCode::ddp_untagged_invalid_mo, "a segment's offset is wrong");
    }
    return inbox_.open() || inbox_.begin(start) || inbox_failed();
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
        inbox_.written();
        placed_one();
        endpoint_.remote_written(segment_.stag);
    }
    return true;
}

// A message or a write has been taken.
void Receiver::placed_one() {
    ack_wanted_ |= segment_.ack_wanted;
    sender_.note_placed(inbox_.placed());
}

// What the opcode at hand says to the receiver's completion.
std::uint8_t Receiver::arrival() const {
    return static_cast<std::uint8_t>(
        (is_solicited(segment_.opcode) ? engine::kSolicited : engine::kPlain) |
        (invalidates(segment_.opcode) ? engine::kInvalidated : engine::kPlain) |
        (carries_data(segment_.opcode) ? engine::kWithData : engine::kPlain));
}

// RFC 7306: the data of the write before it (U-62).
bool Receiver::immediate(std::span<const std::byte> payload) {
    if (segment_.msn != send_msn_) {
        return fail(TerminateCode::ddp_untagged_msn_range, "a message's number is wrong");
    }
    if (inbox_.open() || writing_) {
        return fail(TerminateCode::ddp_untagged_invalid_mo, "data in the middle of a message");
    }
    std::uint64_t value = 0;
    const SegmentError error = decode_immediate(payload, value);
    if (error != SegmentError::none) {
        return fail(terminate_code(error), text(error));
    }
    const auto how = static_cast<std::uint8_t>(arrival() | engine::kWithData | engine::kByWrite);
    if (!inbox_.written(std::exchange(written_, 0), how, value)) {
        return inbox_failed();
    }
    ++send_msn_;
    placed_one();
    return true;
}

bool Receiver::close_send() {
    inbox_.filled(payload_size_);
    if (!segment_.last) {
        return true;
    }
    const std::uint8_t how = arrival();
    std::uint64_t says = 0;
    if ((how & engine::kWithData) != 0) {
        says = std::exchange(high_data_, 0) << 32 | segment_.ulp_word;
    } else if ((how & engine::kInvalidated) != 0) {
        says = segment_.ulp_word;
    }
    if (!inbox_.finish(how, says)) {
        return inbox_failed();
    }
    ++send_msn_;
    placed_one();
    return true;
}

bool Receiver::receive_posted() {
    if (!inbox_.receive_posted()) {
        return inbox_failed();
    }
    sender_.note_placed(inbox_.placed());
    return true;
}

bool Receiver::inbox_failed() {
    const Complaint why = complaint(inbox_.wrong());
    const bool memory = inbox_.wrong() == engine::Inbox::Wrong::no_memory;
    return fail(why.code, why.what,
                memory           ? Fault::Kind::memory
                : why.of_receive ? Fault::Kind::receive
                                 : Fault::Kind::protocol);
}

} // namespace dat::iwarp
