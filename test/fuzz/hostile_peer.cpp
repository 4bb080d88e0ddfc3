// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See hostile_peer.h.
#include "hostile_peer.h"

#include "plain.h"

#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace fuzz {

using namespace dat::iwarp;

namespace {

// Header, payload and room for the trailer.
template <class Header> Bytes make_frame(const Header& header, std::span<const std::byte> payload) {
    Bytes frame(kFpduUntaggedHeaderSize + payload.size());
    std::byte* at = write_fpdu_header(frame.data(), payload.size(), header);
    std::copy(payload.begin(), payload.end(), at);
    frame.resize(static_cast<std::size_t>(at - frame.data()) + payload.size());
    return frame;
}

} // namespace

// --- frames ---

void HostilePeer::queue(Bytes frame, bool is_send) {
    clean_ = clean_ && twists_.empty();
    for (const Twist& twist : std::exchange(twists_, {})) {
        frame[twist.at % frame.size()] ^= static_cast<std::byte>(twist.with);
    }
    while (frame.size() % 4 != 0) {
        frame.push_back({});
    }
    const std::uint32_t crc = crc_ ? crc32c(0, frame) : 0;
    frame.resize(frame.size() + kFpduCrcSize);
    store_fpdu_crc(frame.data() + frame.size() - kFpduCrcSize, crc);
    last_frame_ = frame.size();
    other_bytes_ += is_send ? 0 : frame.size();
    queue_.insert(queue_.end(), frame.begin(), frame.end());
}

void HostilePeer::send(Opcode opcode, std::size_t size, bool last, bool ack_wanted,
                       std::uint32_t ulp_word) {
    UntaggedSegment segment;
    segment.opcode = opcode;
    segment.last = last;
    segment.ack_wanted = ack_wanted;
    segment.ulp_word = ulp_word;
    segment.msn = send_msn_;
    segment.mo = static_cast<std::uint32_t>(message_.size());
    const std::size_t begin = message_.size();
    message_.resize(begin + size);
    fill_message(std::span(message_).subspan(begin), send_msn_, begin);
    queue(make_frame(segment, std::span(message_).subspan(begin)), true);
    if (last) {
        ++send_msn_;
        messages_.push_back(std::exchange(message_, {}));
    }
}

void HostilePeer::write(std::uint32_t stag, std::uint64_t to, std::size_t size, bool last,
                        bool ack_wanted) {
    TaggedSegment segment;
    segment.last = last;
    segment.ack_wanted = ack_wanted;
    segment.stag = stag;
    segment.to = to;
    queue(make_frame(segment, Bytes(size, std::byte{0xdd})), false);
}

void HostilePeer::read_request(const ReadRequest& request) {
    UntaggedSegment segment;
    segment.opcode = Opcode::read_request;
    segment.queue = kQueueReadRequest;
    segment.msn = read_msn_++;
    Bytes payload(kReadRequestSize);
    write_read_request(payload.data(), request);
    queue(make_frame(segment, payload), false);
}

void HostilePeer::read_response(std::size_t size) {
    Read read{0, 0};
    if (reads_.empty()) {
        clean_ = false; // nobody asked
    } else {
        read = reads_.front();
    }
    if (read.atomic) {
        return answer_atomic(read);
    }
    size = std::min<std::size_t>(size, read.size - response_offset_);
    TaggedSegment segment;
    segment.opcode = Opcode::read_response;
    segment.stag = read.stag;
    segment.to = response_offset_;
    Bytes payload(size);
    fill_response(payload, answered_, response_offset_);
    response_offset_ += static_cast<std::uint32_t>(size);
    segment.last = response_offset_ == read.size;
    queue(make_frame(segment, payload), false);
    if (segment.last && !reads_.empty()) {
        reads_.pop_front();
        ++answered_;
        response_offset_ = 0;
    }
}

void HostilePeer::ack(std::uint32_t count) { say(Opcode::ack, count); }

void HostilePeer::high_data(std::uint32_t word) { say(Opcode::high_data, word); }

// A message of the queue of Acks.
void HostilePeer::say(Opcode opcode, std::uint32_t word) {
    UntaggedSegment segment;
    segment.opcode = opcode;
    segment.queue = kQueueAck;
    segment.msn = ack_msn_++;
    segment.ulp_word = word;
    queue(make_frame(segment, {}), false);
}

void HostilePeer::answer_atomic(const Read& read) {
    UntaggedSegment segment;
    segment.opcode = Opcode::atomic_response;
    segment.queue = kQueueAtomicResponse;
    segment.msn = atomic_msn_++;
    Bytes payload(kAtomicResponseSize);
    write_atomic_response(payload.data(),
                          {.request_id = read.stag, .original = response_value(answered_++)});
    queue(make_frame(segment, payload), false);
    reads_.pop_front();
}

void HostilePeer::immediate(std::uint64_t value, bool solicited) {
    clean_ = clean_ && message_.empty(); // not in the middle of a message
    UntaggedSegment segment;
    segment.opcode = solicited ? Opcode::immediate_se : Opcode::immediate;
    segment.msn = send_msn_++;
    Bytes payload(kImmediateSize);
    write_immediate(payload.data(), value);
    queue(make_frame(segment, payload), true);
}

