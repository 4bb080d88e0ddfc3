// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Why a call is refused. Who finds it out says more than a code can, and the entry point, which
// knows the name of the call, writes the one line (udat/entry.h).
#ifndef DAT_SHIM_REASON_H
#define DAT_SHIM_REASON_H

#include "dat-shim/codes.h"

namespace dat::shim {

// `code`, which the call is going to answer. The text, if somebody reads it, is kept for the
// thread's next line.
Return because(Return code, const char* format, ...) __attribute__((format(printf, 2, 3), cold));

// The line of a call that answered this. `call` and names: texts that last.
void say_refused(const char* call, const char* type, const char* subtype);

} // namespace dat::shim

#endif
