// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the codes of RFC 5040 and RFC 5041 mean to a request, and what a peer is told of
// a message that cannot be taken.
#ifndef DAT_LINKS_IWARP_FAULTS_H
#define DAT_LINKS_IWARP_FAULTS_H

#include "core/completion.h"
#include "engine/inbox.h"
#include "engine/responder.h"
#include "links/iwarp/terminate.h"

namespace dat::iwarp {

// What a Terminate says of the request that caused it (STS-1).
core::DtoStatus status_of(TerminateCode code);

// What the Terminate for such a message says, and the log.
struct Complaint {
    TerminateCode code;
    const char* what;
    bool of_receive; // this side's receive failed, and has completed
};
Complaint complaint(engine::Inbox::Wrong wrong);
// Of memory that may not be reached so. `tagged`: by the segment itself (RFC 5041 7.2), not by a
// request in it (RFC 5040 7.2); rights are RDMAP's in both.
Complaint complaint(engine::Refusal why, bool tagged);
// Of a read or atomic that was denied.
Complaint complaint(const engine::Permission& denied);

} // namespace dat::iwarp

#endif
