// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Brings the processes of a model together: ends of connections, messages, clocks.
#ifndef DAT_UTIL_TRACE_JOIN_H
#define DAT_UTIL_TRACE_JOIN_H

#include "trace/model.h"

namespace dat::trace {

void join(Model& model);

} // namespace dat::trace

#endif
