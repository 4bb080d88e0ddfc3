// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See faults.h.
#include "links/iwarp/faults.h"

namespace dat::iwarp {

using core::DtoStatus;

core::DtoStatus status_of(TerminateCode code) {
    switch (code) {
    case TerminateCode::ddp_untagged_no_buffer:
        return DtoStatus::receiver_not_ready;
    case TerminateCode::ddp_untagged_too_long:
    case TerminateCode::rdmap_catastrophic:
    case TerminateCode::ddp_catastrophic:
        return DtoStatus::remote_responder;
    default:
        break;
    }
    switch (static_cast<std::uint16_t>(code) >> 8) {
    case 0x01: // RDMAP: remote protection
    case 0x11: // DDP: tagged buffer
        return DtoStatus::remote_access;
    case 0x02: // RDMAP: remote operation
    case 0x12: // DDP: untagged buffer
        return DtoStatus::bad_response;
    default:
        return DtoStatus::transport;
    }
}

Complaint complaint(engine::Inbox::Wrong wrong) {
    switch (wrong) {
    case engine::Inbox::Wrong::too_long: // DTO-9, U-8
        return {TerminateCode::ddp_untagged_too_long, "a message is longer than its receive", true};
    case engine::Inbox::Wrong::old_zone: // EPA-7, U-32
        return {TerminateCode::rdmap_catastrophic, "a receive is of another protection zone", true};
    case engine::Inbox::Wrong::no_memory:
        return {TerminateCode::ddp_catastrophic,
                "there is no memory for a message that has to wait for its receive", false};
    case engine::Inbox::Wrong::not_expected:
        return {TerminateCode::rdmap_unspecified,
                "a message that is none of a reliable datagram endpoint's, or more than it takes",
                false};
    default: // RFC 5040 5.1
        return {TerminateCode::rdmap_protection_cannot_invalidate,
                "the key is not one that a peer may invalidate", false};
    }
}

Complaint complaint(engine::Refusal why, bool tagged) {
    switch (why) {
    case engine::Refusal::unknown_key:
        return {tagged ? TerminateCode::ddp_tagged_invalid_stag : TerminateCode::rdmap_invalid_stag,
                "no memory is registered under that key", false};
    case engine::Refusal::wrong_zone:
        return {tagged ? TerminateCode::ddp_tagged_stag_not_associated
                       : TerminateCode::rdmap_stag_not_associated,
                "the memory belongs to another protection zone", false};
    case engine::Refusal::no_right:
        return {TerminateCode::rdmap_access_rights, "the memory is not registered for that access",
                false};
    case engine::Refusal::out_of_range:
    case engine::Refusal::none:
        break;
    }
    return {tagged ? TerminateCode::ddp_tagged_base_bounds : TerminateCode::rdmap_base_bounds,
            "the access goes beyond the registered range", false};
}

Complaint complaint(const engine::Permission& denied) {
    switch (denied.denied) {
    case engine::Permission::Denied::unaligned:
        return {TerminateCode::rdmap_unspecified, "an atomic on memory that is not aligned", false};
    case engine::Permission::Denied::too_many: // U-14
        return {TerminateCode::ddp_untagged_no_buffer,
                "more RDMA reads and atomics than were agreed", false};
    case engine::Permission::Denied::memory:
    case engine::Permission::Denied::no:
        break;
    }
    return complaint(denied.why, false);
}

} // namespace dat::iwarp
