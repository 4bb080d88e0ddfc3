// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Ways as a user names them, and sizes.
#ifndef DAT_UTIL_PERF_WAY_H
#define DAT_UTIL_PERF_WAY_H

#include "case.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dat::perf {

// What the user wrote cannot be understood; the text says why, in one line.
struct Usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// "dat,dat@FI_DAT_SHM=0,tcp;ofi_rxm,sockets@rdm": names of providers between commas;
// behind each `@` either a variable of its processes, or `msg` or `rdm`, which says what
// endpoints to use. No name twice. Throws Usage.
std::vector<Way> parse_ways(std::string_view text);

// What goes over TCP, or stays on a host, at best.
Way socket_way();
Way memory_way();

// "8:4M": from 8 to 4 MiB, each 8 times the one before, and the last; "8:4M:2": each
// twice. "64,4K,1M": these. K, M and G are powers of 1024. Ascending, each once; from 1 to 1 GiB.
// Throws Usage.
std::vector<std::size_t> parse_sizes(std::string_view text);

// "64 B", "4 KiB", "1 MiB".
std::string size_text(std::size_t size);

// Which of the ways this machine lacks: a line for each, which says which names there
// are; empty if it has them all. Each is looked for in a process of its own.
// `version`: of the provider of the last.
std::vector<std::string> missing(const std::vector<Way>& ways, const std::string& address,
                                 std::string& version);

// The line for one.
std::string missing_text(const Way& way, const std::vector<std::string>& names,
                         const std::string& reason);

} // namespace dat::perf

#endif
