// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// How the sender builds each kind of frame. Small payloads are copied behind their
// header, so that many frames are one piece of memory; large ones stay where they
// are. See sender.h.
#include "links/iwarp/sender.h"

#include "base/assert.h"
#include "base/attempt.h"
#include "base/copy.h"
#include "engine/inbox.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace dat::iwarp {
namespace {

Opcode send_opcode(const engine::Request& request) {
    if (request.op == engine::OpCode::send_invalidate) {
        return request.solicited ? Opcode::send_se_invalidate : Opcode::send_invalidate;
    }
    if (request.has_data) {
        return request.solicited ? Opcode::send_data_se : Opcode::send_data;
    }
    return request.solicited ? Opcode::send_se : Opcode::send;
}

} // namespace

// A stream that is idle begins a page of the kernel's, which it shares with a receiver on this
// host. Where what stands before the payload makes it slow to be copied there, or from there to
// memory that is aligned as that of the sender (base/copy.h), Acks stand before that: each is
// another 24 bytes. Returns where the header is now. Only a `dat` peer knows an Ack.
std::byte* Sender::move_on(Cursor& at, Batch& batch, std::byte* header, std::size_t header_size,
                           std::span<const engine::Iov> iov, std::uint64_t skip,
                           std::size_t size) const {
    std::array<iovec, engine::kMaxIov> pieces;
    const std::size_t count = engine::gather(iov, skip, size, pieces);
    std::uint64_t before = batch.before + batch.bytes + header_size;
    std::size_t i = 0; // the first long piece
    for (; i < count && pieces[i].iov_len <= base::kShortCopy; ++i) {
        before += pieces[i].iov_len;
    }
    if (i == count) {
        return header;
    }
    const std::uint64_t ahead = before - reinterpret_cast<std::uintptr_t>(pieces[i].iov_base);
    std::byte* to = header;
    const auto is_slow = [&] {
        const std::uint64_t now = ahead + static_cast<std::uint64_t>(to - header);
        return base::is_slow_copy(now) || base::is_slow_copy(0 - now);
    };
    while (is_slow()) {
        std::array<std::byte, kFpduUntaggedHeaderSize> moved;
        std::memcpy(moved.data(), to, header_size);
        to = write_ack(at, to);
        std::memcpy(to, moved.data(), header_size);
    }
    batch.add(header, static_cast<std::size_t>(to - header));
    return to;
}

// Finishes the frame whose header of `header_size` bytes stands at `header`, at the
// front of the batch's scratch: the payload is bytes [skip, skip + size) of `iov`.
void Sender::add_payload(Cursor& cursor, Batch& batch, std::byte* header, std::size_t header_size,
                         std::span<const engine::Iov> iov, std::uint64_t skip,
                         std::size_t size) const {
    const bool copy = size <= kCopyLimit;
    if (size > base::kShortCopy && batch.before != Batch::kAnywhere) {
        header = move_on(cursor, batch, header, header_size, iov, skip, size);
    }
    std::byte* at = header + header_size;
    std::uint32_t crc = 0;
    if (!copy) {
        batch.add(header, header_size);
        crc = crc_ ? crc32c(0, {header, header_size}) : 0;
    }
    std::size_t left = size;
    for (std::size_t i = 0; left > 0; ++i) {
        if (skip >= iov[i].length) {
            skip -= iov[i].length;
            continue;
        }
        const std::byte* from = iov[i].base + skip;
        const std::size_t piece = std::min<std::uint64_t>(left, iov[i].length - skip);
        skip = 0;
        left -= piece;
        if (copy) {
            std::memcpy(at, from, piece);
            at += piece;
        } else {
            batch.add(from, piece);
            crc = crc_ ? crc32c(crc, {from, piece}) : 0;
        }
    }
    DAT_ASSERT(left == 0);
    if (copy) {
        batch.scratch = finish_fpdu(header, crc_);
        batch.add(header, static_cast<std::size_t>(batch.scratch - header));
        return;
    }
    const std::size_t ulpdu = header_size - kFpduLengthSize + size;
    std::byte* end = crc_ ? write_fpdu_trailer(at, ulpdu, crc) : write_fpdu_trailer(at, ulpdu);
    batch.add(at, static_cast<std::size_t>(end - at));
    batch.scratch = end;
}

void Sender::frame_request(Cursor& at, Batch& batch) {
    const engine::Request& request = endpoint_.request(at.seq);
    if (at.tail >= Tail::immediate) {
        return at.tail == Tail::read ? frame_read(at, batch, request)
                                     : frame_immediate(at, batch, request);
    }
    switch (request.op) {
    case engine::OpCode::send:
    case engine::OpCode::send_invalidate:
        return frame_send(at, batch, request);
    case engine::OpCode::write:
        return frame_write(at, batch, request);
    case engine::OpCode::bind: // carry_out_binds()
        return;
    case engine::OpCode::read:
        return frame_read(at, batch, request);
    case engine::OpCode::fetch_add:
    case engine::OpCode::compare_swap:
        return frame_atomic(at, batch, request);
    }
}

