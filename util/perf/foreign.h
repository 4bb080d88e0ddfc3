// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What else moves messages on this machine, measured beside libfabric's providers by programs that
// are installed: UCX by its ucx_perftest, Open MPI's own transports by two processes that mpirun
// starts, which are this program again.
#ifndef DAT_UTIL_PERF_FOREIGN_H
#define DAT_UTIL_PERF_FOREIGN_H

#include "case.h"
#include "peer.h"
#include "run_case.h"

#include <string>
#include <string_view>
#include <vector>

namespace dat::perf {

// "ucx,openmpi", each with @VARIABLE=VALUE behind it where wanted. Throws Usage.
std::vector<Way> parse_foreign(std::string_view text);

// The version of what is installed; "" where that is not to be had. Throws NotOffered: it is not
// installed, or not for two hosts.
std::string require_foreign(const Way& way, bool two_hosts);

// One side of a pair: runs ucx_perftest, and takes its figures.
Result run_ucx(const Case& what, Peer& peer);

// The whole case.
CaseOutcome run_mpi(const Case& what, bool two_hosts);

// The first word of the command line of a process that run_mpi() has mpirun start.
inline constexpr char kMpiSide[] = "mpi-side";
int mpi_side(int argc, char** argv);

} // namespace dat::perf

#endif
