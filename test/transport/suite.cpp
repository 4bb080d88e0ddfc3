// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// What joins the fixture to Criterion. May include: Criterion, the fixture.
#include "suite.h"

#include <cstdlib>

namespace dat::test {

namespace {

const Transport* running = nullptr;

// Tests wait more than they compute: more of them at once than processors.
__attribute__((constructor)) void choose_jobs() { setenv("CRITERION_JOBS", "8", 0); }

} // namespace

void fail(const char* file, int line, const std::string& message) {
    const char* over = running ? running->name : "";
    cr_assert_fail("%s:%d: over %s: %s", file, line, over, message.c_str());
    __builtin_unreachable();
}

void run_test(bool shm, void (*test)(const Transport&)) {
    static void (*one)(const Transport&);
    one = test;
    const bool any = run_over(shm, [](const Transport& transport) {
        running = &transport;
        one(transport);
    });
    if (!any)
        cr_skip_test("DAT_TRANSPORT names none of its transports");
}

void only_dat() {
    if (!is_dat())
        cr_skip_test("tests what only the dat provider offers");
}

} // namespace dat::test
