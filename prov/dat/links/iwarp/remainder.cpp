// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The last of the sender: frames of what is owed when the connection ends, built as if the
// socket took everything. See sender.h, remainder.h.
#include "links/iwarp/sender.h"

#include "engine/copyable.h"

#include <algorithm>
#include <new>
#include <utility>

namespace dat::iwarp {

namespace {

// Header and trailer of one frame.
constexpr std::uint64_t kFrameOverhead = 64;

} // namespace

// The read behind a request, too.
bool Sender::is_passed_over(const Cursor& at) const {
    return engine::is_passed_over(endpoint_.request(at.seq).op) || at.tail == Tail::read;
}

// At most so many bytes of frames are made of the requests before `end`; or they cannot be made.
std::uint64_t Sender::bytes_before(std::uint64_t end) const {
    const std::uint64_t frame = std::min(max_payload_tagged_, max_payload_untagged_);
    std::uint64_t bytes = rest_.size();
    bool before_write = false; // what has to be whole before a write is counted
    for (std::uint64_t seq = cursor_.seq; seq != end && bytes <= engine::kMostKept; ++seq) {
        const engine::Request& request = endpoint_.request(seq);
        if (!engine::can_be_copied(request)) {
            return UINT64_MAX;
        }
        const std::uint64_t length = request.op == engine::OpCode::read ? 0 : request.length;
        bytes += length + (length / frame + 3) * kFrameOverhead;
        if (request.op == engine::OpCode::write && !before_write) {
            before_write = true;
            bytes += response_left() + (response_left() / frame + 1) * kFrameOverhead;
        }
    }
    return bytes;
}

// Bytes of a response that has to be whole before a write may begin (response_goes_first()).
std::uint64_t Sender::response_left() const {
    const bool begun = !dat_peer_ && cursor_.response_offset > 0;
    const Response& response = responses_.next(cursor_.response);
    return begun ? response.size - cursor_.response_offset : 0;
}

// All before the last request that is owed goes out, so that the peer sees what was posted in its
// order and without a gap, but for reads. Of the peer's reads only a response that a write would
// cut off is finished. What completes when the kernel has it is complete: it has been copied.
Remainder Sender::take_remainder() {
    Remainder remainder;
    const std::uint64_t end = ended_ ? cursor_.seq : endpoint_.owed_end(cursor_.seq);
    const std::uint64_t bytes = bytes_before(end);
    remainder.held = held_;
    remainder.too_much = bytes > engine::kMostKept;
    if (end != cursor_.seq && !remainder.too_much) {
        try {
            rest_.reserve(bytes);
            remainder.too_much = !frame_rest(end, remainder.pauses);
        } catch (const std::bad_alloc&) {
            remainder.too_much = true;
        }
    }
    for (Remainder::Pause& pause : remainder.pauses) {
        pause.offset -= rest_done_;
    }
    remainder.bytes = take_rest();
    return remainder;
}

// False: payload cannot be read.
bool Sender::frame_rest(std::uint64_t end, std::list<Remainder::Pause>& pauses) {
    const std::uint64_t answered = read_head_;
    while (cursor_.seq != end) {
        Cursor at = cursor_;
        if (is_passed_over(at)) {
            ++cursor_.seq;
            cursor_.tail = Tail::none;
            continue;
        }
        if (engine::is_answered(endpoint_.request(at.seq).op) && at.read_tail - answered >= ord_) {
            pauses.push_back({rest_.size(), at.read_tail - answered - ord_ + 1});
        }
        const auto scratch = domain_.out_scratch();
        Batch batch;
        batch.scratch = scratch.data();
        batch.scratch_end = scratch.data() + scratch.size();
        if (endpoint_.request(at.seq).op == engine::OpCode::write && response_left() > 0) {
            if (!frame_response(at, batch)) {
                return false;
            }
        } else {
            frame_request(at, batch);
        }
        if (!keep_rest(batch, 0, batch.bytes)) {
            return false;
        }
        commit(at);
    }
    return true;
}

} // namespace dat::iwarp
