// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Two processes, and a connection of the provider between them; both call the same function, and
// tell each other addresses by a socket beside it. And what that went over.
#ifndef DAT_UTIL_DOCTOR_EXCHANGE_H
#define DAT_UTIL_DOCTOR_EXCHANGE_H

#include "doctor/beside.h"
#include "doctor/check.h"
#include "doctor/child.h"

#include <string>
#include <vector>

namespace dat::doctor {

// 64 bytes there and back, each byte looked at. `address`: of this host; fact "what": the provider
// and type of endpoint. Throws where it fails.
void exchange_few(const Beside& other, const std::string& address, const Report& report);

// Behind exchange_few(): how long 64 bytes take, and how fast many of 1 MiB are in each direction.
// Facts of the client: "half_us", "there_MBs", "back_MBs"; the latter two are each the best of some
// rounds where one looks uneven, since a busy host holds up either for a moment.
void exchange_many(const Beside& other, const std::string& address, const Report& report);

// Whether one direction is slower by far than the other, or nothing is known yet (0 and 0). MB/s.
bool is_uneven(double there, double back);

// What a connection went over, as the provider's log says it.
struct Link {
    enum class Kind { unknown, tcp, memory };
    Kind kind = Kind::unknown;
    std::string why; // TCP, or pieces; empty: memory, and copied once
};
Link link_of(const Outcome& own, const std::vector<std::string>& others);

// Whether the two share memory, and whether it is copied once.
Finding memory_finding(const Link& link);
Finding copies_finding(const Link& link);

} // namespace dat::doctor

#endif
