// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What of the clauses does not apply to an RDMA device, and why.
#include "../exceptions.h"
#include "adapter.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>

#include <cstdio>
#include <string>

namespace dat::test {
namespace {

constexpr char kNoWindows[] = "siw has no memory windows";
constexpr char kOnLo[] = "it names the loopback interface, which no RDMA device is on";
constexpr char kPinned[] = "a device pins what is registered: more than a guest has";
constexpr char kRegisters[] = "what a device registers, and what it answers, is its own matter";
constexpr char kNoReceive[] =
    "the device ends a connection on which a message finds no receive: RFC 5040 has no other way";

constexpr Exception kExceptions[] = {
    {"lo", "shim_device/*", "no RDMA device"},
    {"rxe", "shim_device/without_windows__it_refuses_them", "rxe has memory windows"},
    {"[rs]*", "shim_dto/room_for_many__*", "a device makes room at once"},
    {"[rs]*", "shim_memory/of_each_kind__is_taken", kRegisters},
    {"[rs]*", "shim_memory/ten_thousand_regions__*", kRegisters},
    {"[rs]*", "shim_memory/that_can*", kRegisters},
    {"[rs]*", "shim_memory/that_is_gone__*", kRegisters},
    {"[rs]*", "shim_memory/under_a_limit_*", "it forks, and a child may not use devices"},
    {"rxe", "shim_transfer/a_message_without_*",
     "the receiver's device does not know of a message that the sender gave up"},
    {"rxe", "shim_udat12/a_conf_of_solaris__names_adapters", kOnLo},
    {"rxe", "shim_udat12/four_gigabytes__are_refused", kPinned},
    {"siw", "shim_dto/a_message__ends_a_window", kNoWindows},
    {"siw", "shim_dto/a_message_too_long__breaks_the_connection",
     "an iWARP device completes a message when it has been sent (U-61)"},
    {"siw", "shim_dto/rdma__reads_and_writes", "the device reads into one segment"},
    {"siw", "shim_end/graceful__carries_out_what_was_posted", kNoReceive},
    {"siw", "shim_extension/immediate_data_and_atomics__complete_as_extended_events",
     "iWARP devices have neither"},
    {"siw", "shim_memory/a_bind_that_is_not_allowed__is_refused", kNoWindows},
    {"siw", "shim_memory/a_window__is_bound_unbound_and_freed", kNoWindows},
    {"siw", "shim_object/what_is_in_use__is_not_freed", kNoWindows},
    {"siw", "shim_stream/overlapping_dequeuers_of_writes_and_binds__*", kNoWindows},
    {"siw", "shim_transfer/a_message_without_*", kNoReceive},
    {"siw", "shim_transfer/messages_without_a_receive__*",
     "an iWARP device completes a message when it has been sent (U-61)"},
    {"siw", "shim_transfer/suppressed_requests_that_fail__are_reported", kNoReceive},
    {"siw", "shim_udat12/a_bind_of_memory_that_is_none__is_refused", kNoWindows},
    {"siw", "shim_udat12/a_conf_of_solaris__names_adapters", kOnLo},
    {"siw", "shim_udat12/four_gigabytes__are_refused", kPinned},
};

// FOREACH_SET of Criterion, which is C.
template <class Element, class Call> void for_each(criterion_ordered_set* set, Call&& call) {
    for (criterion_ordered_set_node* node = set->first; node; node = node->next) {
        call(*reinterpret_cast<Element*>(node + 1));
    }
}

} // namespace

ReportHook(PRE_ALL)(criterion_test_set* set) {
    for_each<criterion_suite_set>(set->suites, [](criterion_suite_set& suite) {
        for_each<criterion_test>(suite.tests, [](criterion_test& test) {
            const std::string name = std::string(test.category) + "/" + test.name;
            if (const char* const why = why_not(kExceptions, place().name, name.c_str())) {
                std::printf("skipped: %s: %s\n", name.c_str(), why);
                test.data->disabled = true;
            }
        });
    });
}

} // namespace dat::test
