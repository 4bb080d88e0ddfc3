// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// See faults.h. May include: core, soft, soft/iwarp/terminate.h.
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

Complaint complaint(soft::Refusal why, bool tagged) {
    switch (why) {
    case soft::Refusal::unknown_key:
        return {tagged ? TerminateCode::ddp_tagged_invalid_stag : TerminateCode::rdmap_invalid_stag,
                "no memory is registered under that key", false};
    case soft::Refusal::wrong_zone:
        return {tagged ? TerminateCode::ddp_tagged_stag_not_associated
                       : TerminateCode::rdmap_stag_not_associated,
                "the memory belongs to another protection zone", false};
    case soft::Refusal::no_right:
        return {TerminateCode::rdmap_access_rights, "the memory is not registered for that access",
                false};
    case soft::Refusal::out_of_range:
    case soft::Refusal::none:
        break;
    }
    return {tagged ? TerminateCode::ddp_tagged_base_bounds : TerminateCode::rdmap_base_bounds,
            "the access goes beyond the registered range", false};
}

Complaint complaint(const soft::Permission& denied) {
    switch (denied.denied) {
    case soft::Permission::Denied::unaligned:
        return {TerminateCode::rdmap_unspecified, "an atomic on memory that is not aligned", false};
    case soft::Permission::Denied::too_many: // U-14
        return {TerminateCode::ddp_untagged_no_buffer,
                "more RDMA reads and atomics than were agreed", false};
    case soft::Permission::Denied::memory:
    case soft::Permission::Denied::no:
        break;
    }
    return complaint(denied.why, false);
}

} // namespace dat::iwarp
