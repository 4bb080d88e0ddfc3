// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the kernel lets this process have.
#include "doctor/facts.h"
#include "doctor/looks.h"
#include "links/verbs/device.h"

#include <cstdint>
#include <fstream>
#include <sys/resource.h>

namespace dat::doctor {
namespace {

constexpr rlim_t kFewFiles = 1024;
constexpr rlim_t kLittleSpace = rlim_t{4} << 30;   // bytes
constexpr rlim_t kLittleLocked = rlim_t{64} << 20; // bytes
constexpr long kFewWait = 512;
constexpr long kFewPorts = 4096;

std::string size_text(rlim_t bytes) {
    return bytes >= (rlim_t{1} << 30)   ? std::to_string(bytes >> 30) + " GiB"
           : bytes >= (rlim_t{1} << 20) ? std::to_string(bytes >> 20) + " MiB"
                                        : std::to_string(bytes >> 10) + " KiB";
}

rlimit limit_of(__rlimit_resource resource) {
    rlimit limit{};
    getrlimit(resource, &limit);
    return limit;
}

// How a limit is raised, in the shell and for good. `value`, of ulimit; `item`: of limits.conf(5).
std::string raise(const rlimit& limit, rlim_t wanted, const std::string& value, const char* letter,
                  const char* item) {
    const std::string shell = std::string("ulimit -") + letter + " " + value;
    const std::string for_good = std::string("`* hard ") + item + " " + value +
                                 "` in /etc/security/limits.conf, and log in again";
    return limit.rlim_max >= wanted
               ? shell
               : "the hard limit is no higher: as root " + for_good + ", then " + shell;
}

} // namespace

Finding look_limit_files(Facts&) {
    const rlimit limit = limit_of(RLIMIT_NOFILE);
    if (limit.rlim_cur < kFewFiles) {
        return warning("RLIMIT_NOFILE is " + std::to_string(limit.rlim_cur),
                       "each connection takes one file, and three more while it is made; beyond "
                       "that: Too many open files",
                       raise(limit, kFewFiles, "4096", "n", "nofile"));
    }
    return good("RLIMIT_NOFILE is " + (limit.rlim_cur == RLIM_INFINITY
                                           ? std::string("unlimited")
                                           : std::to_string(limit.rlim_cur)));
}

Finding look_limit_memory(Facts&) {
    const rlimit limit = limit_of(RLIMIT_AS);
    if (limit.rlim_cur == RLIM_INFINITY) {
        return good("RLIMIT_AS is unlimited");
    }
    const std::string finding = "RLIMIT_AS is " + size_text(limit.rlim_cur);
    if (limit.rlim_cur < kLittleSpace) {
        return warning(finding,
                       "each connection within the host takes 161 KiB, and each domain a stack; "
                       "beyond that they stay on TCP, or fail: Cannot allocate memory",
                       raise(limit, RLIM_INFINITY, "unlimited", "v", "as"));
    }
    return good(finding);
}

Finding look_limit_locked(Facts&) {
    const rlimit limit = limit_of(RLIMIT_MEMLOCK);
    const std::string finding =
        "RLIMIT_MEMLOCK is " +
        (limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited") : size_text(limit.rlim_cur));
    if (!verbs::host_has_devices()) {
        return none(finding + ", and nothing locks memory: this host has no RDMA device");
    }
    if (limit.rlim_cur < kLittleLocked) {
        return warning(finding,
                       "an RDMA device locks the memory that it uses; beyond that: Cannot "
                       "allocate memory",
                       raise(limit, RLIM_INFINITY, "unlimited", "l", "memlock"));
    }
    return good(finding);
}

Finding look_limit_backlog(Facts&) {
    long most = 0;
    if (!(std::ifstream("/proc/sys/net/core/somaxconn") >> most)) {
        return none("the kernel does not tell it");
    }
    const std::string finding = "net.core.somaxconn is " + std::to_string(most);
    if (most < kFewWait) {
        return warning(finding,
                       "when more ask at once than may wait, some are refused, or try again after "
                       "a second",
                       "as root: sysctl -w net.core.somaxconn=4096");
    }
    return good(finding);
}

Finding look_limit_ports(Facts&) {
    long first = 0;
    long last = 0;
    if (!(std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first >> last)) {
        return none("the kernel does not tell it");
    }
    const long count = last - first + 1;
    const std::string finding = "net.ipv4.ip_local_port_range has " + std::to_string(count) +
                                " ports, " + std::to_string(first) + " to " + std::to_string(last);
    if (count < kFewPorts) {
        return warning(finding,
                       "each connection to one port of a peer takes one, and for a minute after "
                       "its end; beyond that: Cannot assign requested address",
                       "as root: sysctl -w net.ipv4.ip_local_port_range='32768 60999'");
    }
    return good(finding);
}

} // namespace dat::doctor
