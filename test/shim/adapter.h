// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The adapter that the tests of this folder use: loopback without an RDMA device, or what
// DAT_TRANSPORT names, which is rxe or siw, the devices of the guest (test/vm/guest.sh), or
// the wire of a network of one's own (make_own_network()).
#ifndef DAT_TEST_SHIM_ADAPTER_H
#define DAT_TEST_SHIM_ADAPTER_H

#include <arpa/inet.h>
#include <cstdint>
#include <cstdlib>
#include <netinet/in.h>
#include <string>

namespace dat::test {

struct Place {
    const char* name;
    const char* adapter;       // the name of the IA
    std::uint32_t address;     // its own, in host order
    std::uint32_t unreachable; // which no way leads to
    const char* device;        // the interface that an RDMA device is on; nullptr: there is none
};

// Ends the program where DAT_TRANSPORT names none.
inline const Place& place() {
    static constexpr Place kPlaces[] = {
        {"lo", "lo", 0x7f000001, 0x7fffffff, nullptr},
        {"wire", "wire", 0xcb007101, 0xcb007163, nullptr},
        {"rxe", "rxe0", 0xc6336401, 0xc6336463, "r0"},
        {"siw", "siw0", 0xc0000201, 0xc0000263, "s0"},
    };
    static const Place& found = []() -> const Place& {
        const char* wanted = std::getenv("DAT_TRANSPORT");
        for (const Place& each : kPlaces) {
            if (each.name == std::string(wanted && *wanted ? wanted : "lo")) {
                setenv("FI_DAT_TRANSPORT", each.device ? "verbs" : "soft", 1);
                return each;
            }
        }
        std::abort();
    }();
    return found;
}

// siw tells a connection that was closed unanswered as it tells a reject without data, which is
// PEER_REJECTED then, in place of NON_PEER_REJECTED.
inline bool tells_refusal_as_reject() { return place().name == std::string("siw"); }

// siw cannot take a request back: who accepts one whose requester has gone is connected first,
// and left then, where others are told by the accept's completion.
inline bool takes_requests_back() { return place().name != std::string("siw"); }

inline sockaddr_in address_of(std::uint32_t address) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(address);
    return in;
}

} // namespace dat::test

#endif
