// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See receiver.h: from bytes to frames, and what is not payload. Where payload goes
// stands in placement.cpp.
#include "links/iwarp/receiver.h"

#include "base/attempt.h"
#include "base/copy.h"
#include "engine/place.h"
#include "engine/responder.h"
#include "links/iwarp/faults.h"
#include "links/iwarp/trace_frame.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>

namespace dat::iwarp {

Receiver::Receiver(engine::Endpoint& endpoint, Sender& sender, const LinkParameters& parameters)
    : endpoint_(endpoint), domain_(endpoint.domain()), sender_(sender),
      dat_peer_(parameters.dat_peer), crc_(parameters.crc), traces_frames_(traces_frames(endpoint)),
      no_straight_(crc_ || traces_frames_), await_rtr_(parameters.await_rtr), inbox_(endpoint) {}

// In the middle of a frame, or where a large one is expected.
std::span<iovec> Receiver::special_room() {
    const auto scratch = domain_.in_scratch();
    std::size_t count = 0;
    std::size_t tail = scratch.size() - frame_.size();
    std::byte* at = scratch.data() + frame_.size();
    // A header, and what says where the payload of a message for a MessageSink goes.
    const engine::MessageSink* const sink = endpoint_.sink();
    const std::size_t header = kFpduUntaggedHeaderSize + (sink ? sink->longest_head() : 0);
    if (placing_) {
        // What is behind the payload is read along; behind a large one only as far as the
        // next header, so that another large payload goes straight to its place as well.
        if (!locate(placed_bytes_)) {
            return {};
        }
        for (std::size_t i = 0; i < target_.count; ++i) {
            room_[count++] = target_.pieces[i];
        }
        at = scratch.data();
        tail = large_ ? kFpduMaxTrailer + header + kAlong : scratch.size();
    } else if (!frame_.empty()) {
        std::memcpy(scratch.data(), frame_.data(), frame_.size());
        tail = large_ ? std::min(tail, missing() + header + kAlong) : tail;
    } else if (large_) {
        tail = skip_ + header + kAlong;
    }
    room_[count++] = {at, tail};
    return {room_.data(), count};
}

// Of the frame that has begun.
std::size_t Receiver::missing() const {
    const bool known = frame_.size() >= kFpduLengthSize;
    const std::size_t whole = known ? fpdu_size(peek_ulpdu_size(frame_.data())) : 0;
    return whole > frame_.size() ? whole - frame_.size() : 0;
}

bool Receiver::arrived(std::size_t n) {
    std::span<const std::byte> bytes(domain_.in_scratch().data(), n);
    if (placing_) {
        const std::size_t direct = std::min(n, payload_size_ - placed_bytes_);
        placed_bytes_ += direct;
        if (placed_bytes_ < payload_size_) {
            return true;
        }
        placing_ = false;
        skip_ = fpdu_pad(ulpdu_size_) + kFpduCrcSize;
        if (!close()) {
            return false;
        }
        bytes = bytes.first(n - direct);
    } else if (!frame_.empty()) {
        bytes = {n == 0 ? frame_.data() : bytes.data(), frame_.size() + n};
    }
    const std::size_t used = consume(bytes);
    if (fault_.kind != Fault::Kind::none) {
        return false;
    }
    if (used < bytes.size() || !frame_.empty()) [[unlikely]] {
        return keep(bytes.subspan(used));
    }
    return true;
}

FrameCounter Receiver::frames_to_come() const {
    FrameCounter counter;
    if (placing_) {
        const std::size_t trailer = fpdu_pad(ulpdu_size_) + kFpduCrcSize;
        counter.inside(payload_size_ - placed_bytes_ + trailer,
                       segment_.opcode == Opcode::read_response && segment_.last);
    } else {
        counter.inside(skip_, false);
    }
    counter.feed(frame_);
    return counter;
}

// Keeps the beginning of a frame until its rest comes. With CRC on that may be as
// large as a frame, which is not for an idle connection to hold.
bool Receiver::keep(std::span<const std::byte> left) {
    constexpr std::size_t kIdle = 256;
    if (!frame_.empty() && left.data() >= frame_.data() &&
        left.data() <= frame_.data() + frame_.size()) {
        frame_.erase(frame_.begin(), frame_.end() - static_cast<std::ptrdiff_t>(left.size()));
    } else if (!base::attempt([&] { frame_.assign(left.begin(), left.end()); })) {
        return fail(TerminateCode::ddp_catastrophic, "there is no memory for a part of a frame",
                    Fault::Kind::memory);
    }
    if (frame_.empty() && frame_.capacity() > kIdle) {
        std::vector<std::byte>().swap(frame_);
    }
    return true;
}

// Takes whole frames, and the beginning of one whose payload can be read straight to
// its place. Returns how many bytes those were; 0 or more, also with a fault.
std::size_t Receiver::consume(std::span<const std::byte> bytes) {
    std::size_t used = std::min(skip_, bytes.size());
    skip_ -= used;
    for (;;) {
        used += take_messages(bytes.subspan(used));
        const auto rest = bytes.subspan(used);
        if (rest.size() < kFpduLengthSize) [[likely]] {
            return used;
        }
        ulpdu_size_ = peek_ulpdu_size(rest.data());
        const std::size_t whole = fpdu_size(ulpdu_size_);
        if (rest.size() < whole) {
            return begin_direct(rest) ? bytes.size() : used;
        }
        used += whole;
        if (!frame(rest.first(whole))) {
            return used;
        }
    }
}

// The usual case, straight: whole plain Sends, each a message by itself, and a receive
// of one segment for each. Returns how many bytes those were. At what follows something
// is different, and nothing of it has been done: frame() is to see to it.
std::size_t Receiver::take_messages(std::span<const std::byte> bytes) {
    constexpr std::uint32_t kPlainSend = ddp_control(false, true, rdmap_octet(Opcode::send));
    if (no_straight_ || await_rtr_ || !inbox_.idle()) [[unlikely]] {
        return 0;
    }
    const std::byte* at = bytes.data();
    const std::byte* const end = at + bytes.size();
    while (end - at >= static_cast<std::ptrdiff_t>(fpdu_size(kDdpUntaggedHeaderSize))) {
        const auto begin = load_be<std::uint32_t>(at);
        const auto queue = load_be<std::uint32_t>(at + 8);
        const auto msn = load_be<std::uint32_t>(at + 12);
        const auto offset = load_be<std::uint32_t>(at + 16);
        const std::size_t ulpdu = begin >> 16;
        const std::size_t size = ulpdu - kDdpUntaggedHeaderSize;
        if ((begin & 0xffff) != kPlainSend || queue != kQueueSend || msn != send_msn_ ||
            offset != 0 || ulpdu < kDdpUntaggedHeaderSize ||
            end - at < static_cast<std::ptrdiff_t>(fpdu_size(ulpdu))) [[unlikely]] {
            break;
        }
        const engine::Receive* receive = inbox_.fast(size);
        if (!receive && !endpoint_.sink()) [[unlikely]] {
            break;
        }
        if (dat_peer_) {
            sender_.confirmed(load_be<std::uint32_t>(at + 4));
        }
        awake_ = true;
        large_ = size >= kLargeSize;
        ++send_msn_;
        if (receive) [[likely]] {
            inbox_.take(*receive, at + kFpduUntaggedHeaderSize, size);
        } else if (!inbox_.sink(at + kFpduUntaggedHeaderSize, size)) {
            inbox_failed();
            return bytes.size(); // nothing is taken after a fault
        }
        sender_.note_placed(inbox_.placed());
        at += fpdu_size(ulpdu);
    }
    return static_cast<std::size_t>(at - bytes.data());
}

// A frame that is whole.
bool Receiver::frame(std::span<const std::byte> fpdu) {
    const auto ulpdu = fpdu.subspan(kFpduLengthSize, ulpdu_size_);
    header_size_ = std::min(ulpdu.size(), header_.size());
    std::memcpy(header_.data(), ulpdu.data(), header_size_);
    if (crc_ && !fpdu_crc_ok(fpdu.data())) {
        return fail(TerminateCode::mpa_crc, "a frame's CRC is wrong");
    }
    awake_ = true;
    const bool first = std::exchange(await_rtr_, false);
    if (first && ulpdu.empty()) {
        return true; // RFC 6581: ready-to-receive as an empty frame
    }
    const SegmentError error = decode_segment(ulpdu, dat_peer_, segment_);
    if (error != SegmentError::none) {
        return fail(terminate_code(error), text(error));
    }
    const auto payload = ulpdu.subspan(segment_.header_size);
    payload_size_ = payload.size();
    const bool has_place = segment_.tagged || is_send(segment_.opcode);
    if (has_place) {
        note_size();
    }
    if (traces_frames_) [[unlikely]] {
        trace_frame(endpoint_, false, segment_, payload_size_);
    }
    if (first && segment_.opcode == Opcode::rdma_write && payload.empty() && segment_.last) {
        return true; // ready-to-receive as a write: not one of the peer's requests
    }
    if (!has_place) {
        return control(payload);
    }
    if (!open(payload)) {
        return false;
    }
    const std::byte* from = payload.data();
    for (std::size_t i = 0; i < target_.count; ++i) {
        engine::place(static_cast<std::byte*>(target_.pieces[i].iov_base), from,
                      target_.pieces[i].iov_len);
        from += target_.pieces[i].iov_len;
    }
    return close();
}

// Where the header is there and most of the payload is not, the rest is read
// straight to where it belongs. Not with CRC: nothing is placed unchecked.
bool Receiver::begin_direct(std::span<const std::byte> part) {
    if (crc_ || await_rtr_ || part.size() < kFpduUntaggedHeaderSize) {
        return false;
    }
    const auto ulpdu = part.subspan(kFpduLengthSize);
    if (ulpdu.size() + kDirectSize > ulpdu_size_ ||
        decode_segment(ulpdu, dat_peer_, segment_) != SegmentError::none ||
        (!segment_.tagged && !is_send(segment_.opcode))) {
        return false;
    }
    awake_ = true;
    header_size_ = segment_.header_size;
    std::memcpy(header_.data(), ulpdu.data(), header_size_);
    const auto payload = ulpdu.subspan(segment_.header_size);
    payload_size_ = ulpdu_size_ - segment_.header_size;
    if (traces_frames_) [[unlikely]] {
        trace_frame(endpoint_, false, segment_, payload_size_);
    }
    if (!open(payload)) {
        return true;
    }
    std::size_t done = 0;
    for (std::size_t i = 0; i < target_.count && done < payload.size(); ++i) {
        const iovec& to = target_.pieces[i];
        const std::size_t piece = std::min<std::size_t>(to.iov_len, payload.size() - done);
        base::copy(static_cast<std::byte*>(to.iov_base), payload.data() + done, piece);
        done += piece;
    }
    placing_ = true;
    note_size();
    placed_bytes_ = done;
    return true;
}

bool Receiver::control(std::span<const std::byte> payload) {
    if (!segment_.last || segment_.mo != 0) {
        return fail(TerminateCode::ddp_untagged_invalid_mo,
                    "a control message in several segments");
    }
    switch (segment_.opcode) {
    case Opcode::read_request:
        return read_request(payload);
    case Opcode::atomic_request:
        return atomic_request(payload);
    case Opcode::atomic_response:
        return atomic_response(payload);
    case Opcode::immediate:
    case Opcode::immediate_se:
        return immediate(payload);
    case Opcode::high_data:
        high_data_ = segment_.ulp_word;
        return true;
    case Opcode::ack:
        sender_.confirmed(segment_.ulp_word);
        return true;
    case Opcode::terminate: {
        Terminate terminate;
        const bool readable = decode_terminate(payload, terminate);
        const TerminateCode code = readable ? terminate.code : TerminateCode::rdmap_unspecified;
        return fail(code, text(code), Fault::Kind::terminate);
    }
    default:
        return fail(TerminateCode::rdmap_unexpected_opcode, text(segment_.opcode));
    }
}

// RFC 5040 5.2.2: everything is checked before a byte is answered.
bool Receiver::read_request(std::span<const std::byte> payload) {
    if (segment_.msn != read_msn_++) {
        return fail(TerminateCode::ddp_untagged_msn_range, "a read request's number is wrong");
    }
    ReadRequest request;
    const SegmentError error = decode_read_request(payload, request);
    if (error != SegmentError::none) {
        return fail(terminate_code(error), text(error));
    }
    const engine::Permission permission =
        engine::may_read(endpoint_, request.source_stag, request.source_to,
                         sender_.size_of(request), sender_.can_respond());
    if (!permission) {
        return deny(permission);
    }
    sender_.respond(request);
    return true;
}

// RFC 7306: as a read request it has a number of that queue, and a place among the
// responses. It is carried out now: what came before it is placed already.
bool Receiver::atomic_request(std::span<const std::byte> payload) {
    if (segment_.msn != read_msn_++) {
        return fail(TerminateCode::ddp_untagged_msn_range, "an atomic request's number is wrong");
    }
    AtomicRequest request;
    const SegmentError error = decode_atomic_request(payload, request);
    if (error != SegmentError::none) {
        return fail(terminate_code(error), text(error));
    }
    const bool known = request.op == static_cast<std::uint8_t>(AtomicOp::fetch_add) ||
                       request.op == static_cast<std::uint8_t>(AtomicOp::compare_swap);
    if (!known) {
        return fail(TerminateCode::rdmap_unspecified, "an atomic operation that does not exist");
    }
    const bool adds = request.op == static_cast<std::uint8_t>(AtomicOp::fetch_add);
    std::uint64_t before = 0;
    const engine::Permission permission = engine::carry_out(
        endpoint_, adds ? engine::OpCode::fetch_add : engine::OpCode::compare_swap,
        {request.data, request.mask, request.compare, request.compare_mask}, request.stag,
        request.to, sender_.can_respond(), before);
    if (!permission) {
        return deny(permission);
    }
    sender_.respond(AtomicResponse{request.request_id, before});
    return true;
}

bool Receiver::atomic_response(std::span<const std::byte> payload) {
    if (segment_.msn != atomic_msn_++) {
        return fail(TerminateCode::ddp_untagged_msn_range, "an atomic response's number is wrong");
    }
    AtomicResponse response;
    const SegmentError error = decode_atomic_response(payload, response);
    if (error != SegmentError::none) {
        return fail(terminate_code(error), text(error));
    }
    if (!sender_.reading() || !sender_.oldest_is_atomic() ||
        response.request_id != sender_.oldest_id()) {
        return fail(TerminateCode::rdmap_unexpected_opcode, "an atomic response without a request");
    }
    const std::uint64_t seq = sender_.oldest_read();
    const engine::Request& request = endpoint_.request(seq);
    if (request.iov_count > 0) {
        std::memcpy(request.iov.base, &response.original, sizeof response.original);
    }
    sender_.read_done();
    endpoint_.finish_request(seq, core::DtoStatus::success);
    return true;
}

bool Receiver::take_ack_due() {
    if (told_ == inbox_.placed()) {
        return false;
    }
    told_ = inbox_.placed();
    ack_wanted_ = inbox_.has_staged(); // told when those are placed
    return true;
}

bool Receiver::fail(TerminateCode code, const char* what, Fault::Kind kind) {
    fault_.kind = kind;
    fault_.code = code;
    fault_.what = what;
    fault_.header = header_;
    fault_.header_size = header_size_;
    fault_.ulpdu_size = ulpdu_size_;
    return false;
}

bool Receiver::deny(const engine::Permission& denied) {
    const Complaint why = complaint(denied);
    return fail(why.code, why.what);
}

} // namespace dat::iwarp
