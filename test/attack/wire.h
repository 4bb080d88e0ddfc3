// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// A network namespace of the calling process alone, with one device whose other end is a
// descriptor: what the kernel sends comes out there, what is written there it receives. It
// has no name, and goes with its processes.
#ifndef DAT_TEST_ATTACK_WIRE_H
#define DAT_TEST_ATTACK_WIRE_H

#include <string>

namespace dat::test {

struct Wire {
    int device = -1;  // whole IP packets, not blocking
    int control = -1; // a socket in that namespace, for set_mtu()
};

// Leads this process to a new namespace, with this address and prefix length ("192.0.2.1/24")
// on device "wire". Ends the process with status 77 and the reason where that cannot be.
// The kernel makes and checks checksums by itself, and cuts into packets what it sends:
// such a device has no other features unless asked for.
Wire make_wire(const std::string& address);
void set_mtu(const Wire& wire, int mtu);
// To and from another process, over a Unix socket.
void send_wire(int socket, const Wire& wire);
bool receive_wire(int socket, Wire& wire);

} // namespace dat::test

#endif
