// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What of the clauses does not apply to an RDMA device, and why. May include: Criterion.
#include "adapter.h"

#include <criterion/criterion.h>
#include <criterion/hooks.h>

#include <cstdio>
#include <fnmatch.h>
#include <string>

namespace dat::test {
namespace {

struct Exception {
    const char* places; // a pattern of the shell, as is `tests`
    const char* tests;
    const char* why;
};

constexpr Exception kExceptions[] = {
    {"lo", "shim_device/*", "no RDMA device"},
    {"siw", "shim_dto/a_message__ends_a_window", "siw has no memory windows"},
};

const char* not_applicable(const std::string& test) {
    for (const Exception& exception : kExceptions) {
        if (fnmatch(exception.places, place().name, 0) == 0 &&
            fnmatch(exception.tests, test.c_str(), 0) == 0) {
            return exception.why;
        }
    }
    return nullptr;
}

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
            if (const char* const why = not_applicable(name)) {
                std::printf("skipped: %s: %s\n", name.c_str(), why);
                test.data->disabled = true;
            }
        });
    });
}

} // namespace dat::test
