// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// TCP sockets by names of hosts. Whatever does not work is a Failure.
#ifndef DAT_UTIL_PERF_NET_H
#define DAT_UTIL_PERF_NET_H

#include <cstdint>
#include <memory>
#include <netdb.h>
#include <string>
#include <utility>

namespace dat::perf {

struct FreeAddress {
    void operator()(addrinfo* address) const { ::freeaddrinfo(address); }
};
using Resolved = std::unique_ptr<addrinfo, FreeAddress>;

// Never empty. `flags`: of getaddrinfo().
Resolved resolve(const std::string& host, const std::string& port, int flags = 0);

// A listening socket; port "0" is any. Host "": all addresses of this host, with IPv6 where the
// kernel has it.
int listen_on(const std::string& host, const std::string& port);

// A connected socket that blocks, without Nagle's algorithm; the addresses of the host are tried in
// their order, each for `patience_s` seconds.
int connect_to(const std::string& host, const std::string& port, int patience_s);

// Of a socket: its own port, its own address and the peer's in numbers. An IPv4 address that is
// mapped into IPv6 is told as what it is.
std::uint16_t own_port(int fd);
std::string own_host(int fd);
std::string peer_host(int fd);

// "HOST", "HOST:PORT", "[::1]:PORT", "::1": the host, and the port or what stands for none.
std::pair<std::string, std::string> host_and_port(const std::string& text, const std::string& port);

} // namespace dat::perf

#endif
