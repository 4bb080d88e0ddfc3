// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// RDMAP: control payloads, and words for log lines.
#include "links/iwarp/rdmap.h"

namespace dat::iwarp {

namespace {

SegmentError check_size(std::span<const std::byte> payload, std::size_t size) {
    if (payload.size() < size) {
        return SegmentError::message_too_short;
    }
    return payload.size() > size ? SegmentError::message_too_long : SegmentError::none;
}

// Takes a field from the front of a payload whose size has been checked.
template <class T> void take(const std::byte*& at, T& field) {
    field = load_be<T>(at);
    at += sizeof field;
}

constexpr std::uint32_t kAtomicOpMask = 0xf; // the other 28 bits are reserved

} // namespace

const char* text(Opcode opcode) {
    switch (opcode) {
    case Opcode::rdma_write:
        return "RDMA Write";
    case Opcode::read_request:
        return "RDMA Read Request";
    case Opcode::read_response:
        return "RDMA Read Response";
    case Opcode::send:
        return "Send";
    case Opcode::send_invalidate:
        return "Send with Invalidate";
    case Opcode::send_se:
        return "Send with Solicited Event";
    case Opcode::send_se_invalidate:
        return "Send with Solicited Event and Invalidate";
    case Opcode::terminate:
        return "Terminate";
    case Opcode::immediate:
        return "Immediate Data";
    case Opcode::immediate_se:
        return "Immediate Data with Solicited Event";
    case Opcode::atomic_request:
        return "Atomic Request";
    case Opcode::atomic_response:
        return "Atomic Response";
    case Opcode::send_data:
        return "Send with Data";
    case Opcode::send_data_se:
        return "Send with Data and Solicited Event";
    case Opcode::high_data:
        return "high data";
    case Opcode::ack:
        return "Ack";
    }
    return "unknown";
}

const char* text(SegmentError error) {
    switch (error) {
    case SegmentError::none:
    case SegmentError::too_short:
    case SegmentError::tagged_version:
    case SegmentError::untagged_version:
        return text(static_cast<DdpError>(error));
    case SegmentError::rdmap_version:
        return "a segment has another RDMAP version than 1";
    case SegmentError::unexpected_opcode:
        return "the RDMAP opcode is unknown, not for this peer, or in the wrong kind of segment";
    case SegmentError::invalid_queue:
        return "the DDP queue number does not exist";
    case SegmentError::message_too_long:
        return "the message is longer than its kind allows";
    case SegmentError::message_too_short:
        return "the message is shorter than its header";
    }
    return "unknown segment error";
}

TerminateCode terminate_code(SegmentError error) {
    switch (error) {
    case SegmentError::tagged_version:
        return TerminateCode::ddp_tagged_version;
    case SegmentError::untagged_version:
        return TerminateCode::ddp_untagged_version;
    case SegmentError::rdmap_version:
        return TerminateCode::rdmap_version;
    case SegmentError::unexpected_opcode:
        return TerminateCode::rdmap_unexpected_opcode;
    case SegmentError::invalid_queue:
        return TerminateCode::ddp_untagged_invalid_queue;
    case SegmentError::message_too_long:
        return TerminateCode::ddp_untagged_too_long;
    case SegmentError::too_short:
        return TerminateCode::ddp_catastrophic;
    case SegmentError::none:
    case SegmentError::message_too_short:
        break;
    }
    return TerminateCode::rdmap_unspecified;
}

SegmentError decode_read_request(std::span<const std::byte> payload, ReadRequest& out) {
    const SegmentError error = check_size(payload, kReadRequestSize);
    if (error == SegmentError::none) {
        const std::byte* at = payload.data();
        take(at, out.sink_stag);
        take(at, out.sink_to);
        take(at, out.size);
        take(at, out.source_stag);
        take(at, out.source_to);
    }
    return error;
}

SegmentError decode_immediate(std::span<const std::byte> payload, std::uint64_t& out) {
    const SegmentError error = check_size(payload, kImmediateSize);
    if (error == SegmentError::none) {
        out = load_be<std::uint64_t>(payload.data());
    }
    return error;
}

std::byte* write_atomic_request(std::byte* at, const AtomicRequest& request) {
    at = store_be(at, std::uint32_t{request.op} & kAtomicOpMask);
    at = store_be(at, request.request_id);
    at = store_be(at, request.stag);
    at = store_be(at, request.to);
    at = store_be(at, request.data);
    at = store_be(at, request.mask);
    at = store_be(at, request.compare);
    return store_be(at, request.compare_mask);
}

SegmentError decode_atomic_request(std::span<const std::byte> payload, AtomicRequest& out) {
    const SegmentError error = check_size(payload, kAtomicRequestSize);
    if (error == SegmentError::none) {
        const std::byte* at = payload.data();
        std::uint32_t op;
        take(at, op);
        out.op = static_cast<std::uint8_t>(op & kAtomicOpMask);
        take(at, out.request_id);
        take(at, out.stag);
        take(at, out.to);
        take(at, out.data);
        take(at, out.mask);
        take(at, out.compare);
        take(at, out.compare_mask);
    }
    return error;
}

std::byte* write_atomic_response(std::byte* at, const AtomicResponse& response) {
    at = store_be(at, response.request_id);
    return store_be(at, response.original);
}

SegmentError decode_atomic_response(std::span<const std::byte> payload, AtomicResponse& out) {
    const SegmentError error = check_size(payload, kAtomicResponseSize);
    if (error == SegmentError::none) {
        const std::byte* at = payload.data();
        take(at, out.request_id);
        take(at, out.original);
    }
    return error;
}

} // namespace dat::iwarp
