// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Runs one case in two processes. May include: util/perf, std.
#ifndef DAT_UTIL_PERF_RUN_CASE_H
#define DAT_UTIL_PERF_RUN_CASE_H

#include "case.h"
#include "pair.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dat::perf {

struct CaseOutcome {
    Ending ending = Ending::failed;
    std::string why;
    Result server;
    Result client;
};

// A server and a client process, as run_pair(). Data is verified, outside of what is
// measured. Blocks until both have ended, at the latest after limit_s(what).
CaseOutcome run_case(const Case& what);

// How long a case may take: far more than it should.
int limit_s(const Case& what);

// The capabilities of libfabric that a pattern needs.
std::uint64_t caps_of(Pattern pattern);

} // namespace dat::perf

#endif