void Sender::frame_send(Cursor& at, Batch& batch, const engine::Request& request) {
    if (request.has_data && request.data > UINT32_MAX && at.offset == 0 && at.tail == Tail::none) {
        return frame_high_data(at, batch, request);
    }
    const std::size_t size =
        std::min<std::uint64_t>(request.length - at.offset, max_payload_untagged_);
    const bool invalidate = request.op == engine::OpCode::send_invalidate;
    UntaggedSegment segment;
    segment.opcode = send_opcode(request);
    segment.last = at.offset + size == request.length;
    segment.ack_wanted = dat_peer_ && segment.last && request.level != engine::Level::taken;
    if (invalidate) {
        segment.ulp_word = request.remote_key;
    } else if (request.has_data) {
        segment.ulp_word = static_cast<std::uint32_t>(request.data);
    } else if (dat_peer_) {
        segment.ulp_word = ack_count_;
        at.ack_due = false;
    }
    segment.queue = kQueueSend;
    segment.msn = at.send_msn;
    segment.mo = static_cast<std::uint32_t>(at.offset);
    std::byte* header = batch.scratch;
    write_fpdu_header(header, size, segment);
    add_payload(at, batch, header, kFpduUntaggedHeaderSize, request.segments(), at.offset, size);
    if (segment.last) {
        ++at.send_msn;
        ++at.ordinal;
    }
    step(at, request, size);
}

void Sender::frame_write(Cursor& at, Batch& batch, const engine::Request& request) {
    const std::size_t size =
        std::min<std::uint64_t>(request.length - at.offset, max_payload_tagged_);
    TaggedSegment segment;
    segment.opcode = Opcode::rdma_write;
    segment.last = at.offset + size == request.length;
    segment.ack_wanted = dat_peer_ && segment.last && request.level != engine::Level::taken &&
                         !request.has_data; // what carries the data asks
    segment.stag = request.remote_key;
    segment.to = request.remote_address + at.offset;
    std::byte* header = batch.scratch;
    write_fpdu_header(header, size, segment);
    add_payload(at, batch, header, kFpduTaggedHeaderSize, request.segments(), at.offset, size);
    if (segment.last) {
        ++at.ordinal;
    }
    step(at, request, size);
}

// The response is matched with the oldest read, so the sink's steering tag names
// nothing; it differs from read to read, to tell a stray response. The read behind a
// request that is to be confirmed asks for nothing.
void Sender::frame_read(Cursor& at, Batch& batch, const engine::Request& request) {
    UntaggedSegment segment;
    segment.opcode = Opcode::read_request;
    segment.queue = kQueueReadRequest;
    segment.msn = at.read_msn++;
    ReadRequest read;
    read.sink_stag = sink_stag_of(at.read_tail);
    if (at.tail == Tail::none) {
        read.sink_to = request.length >> 32; // else 0
        read.size = static_cast<std::uint32_t>(request.length);
        read.source_stag = request.remote_key;
        read.source_to = request.remote_address;
    }
    std::byte* header = batch.scratch;
    write_read_request(write_fpdu_header(header, kReadRequestSize, segment), read);
    batch.scratch = finish_fpdu(header, crc_);
    batch.add(header, static_cast<std::size_t>(batch.scratch - header));
    ++at.read_tail;
    ++at.seq;
    at.tail = Tail::none;
}

// What the upper layer's word of the message behind it has no room for.
void Sender::frame_high_data(Cursor& at, Batch& batch, const engine::Request& request) {
    UntaggedSegment segment;
    segment.opcode = Opcode::high_data;
    segment.ulp_word = static_cast<std::uint32_t>(request.data >> 32);
    segment.queue = kQueueAck;
    segment.msn = at.ack_msn++;
    std::byte* header = batch.scratch;
    write_fpdu_header(header, 0, segment);
    batch.scratch = finish_fpdu(header, crc_);
    batch.add(header, static_cast<std::size_t>(batch.scratch - header));
    at.tail = Tail::message;
}

// RFC 7306: immediate data is a message of the send queue; it follows its write.
void Sender::frame_immediate(Cursor& at, Batch& batch, const engine::Request& request) {
    UntaggedSegment segment;
    segment.opcode = request.solicited ? Opcode::immediate_se : Opcode::immediate;
    segment.ack_wanted = request.level != engine::Level::taken;
    segment.queue = kQueueSend;
    segment.msn = at.send_msn++;
    std::byte* header = batch.scratch;
    write_immediate(write_fpdu_header(header, kImmediateSize, segment), request.data);
    batch.scratch = finish_fpdu(header, crc_);
    batch.add(header, static_cast<std::size_t>(batch.scratch - header));
    ++at.ordinal;
    ++at.seq;
    at.tail = Tail::none;
}

