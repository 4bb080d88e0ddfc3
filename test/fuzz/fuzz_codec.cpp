// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Fuzz target: the decoders of DDP, RDMAP and Terminate. Input: an octet that chooses
// decoder and kind of peer, then what is decoded.
#include "input.h"

#include "links/iwarp/rdmap.h"

#include <array>

using namespace dat::iwarp;
using fuzz::Bytes;

namespace {

// A decoder that wants exactly `size` bytes: what it takes is what its writer writes.
template <class Message, class Decode, class Write>
void check_control(const Bytes& payload, std::size_t size, Decode decode, Write write) {
    Message message{};
    const SegmentError error = decode(std::span<const std::byte>(payload), message);
    FUZZ_CHECK((error == SegmentError::none) == (payload.size() == size));
    FUZZ_CHECK(text(error) != nullptr);
    if (error != SegmentError::none) {
        terminate_code(error);
        return;
    }
    Bytes again(size);
    FUZZ_CHECK(write(again.data(), message) == again.data() + size);
    Message second{};
    FUZZ_CHECK(decode(std::span<const std::byte>(again), second) == SegmentError::none);
    FUZZ_CHECK(message == second);
}

void check_terminate(const Bytes& payload) {
    Terminate terminate;
    if (!decode_terminate(payload, terminate)) {
        FUZZ_CHECK(payload.size() < kTerminateControlSize);
        return;
    }
    FUZZ_CHECK(text(terminate.code) != nullptr);
    const auto inside = [&](std::span<const std::byte> part) {
        return part.empty() || (part.data() >= payload.data() &&
                                part.data() + part.size() <= payload.data() + payload.size());
    };
    FUZZ_CHECK(inside(terminate.ddp_header) && inside(terminate.read_request));
}

// Any segment and any code make a Terminate that can be decoded.
void check_made_terminate(TerminateCode code, const Bytes& ulpdu) {
    const Terminate made = make_terminate(code, ulpdu, ulpdu.size());
    std::array<std::byte, kTerminateMaxSize> buffer;
    const std::size_t size = encode_terminate(made, buffer);
    FUZZ_CHECK(size >= kTerminateControlSize && size <= kTerminateMaxSize);
    Terminate read;
    const Bytes exact(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(size));
    FUZZ_CHECK(decode_terminate(exact, read));
    FUZZ_CHECK(read.code == code && read.has_ddp_length == made.has_ddp_length);
    FUZZ_CHECK(read.ddp_header.size() == made.ddp_header.size());
    FUZZ_CHECK(read.read_request.size() == made.read_request.size());
}

void check_segment(const Bytes& ulpdu, bool dat_peer) {
    Segment segment;
    const SegmentError error = decode_segment(ulpdu, dat_peer, segment);
    FUZZ_CHECK(text(error) != nullptr);
    if (error != SegmentError::none) {
        check_made_terminate(terminate_code(error), ulpdu);
        return;
    }
    FUZZ_CHECK(text(segment.opcode) != nullptr);
    FUZZ_CHECK(segment.header_size ==
               (segment.tagged ? kDdpTaggedHeaderSize : kDdpUntaggedHeaderSize));
    FUZZ_CHECK(segment.header_size <= ulpdu.size());
    FUZZ_CHECK(dat_peer || (!segment.ack_wanted && segment.opcode <= Opcode::terminate));
    FUZZ_CHECK(!segment.tagged || segment.opcode == Opcode::rdma_write ||
               segment.opcode == Opcode::read_response);
    // What the one kind of peer may send, the other may not be worse off with.
    Segment other;
    if (!dat_peer) {
        FUZZ_CHECK(decode_segment(ulpdu, true, other) == SegmentError::none);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.octet();
    switch (choice % 7) {
    case 0:
    case 1:
        check_segment(input.rest(), choice % 7 == 1);
        break;
    case 2:
        check_control<ReadRequest>(input.rest(), kReadRequestSize, decode_read_request,
                                   write_read_request);
        break;
    case 3:
        check_control<AtomicRequest>(input.rest(), kAtomicRequestSize, decode_atomic_request,
                                     write_atomic_request);
        break;
    case 4:
        check_control<AtomicResponse>(input.rest(), kAtomicResponseSize, decode_atomic_response,
                                      write_atomic_response);
        break;
    case 5:
        check_terminate(input.rest());
        break;
    default: {
        const auto code = static_cast<TerminateCode>(input.word());
        check_made_terminate(code, input.rest());
    }
    }
    return 0;
}
