// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Where and when something was measured.
#ifndef DAT_UTIL_PERF_MACHINE_H
#define DAT_UTIL_PERF_MACHINE_H

#include <string>
#include <utility>
#include <vector>

namespace dat::perf {

// What stands at the head of a report, name and value: the processor, the kernel,
// libfabric, where the processes are pinned to, the load before, the date.
using Facts = std::vector<std::pair<std::string, std::string>>;
Facts machine();

} // namespace dat::perf

#endif
