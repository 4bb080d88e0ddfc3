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
constexpr char kInOrder[] =
    "a queue pair carries requests out in order: a message that waits for a receive holds up the "
    "reads behind it";
constexpr char kTcpPort[] = "the port where nobody listens is one of TCP on loopback";
constexpr char kCmPort[] = "the connection manager gives a port to one identifier alone";
constexpr char kLess[] = "the connection manager carries less private data (U-63)";
constexpr char kNoReceive[] =
    "the device ends a connection on which a message finds no receive: RFC 5040 has no other way";
constexpr char kRefused[] =
    "an iWARP device completes a write when it has been sent, and tells of a refused access by "
    "the end of the connection alone (U-61)";
constexpr char kOneSegment[] = "the device reads into one segment";
constexpr char kAnyEnd[] =
    "an iWARP device tells of a refused message by the end of the connection alone (U-61)";

constexpr Exception kExceptions[] = {
    {"rxe", "message_no_receive/on_both_sides__reads_still_complete", kInOrder},
    {"rxe", "message_transmit_complete/with_no_receive_and_nothing_staged__waits_for_it",
     kAnswered},
    {"rxe", "message_too_long/for_a_receive_posted_later__breaks_the_connection", kAnswered},
    {"rxe", "end_peer_closed/behind_data_without_a_receive__ends_within_the_limit", kAnswered},
    {"rxe", "connect_nobody_listens/port_is_closed__is_refused", kTcpPort},
    {"rxe", "connect_nobody_listens/with_patience__is_tried_again", kTcpPort},
    {"rxe", "connect_nobody_listens/at_the_end_of_patience__is_refused", kTcpPort},
    {"rxe", "listen_on_port/of_an_outgoing_connection__is_free", kCmPort},
    {"*siw*", "listen_on_port/of_an_outgoing_connection__is_free", kCmPort},
    {"rxe", "connect_private_data/option_of_endpoint_and_listener__says_508", kLess},
    {"rxe", "connect_reject/with_256_bytes__delivers_them", kLess},
    {"rxe", "atomic/each_operation__does_what_it_says",
     "a device has the operations that of_devices__do_what_they_say tries"},
    {"rxe", "dat_window/beyond_its_end__is_not_reached",
     "Linux's rxe holds accesses through a window against the bounds of its region alone"},
    {"rxe", "dat_window/not_to_be_invalidated__breaks_the_connection",
     "a window of type 2 can always be ended by the peer of the connection that bound it"},
    {"*siw*", "dat_window/*", "siw has no memory windows"},
    {"*siw*", "atomic/*", "iWARP devices have no atomics"},
    {"*siw*", "message_no_receive/*", kNoReceive},
    {"*siw*", "shared_receive/posted_late__serve_all_who_wait", kNoReceive},
    {"*siw*", "message_transmit_complete/with_no_receive_and_nothing_staged__waits_for_it",
     kNoReceive},
    {"*siw*", "message_too_long/for_a_receive_posted_later__breaks_the_connection", kNoReceive},
    {"*siw*", "message_too_long/for_the_receive__breaks_the_connection_on_both_sides", kAnyEnd},
    {"*siw*", "rma_bounds/*", kRefused},
    {"*siw*", "rma_key/*", kRefused},
    {"*siw*", "rma_rights/*", kRefused},
    {"*siw*", "rma_refused/*", kRefused},
    {"*siw*", "mr_rights/that_a_combination_leaves_out__are_refused", kRefused},
    {"*siw*", "mr_again/overlapping__the_closed_one_is_refused", kRefused},
    {"*siw*", "mr_again/with_less_under_the_same_key__is_refused_what_it_had", kRefused},
    {"*siw*", "rma_segments/gathered_write_and_scattered_read__are_exact", kOneSegment},
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
