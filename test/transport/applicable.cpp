// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The table of applicable.h. May include: std.
#include "applicable.h"

#include <fnmatch.h>

namespace dat::test {
namespace {

struct Exception {
    const char* transports; // a pattern of the shell, as is `tests`
    const char* tests;
    const char* why;
};

constexpr char kAnswered[] =
    "a send completes when the peer's device has answered it, and so not before there is a receive";

constexpr Exception kExceptions[] = {
    {"rxe", "message_no_receive/on_both_sides__reads_still_complete",
     "a queue pair carries requests out in order: a message that waits for a receive holds up the "
     "reads behind it"},
    {"rxe", "message_transmit_complete/with_no_receive_and_nothing_staged__waits_for_it",
     kAnswered},
    {"rxe", "message_too_long/for_a_receive_posted_later__breaks_the_connection", kAnswered},
};

} // namespace

const char* not_applicable(const char* transport, const char* test) {
    for (const Exception& exception : kExceptions) {
        if (fnmatch(exception.transports, transport, 0) == 0 &&
            fnmatch(exception.tests, test, 0) == 0) {
            return exception.why;
        }
    }
    return nullptr;
}

} // namespace dat::test
