// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See sender.h: the order of frames, and handing them to the socket. How each kind
// of frame is built stands in frames.cpp.
#include "links/iwarp/sender.h"

#include "base/assert.h"
#include "base/attempt.h"
#include "engine/kernel.h"
#include "engine/random.h"
#include "links/iwarp/trace_frame.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <sys/socket.h>
#include <utility>

namespace dat::iwarp {

namespace {

// The socket cannot take anything now, but will.
bool passes(int error) {
    return error == EAGAIN || error == EINTR || error == ENOBUFS || error == ENOMEM;
}

// Small frames are one piece of memory, for which the kernel has less to look at.
ssize_t hand_over(int fd, std::span<iovec> pieces) {
    constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
    if (pieces.size() == 1) {
        return kernel::send(fd, pieces[0].iov_base, pieces[0].iov_len, kFlags);
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    return kernel::sendmsg(fd, &message, kFlags);
}

} // namespace

Sender::Sender(engine::Endpoint& endpoint, const LinkParameters& parameters)
    : endpoint_(endpoint), domain_(endpoint.domain()), dat_peer_(parameters.dat_peer),
      wide_(parameters.wide), crc_(parameters.crc), traces_frames_(traces_frames(endpoint)),
      ord_(parameters.ord), held_(parameters.hold), confirmations_(endpoint),
      reads_(std::max<std::uint16_t>(parameters.ord, 1)),
      sink_key_(static_cast<std::uint32_t>(engine::random_bits())),
      response_places_(engine::Responses<Response>::places(parameters.ird)),
      responses_(parameters.ird, response_places_) {
    cursor_.seq = endpoint.core().requests().next();
    cursor_.rtr_due = parameters.send_rtr;
}

void Sender::set_segment_size(std::size_t tcp_segment) {
    // Between `dat` peers frames are as large as they can be, with payloads that
    // begin at multiples of 512 bytes; towards others a frame fits a TCP segment
    // (RFC 5044 5.1), whose size may be unknown or absurd.
    constexpr std::size_t kLargePayload = 127 * 512;
    constexpr std::size_t kSmallSegment = 536;
    const std::size_t ulpdu = fpdu_max_ulpdu(std::max(tcp_segment, kSmallSegment));
    max_payload_tagged_ = dat_peer_ ? kLargePayload : ulpdu - kDdpTaggedHeaderSize;
    max_payload_untagged_ = dat_peer_ ? kLargePayload : ulpdu - kDdpUntaggedHeaderSize;
    plain_end_ = traces_frames_ ? 0 : std::min(kCopyLimit, max_payload_untagged_) + 1;
}

bool Sender::Batch::full() const {
    constexpr std::size_t kBytes = 256 * 1024;
    constexpr std::size_t kRoom = 1024; // the most that one frame takes of the scratch
    return frame_count == kFrames || vector_count + engine::kMaxIov + 2 > kVectors ||
           bytes >= kBytes || static_cast<std::size_t>(scratch_end - scratch) < kRoom;
}

void Sender::Batch::add(const std::byte* from, std::size_t size) {
    bytes += size;
    if (vector_count > 0) {
        iovec& last = vectors[vector_count - 1];
        if (static_cast<std::byte*>(last.iov_base) + last.iov_len == from) {
            last.iov_len += size;
            return;
        }
    }
    vectors[vector_count++] = {const_cast<std::byte*>(from), size};
}

void Sender::respond(const Response& response) {
    DAT_ASSERT(can_respond());
    responses_.queue(response);
}

void Sender::respond(const ReadRequest& request) {
    respond(Response{.sink_to = wide_ ? 0 : request.sink_to,
                     .size = size_of(request),
                     .source_to = request.source_to,
                     .sink_stag = request.sink_stag,
                     .source_stag = request.source_stag,
                     .atomic = false});
}

void Sender::respond(const AtomicResponse& response) {
    respond(Response{.sink_to = response.original,
                     .size = 0,
                     .source_to = 0,
                     .sink_stag = response.request_id,
                     .source_stag = 0,
                     .atomic = true});
}

void Sender::confirm(std::uint32_t count) { confirmations_.placed(count, cursor_.seq); }

// Whatever there is.
Sender::Result Sender::push_all(int fd) {
    if (held_) {
        carry_out_binds();
        return Result::done;
    }
    const std::uint64_t began = bytes_sent_;
    for (;;) {
        carry_out_binds();
        if (!rest_.empty()) {
            if (const Result result = write_rest(fd); result != Result::done) {
                return result;
            }
        }
        const auto scratch = domain_.out_scratch();
        Batch batch;
        batch.scratch = scratch.data();
        batch.scratch_end = scratch.data() + scratch.size();
        if (dat_peer_ && !traces_frames_) { // who reads a trace wants to see what is always sent
            batch.before = bytes_sent_ - began;
        }
        Cursor at = cursor_;
        bool more = true;
        const std::byte* header = batch.scratch;
        while (!batch.full() && (more = frame_next(at, batch))) {
            batch.close_frame(at, header);
            header = batch.scratch;
        }
        const Result result = batch.frame_count > 0 ? write_batch(fd, batch) : Result::done;
        if (result != Result::done) {
            return result;
        }
        if (!more && !batch.cut) {
            return refusal_ == engine::Refusal::none ? Result::done : Result::refused;
        }
    }
}

// One frame more, if there is something that may go out.
bool Sender::frame_next(Cursor& at, Batch& batch) {
    if (ended_) {
        return false;
    }
    if (at.rtr_due) {
        frame_rtr(at, batch);
        return true;
    }
    // In the middle of a message nothing else of its queue may come, and a count of
    // acknowledgements rides on Sends; anything else goes out on its own.
    const bool requests = request_ready(at);
    const bool responses = !responses_.all(at.response);
    const bool rides = requests && endpoint_.request(at.seq).op == engine::OpCode::send &&
                       !endpoint_.request(at.seq).has_data;
    if (at.ack_due && !rides) {
        frame_ack(at, batch);
        return true;
    }
    if (responses && (!requests || response_goes_first(at))) {
        at.responses_turn = false;
        return frame_response(at, batch);
    }
    if (requests) {
        at.responses_turn = true;
        frame_request(at, batch);
        return true;
    }
    return false;
}

// There are both, a response and a request that may go out. They take turns, segment by segment.
// But RFC 5040 5.1 and 5.4 have segments of different messages apart by their queue only, and
// tagged ones have none: siw wants a message whole before another of its kind, tagged or not,
// begins. What is of the other kind may stand between. A `dat` peer can tell them apart.
bool Sender::response_goes_first(const Cursor& at) const {
    const bool write = endpoint_.request(at.seq).op == engine::OpCode::write;
    if (!dat_peer_ && write && (at.offset > 0 || at.response_offset > 0)) {
        return at.response_offset > 0;
    }
    return at.responses_turn;
}

// Whether the next request may be framed.
bool Sender::request_ready(const Cursor& at) {
    if (at.seq == endpoint_.core().requests().next()) {
        return false;
    }
    const engine::Request& request = endpoint_.request(at.seq);
    const std::uint64_t reads = at.read_tail - read_head_;
    const bool begun = at.offset > 0 || at.tail != Tail::none;
    const bool asks = engine::is_answered(request.op) || at.tail == Tail::read;
    return engine::may_go(request, begun, reads > 0, asks, reads < ord_);
}

// What was posted before is with the kernel, and nothing behind is in a frame.
void Sender::carry_out_binds() { engine::carry_out_binds(endpoint_, cursor_.seq, reading()); }

// U-61, of a send or write: a peer that is not `dat` sends no acknowledgements. That
// it has placed a request is known when it answers a read, of nothing, behind it.
bool Sender::needs_read(const engine::Request& request) const {
    return !dat_peer_ && request.level == engine::Level::delivered;
}

Sender::Tail Sender::tail_of(const engine::Request& request) const {
    if (request.has_data && request.op == engine::OpCode::write) {
        return Tail::immediate; // towards a `dat` peer only
    }
    return needs_read(request) ? Tail::read : Tail::none;
}

std::uint64_t Sender::oldest_read_size() const {
    const engine::Request& request = endpoint_.request(oldest_read());
    return request.op == engine::OpCode::read ? request.length : 0;
}

// `framed` more bytes of the request are in frames.
void Sender::step(Cursor& at, const engine::Request& request, std::size_t framed) {
    at.offset += framed;
    if (at.offset == request.length) {
        at.offset = 0;
        at.tail = tail_of(request);
        at.seq += at.tail == Tail::none ? 1 : 0;
    }
}

// The socket has the frame before `after`, or its rest is kept.
void Sender::commit(const Cursor& after) {
    const Cursor before = std::exchange(cursor_, after);
    for (std::uint64_t i = before.response; i != after.response; ++i) {
        const Response& response = responses_.next(i);
        if (!response.atomic) {
            endpoint_.remote_read(response.source_stag);
        }
    }
    for (std::uint64_t seq = before.seq; seq != after.seq; ++seq) {
        engine::Request& request = endpoint_.request(seq);
        if (engine::is_answered(request.op) || needs_read(request)) {
            reads_[before.read_tail % reads_.size()] = seq;
            continue;
        }
        if (request.level == engine::Level::taken || !dat_peer_) {
            endpoint_.finish_request(seq, core::DtoStatus::success);
        } else {
            confirmations_.await(request, after.ordinal);
        }
    }
}

Sender::Result Sender::failed(int error) {
    error_ = error;
    return passes(error) ? Result::blocked : Result::dead;
}

// For the rest of a frame that the socket has in part.
Sender::Result Sender::no_memory() {
    error_ = ENOMEM;
    out_of_memory_ = true;
    return Result::dead;
}

Sender::Result Sender::write_rest(int fd) {
    while (rest_done_ < rest_.size()) {
        const ssize_t n = kernel::send(fd, rest_.data() + rest_done_, rest_.size() - rest_done_,
                                       MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            return failed(errno);
        }
        rest_done_ += static_cast<std::size_t>(n);
        bytes_sent_ += static_cast<std::size_t>(n);
    }
    rest_.clear();
    rest_done_ = 0;
    return Result::done;
}

std::vector<std::byte> Sender::take_rest() {
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(rest_done_));
    rest_done_ = 0;
    return std::move(rest_);
}

void Sender::trace_out(const std::byte* header) {
    const std::size_t ulpdu = peek_ulpdu_size(header);
    Segment segment;
    if (decode_segment({header + kFpduLengthSize, std::min(ulpdu, kDdpMaxHeaderSize)}, true,
                       segment) == SegmentError::none) {
        trace_frame(endpoint_, true, segment, ulpdu - segment.header_size);
    }
}

Sender::Result Sender::write_batch(int fd, Batch& batch) {
    ssize_t n = hand_over(fd, {batch.vectors.data(), batch.vector_count});
    if (n < 0 && errno == EFAULT) [[unlikely]] {
        const Cursor first = batch.frames[0].after;
        batch.keep_readable();
        if (batch.frame_count == 0) {
            return unreadable(first);
        }
        n = hand_over(fd, {batch.vectors.data(), batch.vector_count});
    }
    if (n < 0) {
        return failed(errno);
    }
    const auto taken = static_cast<std::size_t>(n);
    bytes_sent_ += taken;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < batch.frame_count && begin < taken; ++i) {
        const Frame& frame = batch.frames[i];
        bool kept = true;
        if (frame.end > taken &&
            !base::attempt([&] { kept = keep_rest(batch, taken, frame.end); })) {
            return no_memory();
        }
        if (!kept) [[unlikely]] {
            ended_ = true; // within a frame, or its Acks: nothing can follow
            return unreadable(frame.after);
        }
        if (traces_frames_) [[unlikely]] {
            trace_out(frame.header);
        }
        commit(frame.after);
        begin = frame.end;
    }
    return taken == batch.bytes ? Result::done : Result::blocked;
}

} // namespace dat::iwarp
