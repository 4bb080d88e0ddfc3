// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What of the clauses does not apply to an RDMA device, and why; and which of the two
// places of RPMA_TEST run.
#include "../exceptions.h"
#include "place.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace dat::test {
namespace {

// As clauses.tsv has it, by the rule.
constexpr char kByDevice[] = "RP-19: a device writes without the processor: what lasts is a matter "
                             "of the memory, as its program says";
constexpr char kLeaves[] = "RP-6: over iWARP a disconnect has no answer: CLOSED comes at once";
constexpr char kSent[] = "RP-21: over iWARP a write or message is complete when it is sent, and a "
                         "receiver that is not ready ends the connection";
constexpr char kTorn[] =
    "RP-20: rxe in the emulated guest tears 8 bytes now and then, of the genuine library's as well";

constexpr Exception kExceptions[] = {
    {"shm", "*/on_a_device__*", "no RDMA device"},
    {"tcp", "*/on_a_device__*", "no RDMA device"},
    {"[rs][xi][ew]", "rpma_file/flushed_persistently__*", kByDevice},
    {"[rs][xi][ew]", "rpma_file/that_cannot_be_synced__*", kByDevice},
    {"[rs][xi][ew]", "rpma_file/of_nobody_else__*", kByDevice},
    {"[rs][xi][ew]", "rpma_file/on_dax__*", kByDevice},
    {"[rs][xi][ew]", "rpma_file/data_flush_and_atomic_write__*", kByDevice},
    {"siw", "rpma_end/disconnect_by_the_*__closes_the_peer_first", kLeaves},
    {"siw", "rpma_receiver/*", kSent},
    {"siw", "rpma_flags/unsignalled_and_in_error__*", kSent},
    {"siw", "rpma_arming/many_completions_by_epoll__*", kSent},
    {"rxe", "rpma_atomic/writes_seen_from_a_thread__*", kTorn},
};

// Of the genuine library, where DAT_RPMA_GENUINE is set.
constexpr Exception kOfGenuine[] = {
    {"*", "rpma_wait/next_event_without_one__*", "RP-10: it says RPMA_E_PROVIDER"},
    {"*", "rpma_wait/next_request_without_one__*", "RP-10: it says RPMA_E_PROVIDER"},
    {"*", "rpma_log/of_each_*", "it has no line for a refused call"},
    {"*", "rpma_end/disconnect_before_the_answer__*",
     "RP-5: who accepted was told nothing within 120 s"},
    {"*", "rpma_descriptor/that_the_program_replaced__*", "it waits for ever"},
    {"*", "rpma_arming/of_the_last_that_is_taken__*",
     "RP-16: its descriptor says nothing of what came before the queue was armed again"},
};

// FOREACH_SET of Criterion, which is C.
template <class Element, class Call> void for_each(criterion_ordered_set* set, Call&& call) {
    for (criterion_ordered_set_node* node = set->first; node; node = node->next) {
        call(*reinterpret_cast<Element*>(node + 1));
    }
}

} // namespace

ReportHook(PRE_ALL)(criterion_test_set* set) {
    const char* const asked = std::getenv("DAT_TRANSPORT");
    const bool one = asked && *asked;
    const bool genuine = std::getenv("DAT_RPMA_GENUINE") != nullptr;
    for_each<criterion_suite_set>(set->suites, [=](criterion_suite_set& suite) {
        for_each<criterion_test>(suite.tests, [=](criterion_test& test) {
            std::string name = test.category;
            std::string at = wanted_place();
            if (const std::size_t tail = name.rfind("_tcp");
                tail != std::string::npos && tail + 4 == name.size()) {
                name.erase(tail);
                at = "tcp";
                test.data->disabled |= one;
            }
            name += std::string("/") + test.name;
            const char* why = why_not(kExceptions, at.c_str(), name.c_str());
            if (!std::getenv("DAT_DAX_DIR") && name.find("/on_dax__") != std::string::npos) {
                why = "DAT_DAX_DIR names no folder whose pages are the memory itself";
            }
            if (genuine && !why) {
                why = why_not(kOfGenuine, at.c_str(), name.c_str());
            }
            if (why) {
                std::printf("skipped: %s: %s\n", name.c_str(), why);
                test.data->disabled = true;
            }
        });
    });
}

} // namespace dat::test
