// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What the tests of this folder run over: shared memory or TCP on loopback, without an RDMA
// device, or what DAT_TRANSPORT names; rxe and siw are the devices of the guest
// (test/vm/guest.sh). Nothing here is of `dat` but the names of environment variables, so the
// same programs run with the genuine library.
#ifndef DAT_TEST_RPMA_PLACE_H
#define DAT_TEST_RPMA_PLACE_H

#include <cstdio>
#include <cstdlib>
#include <string>

namespace dat::test {

struct Place {
    const char* name;
    const char* address;
    const char* dead; // of the same network, and nobody has it; nullptr: there is none
    bool device;
};

inline constexpr Place kPlaces[] = {
    {"shm", "127.0.0.1", nullptr, false},
    {"tcp", "127.0.0.1", nullptr, false},
    {"rxe", "198.51.100.1", "198.51.100.99", true},
    {"siw", "192.0.2.1", "192.0.2.99", true},
};

// The name of what DAT_TRANSPORT chooses.
inline const char* wanted_place() {
    const char* const wanted = std::getenv("DAT_TRANSPORT");
    return wanted && *wanted ? wanted : "shm";
}

// Makes the library take that place; before its first call. Ends the program where there is none
// of that name.
inline const Place& take_place(const char* name) {
    for (const Place& each : kPlaces) {
        if (each.name == std::string(name)) {
            setenv("FI_DAT_TRANSPORT", each.device ? "verbs" : "soft", 1);
            setenv("FI_DAT_SHM", each.name == std::string("shm") ? "1" : "0", 1);
            return each;
        }
    }
    std::fprintf(stderr, "DAT_TRANSPORT=%s: shm, tcp, rxe and siw are there\n", name);
    std::exit(2);
}

} // namespace dat::test

#endif