void Sender::frame_atomic(Cursor& at, Batch& batch, const engine::Request& request) {
    engine::AtomicOperands operands;
    std::memcpy(&operands, endpoint_.inline_area(at.seq), sizeof operands);
    UntaggedSegment segment;
    segment.opcode = Opcode::atomic_request;
    segment.queue = kQueueReadRequest;
    segment.msn = at.read_msn++;
    AtomicRequest atomic;
    atomic.op = static_cast<std::uint8_t>(
        request.op == engine::OpCode::fetch_add ? AtomicOp::fetch_add : AtomicOp::compare_swap);
    atomic.request_id = static_cast<std::uint32_t>(at.read_tail);
    atomic.stag = request.remote_key;
    atomic.to = request.remote_address;
    atomic.data = operands.data;
    atomic.mask = operands.mask;
    atomic.compare = operands.compare;
    atomic.compare_mask = operands.compare_mask;
    std::byte* header = batch.scratch;
    write_atomic_request(write_fpdu_header(header, kAtomicRequestSize, segment), atomic);
    batch.scratch = finish_fpdu(header, crc_);
    batch.add(header, static_cast<std::size_t>(batch.scratch - header));
    ++at.read_tail;
    ++at.seq;
}

void Sender::frame_atomic_response(Cursor& at, Batch& batch, const Response& response) {
    UntaggedSegment segment;
    segment.opcode = Opcode::atomic_response;
    segment.queue = kQueueAtomicResponse;
    segment.msn = at.atomic_msn++;
    std::byte* header = batch.scratch;
    write_atomic_response(write_fpdu_header(header, kAtomicResponseSize, segment),
                          {.request_id = response.sink_stag, .original = response.sink_to});
    batch.scratch = finish_fpdu(header, crc_);
    batch.add(header, static_cast<std::size_t>(batch.scratch - header));
    ++at.response;
}

// The region is looked up for each frame: it may have been closed since.
bool Sender::frame_response(Cursor& at, Batch& batch) {
    const Response& response = responses_.next(at.response);
    if (response.atomic) {
        frame_atomic_response(at, batch, response);
        return true;
    }
    const std::size_t size =
        std::min<std::uint64_t>(response.size - at.response_offset, max_payload_tagged_);
    engine::Iov source{nullptr, size};
    if (size > 0) {
        const engine::Target target = engine::read_source(
            endpoint_, response.source_stag, response.source_to + at.response_offset, size);
        if (!target.at) {
            refusal_ = target.why;
            return false;
        }
        source.base = target.at;
    }
    TaggedSegment segment;
    segment.opcode = Opcode::read_response;
    segment.last = at.response_offset + size == response.size;
    segment.stag = response.sink_stag;
    segment.to = response.sink_to + at.response_offset;
    std::byte* header = batch.scratch;
    write_fpdu_header(header, size, segment);
    add_payload(at, batch, header, kFpduTaggedHeaderSize, {&source, 1}, 0, size);
    at.response_offset += size;
    if (segment.last) {
        ++at.response;
        at.response_offset = 0;
    }
    return true;
}

// Returns what is behind it.
std::byte* Sender::write_ack(Cursor& at, std::byte* header) const {
    UntaggedSegment segment;
    segment.opcode = Opcode::ack;
    segment.ulp_word = ack_count_;
    segment.queue = kQueueAck;
    segment.msn = at.ack_msn++;
    at.ack_due = false;
    write_fpdu_header(header, 0, segment);
    return finish_fpdu(header, crc_);
}

void Sender::frame_ack(Cursor& at, Batch& batch) {
    std::byte* header = batch.scratch;
    batch.scratch = write_ack(at, header);
    batch.add(header, static_cast<std::size_t>(batch.scratch - header));
}

// RFC 6581 9: a zero-length RDMA Write, whose steering tag nobody looks at.
void Sender::frame_rtr(Cursor& at, Batch& batch) {
    std::byte* header = batch.scratch;
    write_fpdu_header(header, 0, TaggedSegment{});
    batch.scratch = finish_fpdu(header, crc_);
    batch.add(header, static_cast<std::size_t>(batch.scratch - header));
    at.rtr_due = false;
}

void Sender::terminate(TerminateCode code, std::span<const std::byte> ulpdu,
                       std::size_t ulpdu_size) {
    if (std::exchange(ended_, true) || cursor_.rtr_due || held_) {
        return;
    }
    const auto append = [this](std::byte* frame) {
        std::byte* end = finish_fpdu(frame, crc_);
        return base::attempt([&] { rest_.insert(rest_.end(), frame, end); });
    };
    std::array<std::byte, fpdu_size(kDdpUntaggedHeaderSize + kTerminateMaxSize)> frame;
    UntaggedSegment segment;
    if (dat_peer_) { // what is confirmed now has not failed
        segment.opcode = Opcode::ack;
        segment.ulp_word = ack_count_;
        segment.queue = kQueueAck;
        segment.msn = cursor_.ack_msn++;
        write_fpdu_header(frame.data(), 0, segment);
        if (!append(frame.data())) {
            return; // the end of the stream has to do
        }
    }
    std::array<std::byte, kTerminateMaxSize> payload;
    const std::size_t size = encode_terminate(make_terminate(code, ulpdu, ulpdu_size), payload);
    segment = {};
    segment.opcode = Opcode::terminate;
    segment.queue = kQueueTerminate;
    segment.msn = 1;
    std::memcpy(write_fpdu_header(frame.data(), size, segment), payload.data(), size);
    (void)append(frame.data());
}

} // namespace dat::iwarp
