// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the codes of RFC 5040 and RFC 5041 mean to a request. May include: core,
// soft/iwarp/terminate.h.
#ifndef DAT_SOFT_IWARP_FAULTS_H
#define DAT_SOFT_IWARP_FAULTS_H

#include "core/completion.h"
#include "soft/iwarp/terminate.h"

namespace dat::iwarp {

// What a Terminate says of the request that caused it (STS-1).
core::DtoStatus status_of(TerminateCode code);

} // namespace dat::iwarp

#endif
