// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The usual case of sending, straight: plain small sends, one behind the other, and
// nothing else is due. It builds what frame_send() would, byte for byte, and leaves
// everything that is not so plain to push(). See sender.h.
#include "links/iwarp/sender.h"

#include "base/attempt.h"
#include "engine/kernel.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace dat::iwarp {

// A send that no condition is on, whose payload is one piece. Its completion waits for
// nothing but the socket.
inline bool Sender::is_plain(const engine::Request& request) const {
    return request.op == engine::OpCode::send && request.length < plain_end_ &&
           request.iov_count == 1 && request.level == engine::Level::taken && !request.has_data &&
           !request.solicited && !request.fence;
}

[[gnu::always_inline]] inline std::byte* Sender::write_small_send(std::byte* frame,
                                                                  const engine::Request& request,
                                                                  std::uint32_t msn) const {
    UntaggedSegment segment;
    segment.opcode = Opcode::send;
    segment.last = true;
    segment.ulp_word = dat_peer_ ? ack_count_ : 0;
    segment.queue = kQueueSend;
    segment.msn = msn;
    std::byte* at = write_fpdu_header(frame, request.length, segment);
    if (request.length > 0) {
        std::memcpy(at, request.iov.base, request.length);
    }
    const std::size_t ulpdu = kDdpUntaggedHeaderSize + request.length;
    return crc_ ? finish_fpdu(frame, true) : write_fpdu_trailer(at + request.length, ulpdu);
}

// Sends as many plain small sends as stand next, in one system call. `sent`: some of
// them were, so it is worth to ask again. Precondition: nothing_but_requests().
Sender::Result Sender::push_small_sends(int fd, bool& sent) {
    const auto scratch = domain_.out_scratch();
    const std::byte* const limit = scratch.data() + scratch.size() - kSmallFrameRoom;
    const std::uint64_t next = endpoint_.core().requests().next();
    std::byte* end = scratch.data();
    std::uint64_t seq = cursor_.seq;
    for (std::uint32_t msn = cursor_.send_msn; seq != next && end < limit; ++seq, ++msn) {
        const engine::Request& request = endpoint_.request(seq);
        if (!is_plain(request)) {
            break;
        }
        end = write_small_send(end, request, msn);
    }
    const auto size = static_cast<std::size_t>(end - scratch.data());
    sent = size > 0;
    if (!sent) {
        return Result::done;
    }
    const ssize_t n = kernel::send(fd, scratch.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
        return failed(errno);
    }
    const auto taken = static_cast<std::size_t>(n);
    bytes_sent_ += taken;
    if (taken < size && !base::attempt([&] {
            seq = keep_rest_of_small_sends(scratch.first(size), taken);
        })) [[unlikely]] {
        return no_memory();
    }
    commit_small_sends(seq);
    return taken == size ? Result::done : Result::blocked;
}

// The socket took `taken` bytes: keeps the rest of the frame that it is in. Returns the
// first request that it has nothing of.
std::uint64_t Sender::keep_rest_of_small_sends(std::span<const std::byte> frames,
                                               std::size_t taken) {
    std::uint64_t seq = cursor_.seq;
    std::size_t end = 0;
    for (; end < taken; ++seq) {
        end += fpdu_size(peek_ulpdu_size(frames.data() + end));
    }
    rest_.assign(frames.begin() + static_cast<std::ptrdiff_t>(taken),
                 frames.begin() + static_cast<std::ptrdiff_t>(end));
    return seq;
}

// The requests before `end` are with the socket.
void Sender::commit_small_sends(std::uint64_t end) {
    const auto count = static_cast<std::uint32_t>(end - cursor_.seq);
    std::uint64_t seq = cursor_.seq;
    cursor_.seq = end;
    cursor_.send_msn += count;
    cursor_.ordinal += count;
    cursor_.ack_due = cursor_.ack_due && (!dat_peer_ || count == 0);
    cursor_.responses_turn = true;
    for (; seq != end; ++seq) {
        endpoint_.finish_request(seq, core::DtoStatus::success);
    }
}

} // namespace dat::iwarp