void HostilePeer::atomic_request(const AtomicRequest& request) {
    UntaggedSegment segment;
    segment.opcode = Opcode::atomic_request;
    segment.queue = kQueueReadRequest;
    segment.msn = read_msn_++;
    Bytes payload(kAtomicRequestSize);
    write_atomic_request(payload.data(), request);
    queue(make_frame(segment, payload), false);
}

void HostilePeer::terminate(std::uint16_t code) {
    UntaggedSegment segment;
    segment.opcode = Opcode::terminate;
    segment.queue = kQueueTerminate;
    segment.msn = 1;
    Bytes payload(kTerminateControlSize);
    store_be(payload.data(), code);
    queue(make_frame(segment, payload), false);
}

void HostilePeer::empty_frame() { queue(Bytes(kFpduLengthSize), false); }

void HostilePeer::spoil(std::size_t at, std::uint8_t with) {
    clean_ = false;
    const std::size_t there = std::min(last_frame_, queue_.size());
    if (there > 0) {
        queue_[queue_.size() - there + at % there] ^= static_cast<std::byte>(with);
    }
}

void HostilePeer::raw(const Bytes& bytes) {
    clean_ = false;
    last_frame_ = bytes.size();
    queue_.insert(queue_.end(), bytes.begin(), bytes.end());
}

// --- the socket ---

void HostilePeer::deliver(std::size_t most) {
    std::size_t left = std::min(most, queue_.size());
    while (fd_ >= 0 && left > 0) {
        const ssize_t n = ::send(fd_, queue_.data(), left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) {
            return;
        }
        queue_.erase(queue_.begin(), queue_.begin() + n);
        delivered_ += static_cast<std::size_t>(n);
        left -= static_cast<std::size_t>(n);
    }
}

void HostilePeer::listen() {
    static Bytes room(256 * 1024);
    while (fd_ >= 0) {
        const ssize_t n = ::recv(fd_, room.data(), room.size(), MSG_DONTWAIT);
        if (n <= 0) {
            break;
        }
        in_.insert(in_.end(), room.begin(), room.begin() + n);
        if (static_cast<std::size_t>(n) < room.size()) {
            break; // all that there was
        }
    }
    if (reply_due_ && !take_reply()) {
        return;
    }
    std::span<const std::byte> rest(in_);
    while (take_frame(rest)) {
    }
    in_.erase(in_.begin(), in_.end() - static_cast<std::ptrdiff_t>(rest.size()));
}

bool HostilePeer::take_reply() {
    const MpaParse parse = parse_mpa_frame(MpaKind::reply, in_);
    FUZZ_CHECK(parse.status != MpaStatus::error);
    if (parse.status != MpaStatus::complete) {
        return false;
    }
    crc_ = parse.frame.crc;
    in_.erase(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(parse.size));
    reply_due_ = false;
    return true;
}

// Takes one from the front of `rest`, if it is whole.
bool HostilePeer::take_frame(std::span<const std::byte>& rest) {
    if (rest.size() < kFpduLengthSize || rest.size() < fpdu_size(peek_ulpdu_size(rest.data()))) {
        return false;
    }
    const std::size_t ulpdu_size = peek_ulpdu_size(rest.data());
    FUZZ_CHECK(!terminated_);
    FUZZ_CHECK(!crc_ || fpdu_crc_ok(rest.data()));
    const auto ulpdu = rest.subspan(kFpduLengthSize, ulpdu_size);
    Segment segment;
    FUZZ_CHECK(decode_segment(ulpdu, dat_peer_, segment) == SegmentError::none);
    look_at(segment, ulpdu.subspan(segment.header_size));
    rest = rest.subspan(fpdu_size(ulpdu_size));
    return true;
}

void HostilePeer::look_at(const Segment& segment, std::span<const std::byte> payload) {
    switch (segment.opcode) {
    case Opcode::read_request: {
        ReadRequest request;
        FUZZ_CHECK(decode_read_request(payload, request) == SegmentError::none);
        reads_.push_back({request.sink_stag, request.size});
        break;
    }
    case Opcode::atomic_request: {
        AtomicRequest request;
        FUZZ_CHECK(decode_atomic_request(payload, request) == SegmentError::none);
        reads_.push_back({request.request_id, sizeof(std::uint64_t), true});
        break;
    }
    case Opcode::terminate: {
        Terminate terminate;
        FUZZ_CHECK(decode_terminate(payload, terminate));
        terminated_ = true;
        break;
    }
    case Opcode::read_response:
    case Opcode::atomic_response:
    case Opcode::high_data:
    case Opcode::ack:
        break;
    default:
        taken_ += segment.last ? 1 : 0;
    }
}

void HostilePeer::shutdown_write() {
    if (fd_ >= 0) {
        ::shutdown(fd_, SHUT_WR);
    }
}

void HostilePeer::close() {
    if (fd_ >= 0) {
        ::close(std::exchange(fd_, -1));
    }
}

} // namespace fuzz
