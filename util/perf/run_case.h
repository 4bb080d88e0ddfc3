// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Runs one case in its processes: here, or with the servers on another host.
#ifndef DAT_UTIL_PERF_RUN_CASE_H
#define DAT_UTIL_PERF_RUN_CASE_H

#include "case.h"
#include "pair.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dat::perf {

class Remote;

struct CaseOutcome {
    Ending ending = Ending::failed;
    std::string why;
    Result server; // of all servers together
    Result client;
};

// Server and client processes, as run_members(). Data is verified, outside of what is
// measured. Blocks until all have ended, at the latest after limit_s(what). `remote`: where the
// servers run; nullptr: here. The address of the case is one of this host.
CaseOutcome run_case(const Case& what, Remote* remote = nullptr);

// The servers alone, of clients that run elsewhere: a connection to each of them, in the order in
// which they are numbered; as many as link_count().
Outcome run_servers(const Case& what, std::vector<Fd> links);

// Between a server and a client, or a thread of each.
std::size_t link_count(const Case& what);

// What several have seen at the same time, as if it were one.
Result together(std::span<const Result> all);

// How long a case may take: far more than it should.
int limit_s(const Case& what);

// The capabilities of libfabric that a pattern needs.
std::uint64_t caps_of(Pattern pattern);

} // namespace dat::perf

#endif
