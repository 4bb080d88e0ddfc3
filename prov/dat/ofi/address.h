// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Which addresses there are: those of this host's interfaces, those that a name
// stands for, and the one that the kernel would use towards a peer.
#ifndef DAT_OFI_ADDRESS_H
#define DAT_OFI_ADDRESS_H

#include "net/socket.h"
#include "ofi/interfaces.h"

#include <string>
#include <vector>

namespace dat::ofi {

using net::SocketAddress;

// An address of an interface of this host.
struct LocalAddress {
    SocketAddress address;  // port 0
    std::string interface;  // "eth0": the domain name
    std::string subnet;     // "192.0.2.0/24": the fabric name
    unsigned prefix_length; // of the subnet, in bits
    bool running;
    InterfaceTraits traits;
};

// Those of interfaces that are up, in the order in which they are offered: loopback last, before
// it link-local ones and those without a carrier; else by the class of the interface, IPv4 before
// IPv6, by speed, and in the kernel's order. Some system calls. 0, or -errno and none: the kernel
// cannot be asked, out of memory or descriptors. Throws std::bad_alloc.
int local_addresses(std::vector<LocalAddress>& all);

// Whether the first `length` bits are equal.
bool same_prefix(const SocketAddress& a, const SocketAddress& b, unsigned length);

// The entry whose address `address` is, or, on loopback, whose subnet it is in;
// nullptr: not of this host.
const LocalAddress* find_local(const std::vector<LocalAddress>& all, const SocketAddress& address);

struct Resolve {
    const char* node;    // may be nullptr
    const char* service; // may be nullptr
    int family;          // AF_UNSPEC, AF_INET, AF_INET6
    bool passive;        // without a node the wildcard is meant, else loopback
    bool numeric;        // `node` is an address, do not ask a name server
};

// What a name stands for, IPv4 before IPv6, each once. Empty: nothing, and `why`
// says so. May block while a name server is asked.
std::vector<SocketAddress> resolve(const Resolve& what, std::string& why);

// The address that the kernel would connect to `destination` from; port 0. No
// packet is sent. Not valid: there is no route.
SocketAddress source_towards(const SocketAddress& destination);

} // namespace dat::ofi

#endif
