// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See faults.h. May include: core, soft/inbox.h, soft/iwarp/terminate.h.
#include "soft/iwarp/faults.h"

namespace dat::iwarp {

using core::DtoStatus;

core::DtoStatus status_of(TerminateCode code) {
    switch (code) {
    case TerminateCode::ddp_untagged_no_buffer:
        return DtoStatus::receiver_not_ready;
    case TerminateCode::ddp_untagged_too_long:
        return DtoStatus::remote_responder;
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

Complaint complaint(soft::Inbox::Wrong wrong) {
    switch (wrong) {
    case soft::Inbox::Wrong::too_long: // DTO-9, U-8
        return {TerminateCode::ddp_untagged_too_long, "a message is longer than its receive", true};
    case soft::Inbox::Wrong::old_zone: // EPA-7, U-32
        return {TerminateCode::rdmap_catastrophic, "a receive is of another protection zone", true};
    case soft::Inbox::Wrong::no_memory:
        return {TerminateCode::ddp_catastrophic,
                "there is no memory for a message that has to wait for its receive", false};
    case soft::Inbox::Wrong::not_expected:
        return {TerminateCode::rdmap_unspecified,
                "a message that is none of a reliable datagram endpoint's, or more than it takes",
                false};
    default: // RFC 5040 5.1
        return {TerminateCode::rdmap_protection_cannot_invalidate,
                "the key is not one that a peer may invalidate", false};
    }
}

} // namespace dat::iwarp
